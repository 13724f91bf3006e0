//! Who is worked on: a bounded number of places, shared fairly between users.
//!
//! A user whose requests find no place waits for one. Places that become free go to the users that wait in turn, one each, so
//! that somebody with one request is served next, however many another one has sent before. No single user ever holds all
//! places: requests whose bodies never come would hold them for ever.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// How many requests of one user may wait.
const WAITING_OF_ONE: usize = 1_000;
/// How many may wait in all.
const WAITING: usize = 8_000;

/// How long work that cannot be sent away waits before it asks again.
const WHEN_FULL: Duration = Duration::from_millis(10);

/// The places of a server. Clones share them.
#[derive(Clone)]
pub(crate) struct Places(Arc<Mutex<State>>);

/// A place in use; it is free again when this is dropped.
pub(crate) struct Place(Option<(Places, Arc<str>)>);

/// There is no place, and too many wait already.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// A long piece of work, done part by part, so that whoever has little to do need not wait for all of it.
pub(crate) struct Turns {
    places: Places,
    user: Arc<str>,
    has_begun: bool,
    turn: Option<Place>,
}

impl Turns {
    /// The work of a user at these places.
    pub(crate) fn new(places: &Places, user: &str) -> Self {
        Self {
            places: places.clone(),
            user: Arc::from(user),
            has_begun: false,
            turn: None,
        }
    }

    /// Begins the next part, when others have had their turn.
    pub(crate) async fn next(&mut self) {
        self.turn = None;
        if std::mem::replace(&mut self.has_begun, true) {
            tokio::task::yield_now().await;
        }
        self.turn = Some(self.places.wait(&self.user).await);
    }

    /// Ends a part after which there is nothing to do for now.
    pub(crate) fn rest(&mut self) {
        self.turn = None;
    }
}

struct State {
    places: usize,
    /// How many of them one user may hold.
    of_one: usize,
    taken: usize,
    waiting: usize,
    users: HashMap<Arc<str>, User>,
    /// The users that wait, the next one first.
    turns: VecDeque<Arc<str>>,
}

/// A user who holds a place or waits for one.
#[derive(Default)]
struct User {
    taken: usize,
    waiting: VecDeque<oneshot::Sender<Place>>,
}

impl Places {
    /// So many places.
    pub(crate) fn new(places: usize) -> Self {
        let places = places.max(1);
        Self(Arc::new(Mutex::new(State {
            places,
            of_one: (places - places / 4).min(places.saturating_sub(1)).max(1),
            taken: 0,
            waiting: 0,
            users: HashMap::new(),
            turns: VecDeque::new(),
        })))
    }

    /// Takes a place for a user, when there is one and it is this user's turn.
    pub(crate) async fn take(&self, user: &str) -> Result<Place, Full> {
        let user: Arc<str> = Arc::from(user);
        let turn = {
            let mut state = self.0.lock();
            if state.is_free_for(&user) {
                state.enter(&user);
                return Ok(self.place(user));
            }
            state.line_up(&user)?
        };
        // The places outlive whoever waits for them.
        turn.await.map_err(|_| Full)
    }

    /// Takes a place however long that takes, for work that has begun and cannot be sent away.
    async fn wait(&self, user: &str) -> Place {
        loop {
            match self.take(user).await {
                Ok(place) => return place,
                Err(Full) => tokio::time::sleep(WHEN_FULL).await,
            }
        }
    }

    fn place(&self, user: Arc<str>) -> Place {
        Place(Some((self.clone(), user)))
    }

