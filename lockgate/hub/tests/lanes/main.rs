//! Members that have too much to do, or hang, on a whole hub: each delays itself only, and gets everything in the end.

#![expect(clippy::unwrap_used, reason = "a test may end where it likes")]

mod harness;

use std::time::Duration;

use lockgate_hub::Clock;

use harness::{Mood, World, bounded, until};

/// More than a member is given at once, whatever its window.
const BOXES: usize = 60;
/// The widest window.
const WIDEST: usize = 32;

#[tokio::test]
async fn a_member_with_too_much_to_do_and_one_that_hangs_delay_themselves_only() {
    bounded(async {
        let world = World::start(["busy", "hangs", "well"], Clock::real()).await;
        let [busy, hangs, well] = &world.members;
        world.make_boxes(0..1).await;
        for member in &world.members {
            member.until_boxes(1).await;
        }
        busy.set(Mood::Busy(None));
        hangs.set(Mood::Hangs);
        world.make_boxes(1..BOXES).await;
        well.until_boxes(BOXES).await;

        // Twice as many as there are on the way from the widest window to the narrowest.
        busy.refuse(4 * WIDEST).await;
        assert!(busy.most_at_once() <= WIDEST, "{}", busy.most_at_once());
        busy.forget_most();
        busy.refuse(BOXES).await;
        assert_eq!(busy.most_at_once(), 1, "it is given little by now");
        assert!(hangs.most_at_once() <= WIDEST, "{}", hangs.most_at_once());
        for member in [busy, hangs] {
            assert_eq!(member.boxes().await.len(), 1);
        }

        busy.set(Mood::Well);
        busy.until_boxes(BOXES).await;
        assert_eq!(hangs.boxes().await.len(), 1);
        hangs.set(Mood::Well);
        hangs.until_boxes(BOXES).await;
    })
    .await;
}

#[tokio::test]
async fn who_asks_to_be_left_alone_for_a_while_is_left_alone_so_long() {
    bounded(async {
        let clock = Clock::manual(jiff::Timestamp::now());
        let world = World::start(["busy", "well"], clock.clone()).await;
        let [busy, well] = &world.members;
        let at_rest = || until(|| async { world.hub.idle() && !clock.is_anybody_late() });
        busy.set(Mood::Busy(Some("30")));
        world.make_boxes(0..2).await;
        busy.refuse(2).await;
        well.until_boxes(2).await;
        at_rest().await;
        for _ in 0..29 {
            clock.advance(Duration::from_secs(1));
            at_rest().await;
        }
        assert_eq!(busy.asked(), 2, "once for each");
        clock.advance(Duration::from_secs(1));
        busy.refuse(2).await;
        at_rest().await;
        busy.set(Mood::Well);
        clock.advance(Duration::from_secs(30));
        busy.until_boxes(2).await;
    })
    .await;
}
