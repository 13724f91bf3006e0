//! What waits to be sent, and what was sent lately. Both are bounded.

use std::collections::{BTreeMap, VecDeque};

use super::EventTarget;

/// So many notices and warnings may wait. One for each object and reason: a number that is reached when thousands of objects fail at once
/// and nothing can be sent. Then the log still has them.
const MAX_URGENT: usize = 16_384;

/// So many events that were sent are known, to count their repetitions.
const MAX_SENT: usize = 1024;

/// No message is longer.
const MAX_MESSAGE: usize = 1024;

/// One thing to say.
#[derive(Clone, Debug)]
pub(super) struct News {
    pub(super) subject: Subject,
    pub(super) message: String,
    /// How often it was handed in.
    pub(super) count: u32,
    /// How often sending it failed.
    pub(super) tries: u32,
}

/// How a thing is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tone {
    /// All is well. It may never be sent.
    Success,
    /// All is well, and somebody must know.
    Notice,
    /// Something is not well.
    Warning,
}

/// What of two things to say makes them one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Subject {
    pub(super) tone: Tone,
    pub(super) target: EventTarget,
    pub(super) reason: String,
}

impl News {
    pub(super) fn new(tone: Tone, target: EventTarget, reason: &str, message: &str) -> Self {
        let mut end = message.len().min(MAX_MESSAGE);
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        Self {
            subject: Subject {
                tone,
                target,
                reason: reason.to_owned(),
            },
            message: message[..end].to_owned(),
            count: 1,
            tries: 0,
        }
    }
}

#[derive(Default)]
struct Line {
    waiting: BTreeMap<Subject, News>,
    order: VecDeque<Subject>,
    limit: usize,
}

impl Line {
    /// Adds to the end, or to what waits about the same. False when there is no room.
    fn push(&mut self, news: News) -> bool {
        if let Some(waiting) = self.waiting.get_mut(&news.subject) {
            waiting.count = waiting.count.saturating_add(news.count);
            // What comes back after a failure is older than what was handed in since.
            if news.tries == 0 {
                waiting.message = news.message;
            }
            waiting.tries = waiting.tries.max(news.tries);
            return true;
        }
        if self.order.len() >= self.limit {
            return false;
        }
        self.order.push_back(news.subject.clone());
        self.waiting.insert(news.subject.clone(), news);
        true
    }

    fn pop(&mut self) -> Option<News> {
        self.waiting.remove(&self.order.pop_front()?)
    }
}

/// What waits.
pub(super) struct Queue {
    urgent: Line,
    successes: Line,
}

impl Queue {
    pub(super) fn new(successes: usize) -> Self {
        let line = |limit| Line {
            limit,
            ..Line::default()
        };
        Self {
            urgent: line(MAX_URGENT),
            successes: line(successes),
        }
    }

    pub(super) fn push(&mut self, news: News) -> bool {
        match news.subject.tone {
            Tone::Success => self.successes.push(news),
            Tone::Notice | Tone::Warning => self.urgent.push(news),
        }
    }

    pub(super) fn pop_urgent(&mut self) -> Option<News> {
        self.urgent.pop()
    }

    pub(super) fn pop_success(&mut self) -> Option<News> {
        self.successes.pop()
    }

    pub(super) fn has_successes(&self) -> bool {
        !self.successes.order.is_empty()
    }
}

/// An event that is on the server, as far as we know.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) name: String,
    pub(super) first: String,
    pub(super) count: u32,
}

/// The events that were sent last.
#[derive(Default)]
pub(super) struct Recent {
    sent: BTreeMap<(Subject, String), Sent>,
    order: VecDeque<(Subject, String)>,
}

impl Recent {
    pub(super) fn get(&self, news: &News) -> Option<&Sent> {
        self.sent.get(&(news.subject.clone(), news.message.clone()))
    }

    pub(super) fn put(&mut self, news: &News, sent: Sent) {
        let key = (news.subject.clone(), news.message.clone());
        if self.sent.insert(key.clone(), sent).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > MAX_SENT
            && let Some(oldest) = self.order.pop_front()
        {
            self.sent.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn news(tone: Tone, name: &str, reason: &str, message: &str) -> News {
        let target = EventTarget {
            name: name.into(),
            ..EventTarget::default()
        };
        News::new(tone, target, reason, message)
    }

    #[test]
    fn successes_are_bounded_and_warnings_merged() {
        let mut queue = Queue::new(2);
        assert!(queue.push(news(Tone::Success, "a", "R", "1")));
        assert!(queue.push(news(Tone::Success, "b", "R", "1")));
        assert!(
            !queue.push(news(Tone::Success, "c", "R", "1")),
            "there is no room"
        );
        assert!(
            queue.push(news(Tone::Success, "a", "R", "2")),
            "merging needs no room"
        );
        for n in 0..1000 {
            assert!(queue.push(news(Tone::Warning, "a", "Failed", &n.to_string())));
        }
        assert!(queue.push(news(Tone::Warning, "a", "Other", "x")));
        let first = queue.pop_urgent().unwrap();
        assert_eq!((first.message.as_str(), first.count), ("999", 1000));
        assert_eq!(queue.pop_urgent().unwrap().subject.reason, "Other");
        assert!(queue.pop_urgent().is_none());
        let first = queue.pop_success().unwrap();
        assert_eq!((first.message.as_str(), first.count), ("2", 2));
    }

    #[test]
    fn what_comes_back_is_older_than_what_came_since() {
        let mut queue = Queue::new(2);
        let mut failed = news(Tone::Warning, "a", "R", "old");
        failed.tries = 3;
        queue.push(news(Tone::Warning, "a", "R", "new"));
        queue.push(failed);
        let merged = queue.pop_urgent().unwrap();
        assert_eq!(
            (merged.message.as_str(), merged.count, merged.tries),
            ("new", 2, 3)
        );
    }

    #[test]
    fn messages_end_at_a_character() {
        let message = "é".repeat(MAX_MESSAGE);
        assert_eq!(news(Tone::Warning, "a", "R", &message).message.len(), MAX_MESSAGE);
        let message = format!("x{message}");
        assert_eq!(
            news(Tone::Warning, "a", "R", &message).message.len(),
            MAX_MESSAGE - 1
        );
    }

    #[test]
    fn what_was_sent_is_forgotten_in_time() {
        let mut recent = Recent::default();
        for n in 0..=MAX_SENT {
            let sent = Sent {
                name: n.to_string(),
                first: String::new(),
                count: 1,
            };
            recent.put(&news(Tone::Warning, &n.to_string(), "R", ""), sent);
        }
        assert!(recent.get(&news(Tone::Warning, "0", "R", "")).is_none());
        assert!(recent.get(&news(Tone::Warning, "1", "R", "")).is_some());
        assert_eq!(recent.sent.len(), MAX_SENT);
    }
}
