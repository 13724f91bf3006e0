//! The task that sends events, one at a time.

use std::sync::Arc;
use std::time::Duration;

use machinery_value::names::dns1123_subdomain;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::queue::{News, Recent, Sent, Tone};
use super::{EventOptions, Shared};
use crate::clock::{Clock, seconds};
use crate::link::{FIELD_MANAGER, Link, LinkError};
use crate::resource::Resource;

/// What somebody must know is given up after so many failures.
const MAX_TRIES: u32 = 8;
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

pub(super) async fn run(link: Link, clock: Clock, shared: Arc<Shared>, options: EventOptions) {
    let pace = Duration::from_secs(1) / options.successes_per_second.max(1);
    // So many may go at once after a quiet time.
    let saved = pace * options.burst;
    let begun = Instant::now();
    let mut next_success = begun.checked_sub(saved).unwrap_or(begun);
    let mut sender = Sender {
        link,
        clock,
        recent: Recent::default(),
    };
    loop {
        let now = Instant::now();
        let (news, waits) = {
            let mut queue = shared.queue.lock();
            let mut news = queue.pop_urgent();
            if news.is_none() && now >= next_success {
                news = queue.pop_success();
            }
            let waits = queue.has_successes();
            if news.is_none() && !waits {
                shared.idle.send_replace(true);
            }
            (news, waits)
        };
        let Some(news) = news else {
            let paced = async {
                if waits {
                    tokio::time::sleep_until(next_success).await;
                } else {
                    std::future::pending().await
                }
            };
            tokio::select! {
                () = shared.wake.notified() => {}
                () = paced => {}
            }
            continue;
        };
        if news.subject.tone == Tone::Success {
            next_success = next_success.max(now.checked_sub(saved).unwrap_or(now)) + pace;
        }
        if let Err(error) = sender.send(&news).await {
            tracing::debug!(%error, reason = news.subject.reason, name = news.subject.target.name, "failed to send an event");
            failed(&shared, news, &error).await;
        }
    }
}

/// Keeps what somebody must know for later if that may help, and leaves the server alone for a while.
async fn failed(shared: &Shared, mut news: News, error: &LinkError) {
    news.tries += 1;
    let (tries, again) = (
        news.tries,
        news.subject.tone != Tone::Success && news.tries < MAX_TRIES,
    );
    let kept = again && error.is_transient() && shared.queue.lock().push(news);
    if !kept {
        shared.metrics.event_dropped();
    }
    if error.is_transient() {
        let pause = SHORTEST_PAUSE.saturating_mul(1 << tries.min(6)) / 2;
        let pause = error.retry_after().unwrap_or(pause);
        tokio::time::sleep(pause.min(LONGEST_PAUSE)).await;
    }
}

struct Sender {
    link: Link,
    clock: Clock,
    recent: Recent,
}

impl Sender {
    async fn send(&mut self, news: &News) -> Result<(), LinkError> {
        let events = Resource::events();
        let now = seconds(self.clock.now());
        let namespace = namespace(news);
        if let Some(sent) = self.recent.get(news) {
            let sent = Sent {
                count: sent.count.saturating_add(news.count),
                ..sent.clone()
            };
            let body = body(news, &sent, &now);
            let path = events.object(namespace, &sent.name);
            match self.link.replace(&path, body).await {
                // It has expired, and this server makes nothing by replacing it: it starts anew.
                Err(LinkError::NotFound) => {}
                Err(error) => return Err(error),
                Ok(_) => {
                    self.recent.put(news, sent);
                    return Ok(());
                }
            }
        }
        let sent = Sent {
            name: event_name(&news.subject.target.name),
            first: now.clone(),
            count: news.count,
        };
        let body = body(news, &sent, &now);
        self.link.create(&events.collection(namespace), body).await?;
        self.recent.put(news, sent);
        Ok(())
    }
}

fn namespace(news: &News) -> &str {
    match news.subject.target.namespace.as_str() {
        "" => "default",
        namespace => namespace,
    }
}

/// A name that nothing else has. Names of roles may hold what a name of an event may not.
fn event_name(target: &str) -> String {
    let id = uuid::Uuid::new_v4().simple().to_string();
    let name = format!("{target}.{}", &id[..16]);
    if dns1123_subdomain(&name).is_empty() {
        name
    } else {
        id
    }
}

fn body(news: &News, sent: &Sent, now: &str) -> Vec<u8> {
    let target = &news.subject.target;
    let mut object = json!({
        "apiVersion": target.api_version,
        "kind": target.kind,
        "name": target.name,
        "uid": target.uid,
    });
    if !target.namespace.is_empty() {
        object["namespace"] = Value::from(target.namespace.as_str());
    }
    let event = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": sent.name, "namespace": namespace(news)},
        "involvedObject": object,
        "type": if news.subject.tone == Tone::Warning { "Warning" } else { "Normal" },
        "reason": news.subject.reason,
        "message": news.message,
        "count": sent.count,
        "firstTimestamp": sent.first,
        "lastTimestamp": now,
        "source": {"component": FIELD_MANAGER},
        "reportingComponent": FIELD_MANAGER,
    });
    event.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_valid_names() {
        for target in ["web", "system:node", &"x".repeat(253)] {
            let name = event_name(target);
            assert!(dns1123_subdomain(&name).is_empty(), "{name}");
        }
        assert!(event_name("web").starts_with("web."));
    }
}
