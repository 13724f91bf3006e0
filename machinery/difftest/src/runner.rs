//! Runs scripts on two servers in lockstep.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::client::{Answer, Call, Client, Target, TargetError};
use crate::compare::{self, Difference};
use crate::normalise::Normaliser;
use crate::report::{Failure, Report};
use crate::script::{Body, Keep, Script, Step};
use crate::template::{Names, expand};

/// How long a step with `until`, or one that is told to try again, keeps asking.
const PATIENCE: Duration = Duration::from_secs(30);
/// Most of a run is waiting for watches to end, so some scripts run side by side.
const AT_ONCE: usize = 4;
const PAUSE: Duration = Duration::from_millis(100);
/// What `managedFields` then say, too.
const USER_AGENT: &str = "difftest/1.0";
/// Among a side's names once its namespace is there; no script can refer to it.
const MADE: &str = "made:ns";
const QUERY: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// How a run is done.
#[derive(Clone, Debug)]
pub struct Options {
    /// Distinguishes the namespaces and CRD groups of this run from those of others on the same servers: letters and digits.
    pub run: String,
    /// Whether the report also tells what the left server answered to every step.
    pub transcript: bool,
}

/// Runs every script on both servers and compares their answers. The error is about the targets' descriptions; a server
/// that does not answer is in the report.
pub async fn run(
    left: &Target,
    right: &Target,
    scripts: &[Script],
    options: &Options,
) -> Result<Report, TargetError> {
    let clients = Arc::new((Client::new(left)?, Client::new(right)?));
    let names = (left.name.clone(), right.name.clone());
    let mut running = JoinSet::new();
    let mut done = BTreeMap::new();
    for (index, script) in scripts.iter().cloned().enumerate() {
        if running.len() >= AT_ONCE {
            done.extend(running.join_next().await.and_then(Result::ok));
        }
        let (clients, names, options) = (Arc::clone(&clients), names.clone(), options.clone());
        running.spawn(async move {
            let namespace = format!("dt-{}-{index}", options.run);
            let mut sides = (
                Side::new(&clients.0, &script, &namespace),
                Side::new(&clients.1, &script, &namespace),
            );
            let mut report = Report {
                names,
                ..Report::default()
            };
            run_script(&script, &mut sides, &options, &mut report).await;
            tokio::join!(
                sides.0.clean_up(&script, &namespace),
                sides.1.clean_up(&script, &namespace)
            );
            (index, report)
        });
    }
    while let Some(finished) = running.join_next().await {
        done.extend(finished.ok());
    }
    let mut report = Report {
        names,
        ..Report::default()
    };
    done.into_values().for_each(|part| report.merge(part));
    // A script whose task ended badly must not look like one that passed.
    report.not_run += scripts.len() - report.scripts;
    Ok(report)
}

async fn run_script(
    script: &Script,
    sides: &mut (Side<'_>, Side<'_>),
    options: &Options,
    report: &mut Report,
) {
    report.scripts += 1;
    for (index, step) in script.steps.iter().enumerate() {
        let (left, right) = tokio::join!(sides.0.take(step), sides.1.take(step));
        report.exchanges += 1;
        let mut failure = Failure {
            script: script.name.clone(),
            step: index + 1,
            request: step.request.clone(),
            trouble: Vec::new(),
            differences: Vec::new(),
        };
        let mut broken = false;
        let mut seen = Vec::new();
        for (name, outcome) in [(&report.names.0, left), (&report.names.1, right)] {
            match outcome {
                Ok(outcome) => {
                    let wrong = outcome.expected.filter(|expected| *expected != outcome.status);
                    let wrong = wrong.map(|expected| {
                        format!("answered {}, the script expects {expected}", outcome.status)
                    });
                    let trouble = wrong.iter().chain(&outcome.trouble);
                    failure
                        .trouble
                        .extend(trouble.map(|what| format!("{name}: {what}")));
                    broken |= outcome.nothing_captured;
                    seen.push(outcome);
                }
                Err(what) => {
                    failure.trouble.push(format!("{name}: {what}"));
                    broken = true;
                }
            }
        }
        if options.transcript
            && let Some(left) = seen.first()
        {
            report.transcript.push_str(&format!(
                "{} step {}: {}\n    {} {} {:?}\n    {}\n",
                script.name,
                index + 1,
                step.request,
                left.status,
                left.content_type,
                left.warnings,
                left.body
            ));
        }
        if let [left, right] = seen.as_slice() {
            failure.differences = left.differences(right);
        }
        if !failure.trouble.is_empty() || !failure.differences.is_empty() {
            report.failures.push(failure);
        }
        if broken {
            report.not_run += script.steps.len() - index - 1;
            return;
        }
    }
}