    /// Gives a place back, and to the next user.
    fn give_back(&self, user: &Arc<str>) {
        let mut state = self.0.lock();
        state.leave(user);
        while let Some((next, turn)) = state.next() {
            if let Err(mut place) = turn.send(self.place(next.clone())) {
                // Whoever waited has gone. It is given back here, where the lock is held already.
                place.0 = None;
                state.leave(&next);
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some((places, user)) = self.0.take() {
            places.give_back(&user);
        }
    }
}

impl State {
    fn may_enter(&self, user: &str) -> bool {
        self.taken < self.places && self.users.get(user).is_none_or(|user| user.taken < self.of_one)
    }

    /// Nobody overtakes those of the same user that wait already; those of others wait only because they may not enter.
    fn is_free_for(&self, user: &str) -> bool {
        self.may_enter(user) && self.users.get(user).is_none_or(|user| user.waiting.is_empty())
    }

    fn enter(&mut self, user: &Arc<str>) {
        self.taken += 1;
        self.users.entry(user.clone()).or_default().taken += 1;
    }

    fn leave(&mut self, user: &Arc<str>) {
        self.taken -= 1;
        if let Some(found) = self.users.get_mut(user) {
            found.taken -= 1;
            if found.taken == 0 && found.waiting.is_empty() {
                self.users.remove(user);
            }
        }
    }

    fn line_up(&mut self, user: &Arc<str>) -> Result<oneshot::Receiver<Place>, Full> {
        let found = self.users.entry(user.clone()).or_default();
        if found.waiting.len() >= WAITING_OF_ONE || self.waiting >= WAITING {
            return Err(Full);
        }
        let (sender, turn) = oneshot::channel();
        if found.waiting.is_empty() {
            self.turns.push_back(user.clone());
        }
        found.waiting.push_back(sender);
        self.waiting += 1;
        Ok(turn)
    }

    /// The next one that waits and may enter, entered already. Its user goes to the end of the line.
    fn next(&mut self) -> Option<(Arc<str>, oneshot::Sender<Place>)> {
        for _ in 0..self.turns.len() {
            let user = self.turns.pop_front()?;
            if !self.may_enter(&user) {
                self.turns.push_back(user);
                continue;
            }
            let waiting = &mut self.users.get_mut(&user)?.waiting;
            let turn = waiting.pop_front()?;
            let more = !waiting.is_empty();
            self.waiting -= 1;
            if more {
                self.turns.push_back(user.clone());
            }
            self.enter(&user);
            return Some((user, turn));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a request gets a place at once.
    async fn at_once(places: &Places, user: &str) -> Option<Place> {
        let taken = tokio::time::timeout(Duration::from_millis(1), places.take(user)).await;
        taken
            .ok()
            .map(|place| place.unwrap_or_else(|Full| panic!("full")))
    }

    /// Sends a request that waits.
    async fn waits(places: &Places, user: &'static str) -> tokio::task::JoinHandle<Result<Place, Full>> {
        let (places, before) = (places.clone(), places.0.lock().waiting);
        let state = places.clone();
        let request = tokio::spawn(async move { places.take(user).await });
        while state.0.lock().waiting == before {
            tokio::task::yield_now().await;
        }
        request
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_holds_all() {
        let places = Places::new(4);
        let mut held = Vec::new();
        while let Some(place) = at_once(&places, "flood").await {
            held.push(place);
        }
        assert_eq!(held.len(), 3);
        assert!(at_once(&places, "other").await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_comes_is_next_whatever_another_has_sent() {
        let places = Places::new(2);
        let flood = at_once(&places, "flood").await.unwrap();
        let other = at_once(&places, "third").await.unwrap();
        let mut waiting = Vec::new();
        for _ in 0..100 {
            waiting.push(waits(&places, "flood").await);
        }
        let one = waits(&places, "one").await;
        drop(other);
        let place = one.await.unwrap().unwrap();
        assert!(waiting.iter().all(|request| !request.is_finished()));
        drop((flood, place));
        for request in waiting {
            drop(request.await.unwrap().unwrap());
        }
        assert_eq!(places.0.lock().taken, 0);
        assert!(places.0.lock().users.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn in_turn_one_each() {
        let places = Places::new(1);
        let first = at_once(&places, "a").await.unwrap();
        let mut requests = Vec::new();
        for user in ["a", "a", "a", "b", "b", "c"] {
            requests.push((user, waits(&places, user).await));
        }
        drop(first);
        let mut order = Vec::new();
        while !requests.is_empty() {
            tokio::task::yield_now().await;
            if let Some(at) = requests.iter().position(|(_, request)| request.is_finished()) {
                let (user, request) = requests.remove(at);
                order.push(user);
                drop(request.await.unwrap().unwrap());
            }
        }
        assert_eq!(order, ["a", "b", "c", "a", "b", "a"]);
    }

    #[tokio::test(start_paused = true)]
    async fn who_goes_away_takes_no_place() {
        let places = Places::new(1);
        let first = at_once(&places, "a").await.unwrap();
        for _ in 0..10 {
            let gone = waits(&places, "b").await;
            gone.abort();
            assert!(gone.await.is_err());
        }
        let last = waits(&places, "b").await;
        drop(first);
        drop(last.await.unwrap().unwrap());
        assert!(at_once(&places, "c").await.is_some());
        assert_eq!(places.0.lock().waiting, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn long_work_lets_others_in_between() {
        let places = Places::new(1);
        let mut long = Turns::new(&places, "a");
        long.next().await;
        let other = waits(&places, "b").await;
        let mut more = Box::pin(long.next());
        assert!(futures::poll!(&mut more).is_pending());
        let place = other.await.unwrap().unwrap();
        assert!(futures::poll!(&mut more).is_pending());
        drop(place);
        more.await;
        long.rest();
        assert_eq!(places.0.lock().taken, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn too_many_are_told_to_come_back() {
        let places = Places::new(1);
        let _first = at_once(&places, "a").await.unwrap();
        let mut requests = Vec::new();
        for _ in 0..WAITING_OF_ONE {
            requests.push(waits(&places, "a").await);
        }
        assert_eq!(places.take("a").await.err(), Some(Full));
        // Others may still wait.
        waits(&places, "b").await.abort();
    }
}
