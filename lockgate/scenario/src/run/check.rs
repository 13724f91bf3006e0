//! Expectations.

use std::time::Duration;

use serde_json::Value;

use super::moment::Moment;
use super::{EVENTS_WITHIN, Runner};
use crate::file::{Bound, Check, Expectation, Place, Places};
use crate::matching::{fits, glob};
use crate::path::Path;
use crate::reference::Reference;
use crate::report::{Failure, excerpt, shown};
use crate::server::Snapshot;

/// How long after a failure an expectation is looked at once more, for the report.
const LATER: Duration = Duration::from_secs(2);

/// What was expected, what was found, and the object that was looked at.
struct Mismatch {
    expected: String,
    found: String,
    object: Option<String>,
}

impl Mismatch {
    fn new(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self {
            expected: expected.into(),
            found: found.into(),
            object: None,
        }
    }

    fn with(mut self, object: &Value) -> Self {
        self.object = Some(excerpt(object));
        self
    }
}

type Checked = Result<(), Mismatch>;

impl Runner<'_> {
    pub(super) async fn check(&self, number: usize, expectation: &Expectation) -> Result<(), Box<Failure>> {
        let Err(mismatch) = self.checked(expectation).await else {
            return Ok(());
        };
        // Whether it holds a moment later tells a wrong decision from one that nobody waited for.
        tokio::time::sleep(LATER).await;
        let later = match self.checked(expectation).await {
            Ok(()) => format!(
                "\n(it held {} seconds later: something was not waited for)",
                LATER.as_secs()
            ),
            Err(_) => String::new(),
        };
        Err(Box::new(Failure {
            file: self.scenario.file.clone(),
            line: expectation.line,
            step: number,
            title: expectation.title.clone(),
            expected: mismatch.expected,
            found: mismatch.found + &later,
            object: mismatch.object,
        }))
    }

    async fn checked(&self, expectation: &Expectation) -> Checked {
        match &expectation.check {
            Check::Unchanged { of, since } => {
                let then = match since {
                    Some(mark) => self.marks.get(mark),
                    None => Some(&self.last),
                };
                let then = then.ok_or_else(|| Mismatch::new("a moment to compare with", "none"))?;
                return self.unchanged(&expectation.places, of, then).await;
            }
            Check::Writes { hub, members } => return self.writes(*hub, *members),
            _ => {}
        }
        let (places, only) = match &expectation.places {
            Places::On(places) => (places, false),
            Places::OnlyOn(places) => (places, true),
        };
        for place in places {
            match &expectation.check {
                Check::Exists(of, wanted) => self.exists(place, of, wanted).await?,
                Check::Absent(of) => self.absent(place, of).await?,
                Check::List {
                    of,
                    names,
                    count,
                    each,
                } => {
                    self.list(place, of, names.as_deref(), *count, each).await?;
                }
                Check::Event {
                    told,
                    reason,
                    about,
                    message,
                    times,
                } => {
                    let event = Event {
                        reason,
                        about: about.as_ref(),
                        message: message.as_deref(),
                        times: *times,
                    };
                    self.event(place, *told, &event).await?;
                }
                Check::Unchanged { .. } | Check::Writes { .. } => {}
            }
        }
        if let (true, Check::Exists(of, _)) = (only, &expectation.check) {
            for name in self.world.members.keys() {
                let place = Place::Member(name.clone());
                if !places.contains(&place) {
                    self.absent(&place, of).await?;
                }
            }
        }
        Ok(())
    }

    async fn get(&self, place: &Place, of: &Reference) -> Result<Option<Value>, Mismatch> {
        let site = self.world.site(place);
        let site = site.ok_or_else(|| Mismatch::new("a server", format!("there is no {place}")))?;
        site.server
            .get(of)
            .await
            .map_err(|problem| Mismatch::new(format!("{of} on {place}"), problem.to_string()))
    }

    async fn all(&self, place: &Place, of: &Reference) -> Result<Vec<Value>, Mismatch> {
        let site = self.world.site(place);
        let site = site.ok_or_else(|| Mismatch::new("a server", format!("there is no {place}")))?;
        site.server
            .list(of)
            .await
            .map_err(|problem| Mismatch::new(format!("{of} on {place}"), problem.to_string()))
    }

    async fn exists(&self, place: &Place, of: &Reference, wanted: &[(Path, Value)]) -> Checked {
        let Some(object) = self.get(place, of).await? else {
            let mut all = of.clone();
            all.name = String::new();
            let others = self.all(place, &all).await?;
            let names: Vec<&str> = others
                .iter()
                .filter_map(|o| o["metadata"]["name"].as_str())
                .collect();
            let found = match names.as_slice() {
                [] => "it is not there, nor any other of its kind".to_owned(),
                names => format!("it is not there; there are {}", names.join(", ")),
            };
            return Err(Mismatch::new(format!("{of} on {place}"), found));
        };
        self.fields(place, of, &object, wanted)
    }

    fn fields(&self, place: &Place, of: &Reference, object: &Value, wanted: &[(Path, Value)]) -> Checked {
        let mut wrong = Vec::new();
        for (path, value) in wanted {
            let found = path.get(object);
            let fit = fits(value, found, &self.memory);
            if !fit.map_err(|what| Mismatch::new("a name that was remembered", what))? {
                wrong.push((path, value, found));
            }
        }
        if wrong.is_empty() {
            return Ok(());
        }
        let expected: Vec<String> = wrong
            .iter()
            .map(|(path, value, _)| match self.recalled(value) {
                Some(kept) => format!("{path}: {} (which is {kept})", shown(Some(value))),
                None => format!("{path}: {}", shown(Some(value))),
            })
            .collect();
        let found: Vec<String> = wrong
            .iter()
            .map(|(path, _, found)| format!("{path}: {}", shown(*found)))
            .collect();
        let (expected, found) = (expected.join("\n"), found.join("\n"));
        Err(Mismatch::new(format!("{of} on {place}, with\n{expected}"), found).with(object))
    }

    fn recalled(&self, wanted: &Value) -> Option<&Value> {
        let name = wanted.as_str()?.trim_start_matches('!').strip_prefix('$')?;
        self.memory.get(name)
    }

    async fn absent(&self, place: &Place, of: &Reference) -> Checked {
        match self.get(place, of).await? {
            None => Ok(()),
            Some(object) => Err(Mismatch::new(format!("no {of} on {place}"), "it is there").with(&object)),
        }
    }

    async fn list(
        &self,
        place: &Place,
        of: &Reference,
        names: Option<&[String]>,
        count: Option<u64>,
        each: &[(Path, Value)],
    ) -> Checked {
        let items = self.all(place, of).await?;
        let mut found: Vec<&str> = items
            .iter()
            .filter_map(|item| item["metadata"]["name"].as_str())
            .collect();
        found.sort_unstable();
        let listed = |names: &[&str]| match names {
            [] => "none".to_owned(),
            names => names.join(", "),
        };
        if let Some(names) = names {
            // Names that are made from hashes are written with a star.
            let fit = names.len() == found.len()
                && names.iter().zip(&found).all(|(wanted, name)| glob(wanted, name));
            if !fit {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                return Err(Mismatch::new(
                    format!("{of} on {place}: {}", listed(&names)),
                    listed(&found),
                ));
            }
        }
        if let Some(count) = count
            && count != found.len() as u64
        {
            let expected = format!("{count} of {of} on {place}");
            return Err(Mismatch::new(
                expected,
                format!("{}: {}", found.len(), listed(&found)),
            ));
        }
        for item in &items {
            let mut one = of.clone();
            one.name = item["metadata"]["name"].as_str().unwrap_or("").to_owned();
            self.fields(place, &one, item, each)?;
        }
        Ok(())
    }

    async fn event(&self, place: &Place, told: bool, wanted: &Event<'_>) -> Checked {
        if !self.mode.counts() {
            return Ok(());
        }
        if let Some(running) = &self.running {
            // A server that takes no events must not hold the scenario up.
            let _ = tokio::time::timeout(EVENTS_WITHIN, running.controllers.told()).await;
        }
        let mut events = Reference::collection("events").map_err(|what| Mismatch::new("events", what))?;
        if let Some(about) = wanted.about {
            // Events about what lives in no namespace are in `default`.
            events.namespace = about.namespace.clone();
        }
        let all = self.all(place, &events).await?;
        let found = all.iter().find(|event| wanted.fits(event));
        let fitting = all.iter().filter(|event| wanted.fits(event));
        let times: u64 = fitting.map(|event| event["count"].as_u64().unwrap_or(1)).sum();
        match (told, found) {
            (true, Some(event)) if wanted.times.is_some_and(|wanted| wanted != times) => {
                Err(Mismatch::new(wanted.to_string(), format!("it was told {times} times")).with(event))
            }
            (true, Some(_)) | (false, None) => Ok(()),
            (false, Some(event)) => Err(Mismatch::new(format!("no {wanted}"), "it was told").with(event)),
            (true, None) => {
                let said: Vec<String> = all.iter().map(brief).collect();
                let said = if said.is_empty() {
                    "no events".to_owned()
                } else {
                    said.join("\n")
                };
                Err(Mismatch::new(wanted.to_string(), said))
            }
        }
    }

    async fn unchanged(&self, places: &Places, of: &[Reference], then: &Moment) -> Checked {
        let now = self
            .moment()
            .await
            .map_err(|what| Mismatch::new("a look at the servers", what))?;
        let none = Snapshot::new();
        let look = |moment: &Moment, place: &Place| moment.snapshots.get(place).unwrap_or(&none).clone();
        if of.is_empty() {
            let mut changes = Vec::new();
            for name in self.world.members.keys() {
                let place = Place::Member(name.clone());
                changes.extend(differences(&place, &look(then, &place), &look(&now, &place)));
            }
            return match changes.as_slice() {
                [] => Ok(()),
                changes => Err(Mismatch::new(
                    "nothing on the members changed",
                    changes.join("\n"),
                )),
            };
        }
        let (Places::On(places) | Places::OnlyOn(places)) = places;
        for place in places {
            for reference in of {
                let wanted = format!("{reference} on {place} is what it was");
                let Some(object) = self.get(place, reference).await? else {
                    return Err(Mismatch::new(wanted, "it is gone"));
                };
                let site = self.world.site(place);
                let site = site.ok_or_else(|| Mismatch::new("a server", format!("there is no {place}")))?;
                let located = site.server.locate(&object).await;
                let (_, path) = located.map_err(|problem| Mismatch::new(&wanted, problem.to_string()))?;
                let (before, after) = (look(then, place), look(&now, place));
                let found = match (before.get(&path), after.get(&path)) {
                    (None, _) => "it was not there".to_owned(),
                    (Some((uid, _)), Some((other, _))) if uid != other => {
                        "it was deleted and made again".to_owned()
                    }
                    (Some((_, version)), Some((_, other))) if version != other => {
                        format!("it changed: resource version {other}, not {version}")
                    }
                    _ => continue,
                };
                return Err(Mismatch::new(wanted, found).with(&object));
            }
        }
        Ok(())
    }

    fn writes(&self, hub: Option<Bound>, members: Option<Bound>) -> Checked {
        if !self.mode.counts() {
            return Ok(());
        }
        let hub_writes = self.hub_writes() - self.last.hub_writes;
        let member_writes = self.member_writes() - self.last.member_writes;
        let lines: Vec<String> = self
            .world
            .members
            .values()
            .flat_map(|site| site.line.recent(member_writes))
            .collect();
        for (bound, number, what, recent) in [
            (hub, hub_writes, "the hub", self.world.hub.line.recent(hub_writes)),
            (members, member_writes, "the members", lines),
        ] {
            let (fit, wanted) = match bound {
                None => continue,
                Some(Bound::Exactly(wanted)) => (number == wanted, wanted.to_string()),
                Some(Bound::AtMost(wanted)) => (number <= wanted, format!("at most {wanted}")),
            };
            if !fit {
                let expected = format!("{wanted} writes to {what}");
                return Err(Mismatch::new(
                    expected,
                    format!("{number}\n{}", recent.join("\n")),
                ));
            }
        }
        Ok(())
    }
}

