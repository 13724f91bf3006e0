//! Answers that a real server gave once, and what another server that is asked the same answers otherwise.
//!
//! A recording is a [`Script`] whose steps have an `answer`. It is replayed in the order of its steps, in the namespace
//! `default` of a server that nobody else uses; steps without an answer prepare what was there before it was recorded. Both
//! answers go through the same [`Normaliser`](crate::normalise::Normaliser).
//!
//! Where the recorder cut a body, lists end in `…` and objects have a key `…`: whatever follows there is not compared.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::client::{Client, Target, TargetError};
use crate::compare::{self, Difference};
use crate::normalise::Normaliser;
use crate::report::{Failure, Report};
use crate::runner::{Outcome, Side};
use crate::script::{Script, Step};

/// What was recorded of an answer, its status apart, which is that of the step. What is not there is not compared.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// `Content-Type`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// `Cache-Control`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_control: Option<String>,
    /// Every `Warning`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warnings: Option<Vec<String>>,
    /// The body; that of a watch is the list of its events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// Places of the body (JSON pointers) that the embedded server does not have, each with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lacks: BTreeMap<String, String>,
    /// Paths of the differences that stay, each with the reason. One that does not show any more is a failure.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub differs: BTreeMap<String, String>,
}

/// Asks a server what the recordings asked, and compares its answers with theirs. The error is about the target's
/// description; a server that does not answer is in the report.
pub async fn replay(target: &Target, recordings: &[Script]) -> Result<Report, TargetError> {
    let client = Client::new(target)?;
    let mut report = Report {
        names: ("recorded".to_owned(), target.name.clone()),
        ..Report::default()
    };
    for recording in recordings {
        report.scripts += 1;
        let mut side = Side::within(&client, recording, "default");
        let at = recording.recorded.unwrap_or_default();
        let mut normaliser = Normaliser::recorded(recording.managed_fields, at);
        for (index, step) in recording.steps.iter().enumerate() {
            let mut failure = Failure {
                script: recording.name.clone(),
                step: index + 1,
                request: step.request.clone(),
                trouble: Vec::new(),
                differences: Vec::new(),
            };
            let broken = match take(&mut side, &mut normaliser, step, &mut failure).await {
                Ok(broken) => broken,
                Err(what) => {
                    failure.trouble.push(what);
                    true
                }
            };
            report.exchanges += usize::from(step.answer.is_some());
            if !failure.trouble.is_empty() || !failure.differences.is_empty() {
                report.failures.push(failure);
            }
            if broken {
                report.not_run += recording.steps.len() - index - 1;
                break;
            }
        }
    }
    Ok(report)
}

/// Takes one step; returns whether the later ones lack something.
async fn take(
    side: &mut Side<'_>,
    normaliser: &mut Normaliser,
    step: &Step,
    failure: &mut Failure,
) -> Result<bool, String> {
    let Some(recorded) = &step.answer else {
        // The recording does not know of it, so that nothing may be remembered from it.
        let known = std::mem::take(&mut side.normaliser);
        let outcome = side.take(step).await;
        side.normaliser = known;
        let outcome = outcome?;
        failure.trouble.extend(outcome.trouble);
        if outcome
            .expected
            .is_some_and(|expected| expected != outcome.status)
        {
            failure.trouble.push(format!("answered {}", outcome.status));
        }
        return Ok(outcome.nothing_captured);
    };
    let mut seen = side.take(step).await?;
    failure.trouble.append(&mut seen.trouble);
    let mut told = recorded.outcome(&mut seen, normaliser, &mut failure.trouble);
    step.ignore
        .keys()
        .for_each(|pointer| compare::forget(&mut told.body, pointer));
    failure.differences = told.differences(&seen);
    let stale = recorded.allow(&mut failure.differences);
    failure.trouble.extend(stale);
    Ok(seen.nothing_captured)
}

impl Recorded {
    /// The recording as an outcome. What it does not tell is as it was seen; what it was cut before is taken out of that.
    fn outcome(&self, seen: &mut Outcome, normaliser: &mut Normaliser, trouble: &mut Vec<String>) -> Outcome {
        let mut told = Outcome {
            status: seen.expected.unwrap_or(seen.status),
            ..seen.clone()
        };
        if let Some(content_type) = &self.content_type {
            told.content_type.clone_from(content_type);
        }
        if let Some(warnings) = &self.warnings {
            told.warnings = warnings.iter().map(|text| normaliser.text(text)).collect();
        }
        if let Some(cache_control) = &self.cache_control {
            for (name, value) in &mut told.headers {
                if *name == "cache-control" {
                    *value = Some(cache_control.clone());
                }
            }
        }
        if let Some(body) = &self.body {
            told.body = normaliser.value(body.clone());
            for pointer in self.lacks.keys() {
                if told.body.pointer(pointer).is_none() {
                    trouble.push(format!("nothing was recorded at {pointer} that could be missing"));
                }
                compare::forget(&mut told.body, pointer);
            }
            compare::cut_alike(&mut told.body, &mut seen.body);
        }
        told
    }

    /// Takes out the differences that stay; returns what is said of those that do not show.
    fn allow(&self, differences: &mut Vec<Difference>) -> Vec<String> {
        let mut stale = Vec::new();
        for path in self.differs.keys() {
            let before = differences.len();
            differences.retain(|difference| difference.path != *path);
            if differences.len() == before {
                stale.push(format!(
                    "{path} does not differ any more, and is to be taken off the list"
                ));
            }
        }
        stale
    }
}
