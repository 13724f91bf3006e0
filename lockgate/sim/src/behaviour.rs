//! How a workload is told to misbehave: by the tag of an image, or by an annotation.
//!
//! The most specific word counts: the Pod's own annotation (which its template may bring), then what its workload
//! says in its own, then the tag of each container's image.

use std::time::Duration;

use serde_json::Value;

use crate::object::{annotation, items, set_annotation, text};

/// The annotation that says how a workload, a Pod or a node behaves.
pub const BEHAVIOUR: &str = "sim.lockgate.io/behaviour";
/// The annotation in which a workload's word reaches its Pods.
pub const INHERITED: &str = "sim.lockgate.io/workload-behaviour";

/// How long something slow takes, if nobody says.
const SLOW: Duration = Duration::from_secs(30);

/// How a container behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Behaviour {
    /// It starts, becomes ready and stays so.
    #[default]
    Well,
    /// It exits with an error as soon as it has started.
    Fail,
    /// It becomes ready, and exits with an error a while later, again and again.
    Crash,
    /// Its image cannot be pulled.
    PullError,
    /// It runs but never becomes ready.
    NeverReady,
    /// It takes this long to start.
    Slow(Duration),
}

impl Behaviour {
    /// Reads `fail`, `crash`, `pull-error`, `never-ready`, `slow` or `slow=30s`; anything else is no instruction.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "well" => Self::Well,
            "fail" => Self::Fail,
            "crash" => Self::Crash,
            "pull-error" => Self::PullError,
            "never-ready" => Self::NeverReady,
            "slow" => Self::Slow(SLOW),
            _ => Self::Slow(parse_duration(
                word.strip_prefix("slow=")
                    .or_else(|| word.strip_prefix("slow-"))?,
            )?),
        })
    }

    /// How a container with this image behaves.
    pub fn of_image(image: &str) -> Self {
        let image = image.split_once('@').map_or(image, |(name, _)| name);
        let last = image.rsplit('/').next().unwrap_or(image);
        last.rsplit_once(':')
            .and_then(|(_, tag)| Self::parse(tag))
            .unwrap_or_default()
    }

    /// Whether it ever becomes ready and stays so.
    pub fn ends_well(self) -> bool {
        matches!(self, Self::Well | Self::Slow(_))
    }

    /// How long it takes to start, if the usual time is `usual`.
    pub fn start_delay(self, usual: Duration) -> Duration {
        match self {
            Self::Slow(slow) => slow,
            _ => usual,
        }
    }
}

/// `90s`, `2m`, `1h`, `500ms`, or a plain number of seconds. More than a day is cut to a day.
fn parse_duration(word: &str) -> Option<Duration> {
    let split = word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len());
    let number: u64 = word[..split].parse().ok()?;
    let milliseconds = match &word[split..] {
        "ms" => 1,
        "s" | "" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    Some(Duration::from_millis(
        number.saturating_mul(milliseconds).min(86_400_000),
    ))
}

/// What an object's own annotation says.
pub fn of_object(object: &Value) -> Option<Behaviour> {
    Behaviour::parse(annotation(object, BEHAVIOUR)?)
}

/// How a container of a Pod behaves.
pub fn of_container(pod: &Value, container: &Value) -> Behaviour {
    of_object(pod)
        .or_else(|| Behaviour::parse(annotation(pod, INHERITED)?))
        .unwrap_or_else(|| Behaviour::of_image(text(&container["image"])))
}

/// How the Pods of a workload behave, taken together: the first container that does not do well decides.
pub fn of_workload(workload: &Value) -> Behaviour {
    let template = &workload["spec"]["template"];
    of_object(template)
        .or_else(|| of_object(workload))
        .unwrap_or_else(|| {
            let containers = items(&template["spec"]["initContainers"])
                .iter()
                .chain(items(&template["spec"]["containers"]));
            let all: Vec<Behaviour> = containers
                .map(|c| Behaviour::of_image(text(&c["image"])))
                .collect();
            let bad = all.iter().find(|behaviour| !behaviour.ends_well());
            let slowest = all
                .iter()
                .max_by_key(|behaviour| behaviour.start_delay(Duration::ZERO));
            bad.or(slowest).copied().unwrap_or_default()
        })
}

/// The word that a workload passes on to what it makes: its own, or the one that it was passed.
fn passed_on(workload: &Value) -> Option<&str> {
    annotation(workload, BEHAVIOUR).or_else(|| annotation(workload, INHERITED))
}

/// Passes a workload's word on to an object that it controls. Returns whether that changed the object.
pub(crate) fn hand_down(workload: &Value, object: &mut Value) -> bool {
    set_annotation(object, INHERITED, passed_on(workload))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tags_are_read() {
        let table = [
            ("nginx", Behaviour::Well),
            ("nginx:1.27", Behaviour::Well),
            ("nginx:fail", Behaviour::Fail),
            ("localhost:5000/team/app:crash", Behaviour::Crash),
            ("localhost:fail/app", Behaviour::Well),
            ("app:pull-error", Behaviour::PullError),
            ("app:never-ready", Behaviour::NeverReady),
            ("app:slow", Behaviour::Slow(SLOW)),
            ("app:slow-90s", Behaviour::Slow(Duration::from_secs(90))),
            ("app:fail@sha256:0123", Behaviour::Fail),
        ];
        for (image, wanted) in table {
            assert_eq!(Behaviour::of_image(image), wanted, "{image}");
        }
    }

    #[test]
    fn words_are_read() {
        let table = [
            ("slow=5s", Some(Behaviour::Slow(Duration::from_secs(5)))),
            ("slow=250ms", Some(Behaviour::Slow(Duration::from_millis(250)))),
            ("slow=2m", Some(Behaviour::Slow(Duration::from_secs(120)))),
            (
                "slow=99999999999h",
                Some(Behaviour::Slow(Duration::from_secs(86_400))),
            ),
            ("slow=", None),
            ("slow=soon", None),
            ("explode", None),
            ("well", Some(Behaviour::Well)),
        ];
        for (word, wanted) in table {
            assert_eq!(Behaviour::parse(word), wanted, "{word}");
        }
    }

    #[test]
    fn the_most_specific_word_counts() {
        let container = json!({"image": "app:pull-error"});
        let mut pod = json!({"metadata": {}});
        assert_eq!(of_container(&pod, &container), Behaviour::PullError);
        assert!(hand_down(
            &json!({"metadata": {"annotations": {BEHAVIOUR: "crash"}}}),
            &mut pod
        ));
        assert_eq!(of_container(&pod, &container), Behaviour::Crash);
        pod["metadata"]["annotations"][BEHAVIOUR] = json!("well");
        assert_eq!(of_container(&pod, &container), Behaviour::Well);
        assert!(hand_down(&json!({"metadata": {}}), &mut pod));
        assert_eq!(annotation(&pod, INHERITED), None);
    }

    #[test]
    fn one_bad_container_spoils_a_workload() {
        let workload = |images: &[&str]| {
            let containers: Vec<Value> = images.iter().map(|image| json!({"image": image})).collect();
            json!({"spec": {"template": {"spec": {"containers": containers}}}})
        };
        assert_eq!(of_workload(&workload(&["a", "b:fail"])), Behaviour::Fail);
        assert_eq!(
            of_workload(&workload(&["a:slow-9s", "b"])),
            Behaviour::Slow(Duration::from_secs(9))
        );
        assert_eq!(of_workload(&workload(&["a", "b"])), Behaviour::Well);
    }
}