/// An event as it is wanted.
struct Event<'a> {
    reason: &'a str,
    about: Option<&'a Reference>,
    message: Option<&'a str>,
    times: Option<u64>,
}

impl Event<'_> {
    fn fits(&self, event: &Value) -> bool {
        let about = &event["involvedObject"];
        event["reason"] == self.reason
            && self
                .message
                .is_none_or(|message| glob(message, event["message"].as_str().unwrap_or("")))
            && self.about.is_none_or(|wanted| {
                let kind = about["kind"].as_str().unwrap_or("").to_lowercase();
                let word = wanted.kind.split('.').next().unwrap_or("");
                about["name"] == wanted.name.as_str() && (kind == word || format!("{kind}s") == word)
            })
    }
}

impl std::fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "event {}", self.reason)?;
        if let Some(about) = self.about {
            write!(f, " about {about}")?;
        }
        if let Some(message) = self.message {
            write!(f, " that says {message:?}")?;
        }
        if let Some(times) = self.times {
            write!(f, ", told {times} times")?;
        }
        Ok(())
    }
}

fn brief(event: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let about = &event["involvedObject"];
    format!(
        "{} about {}/{}: {}",
        text(&event["reason"]),
        text(&about["kind"]).to_lowercase(),
        text(&about["name"]),
        text(&event["message"])
    )
}

/// What was made, changed and deleted.
fn differences(place: &Place, before: &Snapshot, after: &Snapshot) -> Vec<String> {
    let mut lines = Vec::new();
    for (path, (uid, version)) in after {
        match before.get(path) {
            None => lines.push(format!("{place}: {path} is new")),
            Some((old, _)) if old != uid => lines.push(format!("{place}: {path} was deleted and made again")),
            Some((_, old)) if old != version => lines.push(format!("{place}: {path} changed")),
            Some(_) => {}
        }
    }
    let gone = before.keys().filter(|path| !after.contains_key(*path));
    lines.extend(gone.map(|path| format!("{place}: {path} is gone")));
    lines
}
