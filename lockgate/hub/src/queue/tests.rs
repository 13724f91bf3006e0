use super::*;

fn queue() -> Queue<&'static str> {
    let figures = crate::Metrics::new().queue("test");
    Queue::new(Clock::manual(Timestamp::UNIX_EPOCH), figures)
}

#[tokio::test(start_paused = true)]
async fn a_key_is_handled_once_at_a_time_and_again_if_it_was_added_meanwhile() {
    let queue = queue();
    queue.add("a", 1);
    queue.add("a", 2);
    assert_eq!(queue.next().await, Some(("a", 3)));
    queue.add("a", 4);
    assert_eq!(queue.depth(), 1, "it is in hand, and not ready");
    queue.done(&"a");
    assert_eq!(queue.next().await, Some(("a", 4)));
    queue.done(&"a");
    assert!(queue.is_idle());
    assert!(!queue.is_pending(&"a"));
}

#[tokio::test(start_paused = true)]
async fn users_go_before_bulk_work() {
    let queue = queue();
    queue.add_bulk("bulk", 1);
    queue.add("user", 1);
    assert_eq!(queue.next().await, Some(("user", 1)));
    assert_eq!(queue.next().await, Some(("bulk", 1)));
}

#[tokio::test(start_paused = true)]
async fn a_rank_decides_before_anything_else() {
    let queue = queue();
    queue.rank(&"high", 100);
    queue.rank(&"higher", 200);
    queue.rank(&"low", -1);
    for key in ["low", "user", "high", "higher"] {
        queue.add(key, 1);
    }
    queue.add_bulk("bulk", 1);
    assert_eq!(queue.depth(), 5);
    for expected in ["higher", "high", "user", "bulk", "low"] {
        let (key, _) = queue.next().await.unwrap();
        assert_eq!(key, expected);
        queue.done(&key);
    }
    assert!(queue.is_idle());
    queue.rank(&"low", 0);
    queue.add("low", 1);
    queue.add("user", 1);
    assert_eq!(queue.next().await, Some(("low", 1)));
    queue.done(&"low");
    // One that is ready already moves, and comes once.
    queue.add("late", 1);
    queue.add_bulk("later", 1);
    queue.rank(&"later", 2);
    queue.rank(&"late", 1);
    for expected in ["later", "late", "user"] {
        let (key, _) = queue.next().await.unwrap();
        assert_eq!(key, expected);
        queue.done(&key);
    }
    // Also back: its place of before is not taken.
    queue.add("last", 1);
    queue.add("user", 1);
    queue.add_bulk("bulk", 1);
    queue.rank(&"user", 5);
    queue.rank(&"user", 0);
    queue.rank(&"last", -1);
    for expected in ["user", "bulk", "last"] {
        let (key, _) = queue.next().await.unwrap();
        assert_eq!(key, expected);
        queue.done(&key);
    }
    assert!(
        tokio::time::timeout(Duration::from_secs(1), queue.next())
            .await
            .is_err()
    );
    assert!(queue.is_idle());
}

#[tokio::test(start_paused = true)]
async fn what_a_user_changes_overtakes_what_waits_among_the_bulk() {
    let queue = queue();
    queue.add_bulk("first", 1);
    queue.add_bulk("changed", 1);
    queue.add("changed", 2);
    assert_eq!(queue.next().await, Some(("changed", 3)));
    queue.done(&"changed");
    assert_eq!(queue.next().await, Some(("first", 1)));
    queue.done(&"first");
    let nothing = tokio::time::timeout(Duration::from_secs(1), queue.next()).await;
    assert!(nothing.is_err(), "the place that it left is nobody's");
    assert!(queue.is_idle());
}

#[tokio::test(start_paused = true)]
async fn of_two_moments_the_earlier_counts() {
    let queue = queue();
    let begun = Instant::now();
    queue.add_soon("a", 1, Duration::from_millis(500));
    queue.add_soon("a", 2, Duration::from_millis(50));
    queue.add_soon("a", 4, Duration::from_millis(800));
    assert_eq!(queue.next().await, Some(("a", 7)));
    assert!(begun.elapsed() < Duration::from_millis(100));
    queue.done(&"a");
    assert!(queue.is_idle(), "the later moments are forgotten");
}