/// An answer as it is compared, and what was wrong with it in itself.
#[derive(Clone)]
pub(crate) struct Outcome {
    pub(crate) status: u16,
    /// The status that the script expects.
    pub(crate) expected: Option<u16>,
    pub(crate) content_type: String,
    pub(crate) warnings: Vec<String>,
    /// Other headers that clients act on, by their names.
    pub(crate) headers: [(&'static str, Option<String>); 3],
    pub(crate) body: Value,
    pub(crate) trouble: Vec<String>,
    pub(crate) nothing_captured: bool,
}

impl Outcome {
    pub(crate) fn differences(&self, other: &Outcome) -> Vec<Difference> {
        let mut found = Vec::new();
        let mut compare = |path: &str, left: Value, right: Value| {
            if left != right {
                found.push(Difference {
                    path: path.to_owned(),
                    left: Some(left),
                    right: Some(right),
                });
            }
        };
        compare("status", self.status.into(), other.status.into());
        compare(
            "content type",
            self.content_type.clone().into(),
            other.content_type.clone().into(),
        );
        compare(
            "warnings",
            self.warnings.clone().into(),
            other.warnings.clone().into(),
        );
        for ((name, left), (_, right)) in self.headers.iter().zip(&other.headers) {
            compare(name, left.clone().into(), right.clone().into());
        }
        found.extend(compare::differences(&self.body, &other.body));
        found
    }
}

/// One server's half of a script.
pub(crate) struct Side<'a> {
    client: &'a Client,
    names: Names,
    /// Headers of every request that has no others.
    headers: Names,
    pub(crate) normaliser: Normaliser,
}

impl<'a> Side<'a> {
    /// For a script that works in a namespace which is there already.
    pub(crate) fn within(client: &'a Client, script: &Script, namespace: &str) -> Side<'a> {
        let mut side = Side::new(client, script, namespace);
        side.names.insert(MADE.to_owned(), String::new());
        side
    }

    fn new(client: &'a Client, script: &Script, namespace: &str) -> Side<'a> {
        let mut names: Names = script.names.clone();
        names.insert("ns".to_owned(), namespace.to_owned());
        names.insert("group".to_owned(), format!("{namespace}.example.com"));
        Side {
            client,
            names,
            headers: script.headers.clone(),
            normaliser: Normaliser::new(script.managed_fields),
        }
    }

    pub(crate) async fn take(&mut self, step: &Step) -> Result<Outcome, String> {
        self.make_namespace().await?;
        let (_, _, expected) = step.parts()?;
        let answer = self.ask(step, expected).await?;
        let raw: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let mut body = self.normaliser.body(&answer);
        let mut trouble = Vec::new();
        let mut nothing_captured = false;
        for (name, pointer) in step.capture.iter().chain(&step.try_capture) {
            let found = match pointer.as_str() {
                "etag" => answer.etag.clone(),
                pointer => raw.pointer(pointer).and_then(plain_text),
            };
            if let Some(text) = found {
                self.names.insert(name.clone(), text);
            } else if step.capture.contains_key(name) {
                trouble.push(format!("nothing at {pointer} to remember as <{name}>"));
                nothing_captured = true;
            }
        }
        if let Some(keep) = &step.keep {
            let values = keep
                .values
                .iter()
                .map(|value| expand(value, &self.names))
                .collect::<Result<_, _>>()?;
            if !compare::restrict(
                &mut body,
                &Keep {
                    values,
                    ..keep.clone()
                },
            ) {
                trouble.push(format!("nothing at {} to keep", keep.list));
            }
        }
        step.ignore
            .keys()
            .for_each(|pointer| compare::forget(&mut body, pointer));
        step.without
            .keys()
            .for_each(|key| compare::forget_everywhere(&mut body, key));
        step.unordered
            .iter()
            .for_each(|pointer| compare::sort(&mut body, pointer));
        Ok(Outcome {
            status: answer.status,
            expected,
            content_type: answer.content_type,
            warnings: answer
                .warnings
                .iter()
                .map(|text| self.normaliser.text(text))
                .collect(),
            headers: [
                ("retry-after", answer.retry_after),
                // Either that of the request, or one made up.
                ("audit-id", answer.audit_id.map(|id| self.normaliser.text(&id))),
                ("cache-control", answer.cache_control),
            ],
            body,
            trouble,
            nothing_captured,
        })
    }

    /// Each script has a namespace of its own, made before its first step.
    async fn make_namespace(&mut self) -> Result<(), String> {
        if self.names.contains_key(MADE) {
            return Ok(());
        }
        let namespace = self.names.get("ns").cloned().unwrap_or_default();
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        let answer = self
            .client
            .send(&plain("POST", "/api/v1/namespaces", &body))
            .await;
        let answer = answer.map_err(|e| e.to_string())?;
        if answer.status != 201 {
            return Err(format!("the namespace could not be made: {}", answer.status));
        }
        self.names.insert(MADE.to_owned(), String::new());
        Ok(())
    }

    /// Sends the request, again as long as the server says "later" or the step waits for something.
    async fn ask(&self, step: &Step, expected: Option<u16>) -> Result<Answer, String> {
        let call = self.call(step)?;
        let until = step
            .until
            .as_deref()
            .map(|text| expand(text, &self.names))
            .transpose()?;
        let started = Instant::now();
        loop {
            let answer = self.client.send(&call).await.map_err(|error| error.to_string())?;
            let done = match &until {
                None => !answer.is_later() || expected == Some(answer.status),
                Some(text) => {
                    expected.is_none_or(|expected| expected == answer.status)
                        && String::from_utf8_lossy(&answer.body).contains(text.as_str())
                }
            };
            if done || started.elapsed() > PATIENCE {
                return Ok(answer);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn call(&self, step: &Step) -> Result<Call, String> {
        let (method, path, _) = step.parts()?;
        let mut path = expand(path, &self.names)?;
        for (key, value) in &step.query {
            path.push(if path.contains('?') { '&' } else { '?' });
            let value = expand(value, &self.names)?;
            path.push_str(&format!("{key}={}", utf8_percent_encode(&value, QUERY)));
        }
        let mut headers: Names = [("user-agent".to_owned(), USER_AGENT.to_owned())].into();
        headers.extend(self.headers.clone());
        let accept = match step.accept.as_deref() {
            None => self
                .headers
                .get("accept")
                .map_or("application/json", String::as_str),
            Some("table") => "application/json;as=Table;v=v1;g=meta.k8s.io",
            Some("metadata") => "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
            Some("metadatalist") => "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
            Some("discovery") => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
            Some(whole) => whole,
        };
        headers.insert("accept".to_owned(), accept.to_owned());
        let body = match (&step.body, &step.bytes) {
            (None, None) => Vec::new(),
            (None, Some(digits)) => from_hex(digits)?,
            (Some(Body::Raw(text)), _) => expand(text, &self.names)?.into_bytes(),
            (Some(Body::Json(value)), _) => expand(&value.to_string(), &self.names)?.into_bytes(),
        };
        if step.body.is_some() {
            let media_type = step.patch.map_or("application/json", |patch| patch.media_type());
            headers.insert("content-type".to_owned(), media_type.to_owned());
        }
        let anonymous = step.user.as_deref() == Some("anonymous");
        if let Some(user) = step.user.as_deref().filter(|_| !anonymous) {
            headers.insert("impersonate-user".to_owned(), expand(user, &self.names)?);
        }
        for (name, value) in &step.headers {
            headers.insert(name.to_ascii_lowercase(), expand(value, &self.names)?);
        }
        Ok(Call {
            method: method.to_owned(),
            path,
            headers: headers
                .into_iter()
                .filter(|(_, value)| !value.is_empty())
                .collect(),
            body: Bytes::from(body),
            anonymous,
        })
    }

    /// Leaves the server as it was, as far as it lets us: what lives in the namespace goes with it where something collects
    /// it. Services go first, because the addresses they hold are few.
    async fn clean_up(&self, script: &Script, namespace: &str) {
        let paths = script
            .cleanup
            .iter()
            .filter_map(|path| expand(path, &self.names).ok());
        let own = format!("/api/v1/namespaces/{namespace}");
        for path in paths.chain([format!("{own}/services"), own]) {
            let call = plain("DELETE", &path, &json!({"propagationPolicy": "Background"}));
            // Nothing depends on it: the next script has a namespace of its own.
            self.client.send(&call).await.ok();
        }
    }
}

fn from_hex(digits: &str) -> Result<Vec<u8>, String> {
    let pair = |at| {
        digits
            .get(at..at + 2)
            .and_then(|pair| u8::from_str_radix(pair, 16).ok())
    };
    let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(pair).collect();
    bytes.ok_or_else(|| "bytes are not pairs of hexadecimal digits".to_owned())
}

fn plain_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn plain(method: &str, path: &str, body: &Value) -> Call {
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json"),
        ("user-agent", USER_AGENT),
    ];
    Call {
        method: method.to_owned(),
        path: path.to_owned(),
        headers: headers
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        body: Bytes::from(body.to_string()),
        anonymous: false,
    }
}