#[tokio::test(start_paused = true)]
async fn what_was_to_come_soon_does_not_come_again_after_it_came() {
    let queue = queue();
    queue.add_soon("a", 1, Duration::from_millis(500));
    queue.add("a", 2);
    assert_eq!(queue.next().await, Some(("a", 3)));
    // Asked for while it is in hand, it comes again.
    queue.add_soon("a", 4, Duration::from_millis(500));
    queue.done(&"a");
    assert!(!queue.is_idle());
    assert_eq!(queue.next().await, Some(("a", 4)));
    queue.done(&"a");
    assert!(queue.is_idle());
}

#[tokio::test(start_paused = true)]
async fn what_comes_soon_is_handled_together_and_counts_as_busy() {
    let queue = queue();
    queue.add_soon("a", 1, Duration::from_millis(100));
    queue.add_soon("a", 2, Duration::from_millis(100));
    assert!(!queue.is_idle());
    let before = Instant::now();
    assert_eq!(queue.next().await, Some(("a", 3)));
    assert!(before.elapsed() >= Duration::from_millis(100));
    queue.done(&"a");
    assert!(queue.is_idle());
}

#[tokio::test(start_paused = true)]
async fn failures_come_again_and_end_up_waiting_on_the_injected_clock() {
    let queue = queue();
    queue.add("a", 1);
    for _ in 0..=QUICK_RETRIES {
        let (key, aspects) = queue.next().await.unwrap();
        assert_eq!(aspects, 1);
        queue.retry(&key, aspects);
    }
    assert!(
        queue.is_idle(),
        "a retry that waits long is no reason to wait for it"
    );
    queue.clock.advance(LAST_RETRY);
    assert_eq!(queue.next().await, Some(("a", 1)));
}

#[tokio::test(start_paused = true)]
async fn who_is_asked_to_wait_waits_by_the_injected_clock_and_not_for_ever() {
    for (asked, waits) in [(30, 30), (3600, LAST_RETRY.as_secs())] {
        let queue = queue();
        queue.add("a", 1);
        assert_eq!(queue.next().await, Some(("a", 1)));
        queue.retry_after(&"a", 1, Duration::from_secs(asked));
        assert!(queue.is_idle());
        queue.clock.advance(Duration::from_secs(waits - 1));
        assert!(queue.is_idle(), "it comes too early");
        queue.clock.advance(Duration::from_secs(1));
        assert_eq!(queue.next().await, Some(("a", 1)));
    }
}

#[tokio::test(start_paused = true)]
async fn timers_follow_the_injected_clock() {
    let queue = queue();
    queue.add_at("a", 1, later(queue.clock.now(), Duration::from_secs(30)));
    assert!(queue.is_idle());
    queue.clock.advance(Duration::from_secs(30));
    assert!(!queue.is_idle(), "it is due");
    assert_eq!(queue.next().await, Some(("a", 1)));
    queue.close();
    assert_eq!(queue.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn what_fails_is_pending_until_it_comes_again_and_comes_once() {
    let queue = queue();
    queue.add("a", 1);
    assert_eq!(queue.next().await, Some(("a", 1)));
    queue.retry(&"a", 1);
    assert!(queue.is_pending(&"a"));
    queue.add("a", 2);
    assert_eq!(queue.next().await, Some(("a", 3)));
    queue.done(&"a");
    let nothing = tokio::time::timeout(Duration::from_secs(1), queue.next()).await;
    assert!(nothing.is_err(), "it was handled with what was added");
    assert!(queue.is_idle());
}

#[tokio::test(start_paused = true)]
async fn what_waits_by_the_clock_can_be_hurried() {
    let queue = queue();
    queue.add_at("a", 1, later(Timestamp::UNIX_EPOCH, Duration::from_secs(60)));
    assert!(queue.is_idle());
    queue.hurry();
    assert!(!queue.is_idle());
    assert_eq!(queue.next().await, Some(("a", 1)));
    queue.done(&"a");
    assert!(queue.is_idle());
}
