//! Doing what a step says.

use std::time::Duration;

use serde_json::Value;

use super::{Mode, Runner, failure};
use crate::file::{Action, Place, Step};
use crate::matching::Memory;
use crate::reference::Reference;
use crate::report::Failure;
use crate::server::{Problem, Server, Written};
use crate::world::{Site, Watched};

/// Time moves in slices of this length, so that what waits for a part of it happens in its order.
const SLICE: Duration = Duration::from_secs(1);
/// A long time moves in so many slices.
const MAX_SLICES: u32 = 120;

impl Runner<'_> {
    pub(super) async fn perform(&mut self, number: usize, step: &Step) -> Result<(), Box<Failure>> {
        let failed = |expected: &str, found: String| {
            Box::new(failure(self.scenario, number, step, expected.to_owned(), found))
        };
        let done = match &step.action {
            Action::Stop => {
                self.stop().await;
                Ok(())
            }
            Action::Start(gates) => {
                self.gates = gates.unwrap_or(self.gates);
                self.start().await
            }
            Action::Restart(gates) => {
                self.gates = gates.unwrap_or(self.gates);
                self.restart().await
            }
            Action::Advance(time) => self.advance(*time).await,
            Action::Member(name, fault) => {
                let place = match name.as_str() {
                    "hub" => Place::Hub,
                    name => Place::Member(name.to_owned()),
                };
                if let Some(site) = self.world.site(&place) {
                    site.line.set(fault.clone());
                }
                Ok(())
            }
            _ => {
                let Some(site) = self.world.site(&step.on) else {
                    return Err(failed("a server", format!("there is no {}", step.on)));
                };
                let answer = match self.filled(&step.action) {
                    Ok(action) => write(site, &action).await,
                    Err(what) => return Err(failed("values that were remembered", what)),
                };
                return match (answer, &step.refused) {
                    (Ok(written), None) => {
                        let on = step.on.clone();
                        self.written
                            .extend(written.into_iter().map(|change| (on.clone(), change)));
                        Ok(())
                    }
                    (Err(problem), None) => Err(failed("that the server does this", problem.to_string())),
                    (Ok(_), Some(_)) => Err(failed("that the server refuses this", "it was done".to_owned())),
                    (Err(Problem::Refused { message, .. }), Some(part))
                        if message.contains(part.as_str()) =>
                    {
                        Ok(())
                    }
                    (Err(problem), Some(part)) => {
                        let expected = format!("a refusal that contains {part:?}");
                        Err(failed(&expected, problem.to_string()))
                    }
                };
            }
        };
        done.map_err(|what| failed("that this is done", what))
    }

    /// An action with the remembered values in its objects: a text that is `$name` and nothing else.
    fn filled(&self, action: &Action) -> Result<Action, String> {
        let mut action = action.clone();
        match &mut action {
            Action::Apply(objects) => {
                for object in objects {
                    fill(object, &self.memory)?;
                }
            }
            Action::Create(object) | Action::Replace(object) => fill(object, &self.memory)?,
            Action::Edit(_, set) => {
                for (_, value) in set {
                    fill(value, &self.memory)?;
                }
            }
            _ => {}
        }
        Ok(action)
    }

    /// Moves the clock, and lets everything happen that waits for it.
    async fn advance(&mut self, time: Duration) -> Result<(), String> {
        let slice = SLICE.max(time / MAX_SLICES);
        let mut left = time;
        while !left.is_zero() {
            let step = slice.min(left);
            self.world.clock.advance(step);
            left -= step;
            self.settle_quickly().await?;
        }
        self.settle().await
    }
}

fn fill(value: &mut Value, memory: &Memory) -> Result<(), String> {
    match value {
        Value::Array(items) => items.iter_mut().try_for_each(|item| fill(item, memory)),
        Value::Object(map) => map.values_mut().try_for_each(|item| fill(item, memory)),
        Value::String(text) => {
            let name = text.strip_prefix('$').filter(|name| {
                !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
            });
            if let Some(name) = name {
                let known = memory.get(name);
                *value = known
                    .cloned()
                    .ok_or_else(|| format!("nothing is called {name:?}"))?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

impl Mode {
    /// Whether what the controllers write and tell can be counted: a kill loses some, and repeats some.
    pub(super) fn counts(self) -> bool {
        !matches!(self, Self::Cut(_))
    }
}

async fn write(site: &Site, action: &Action) -> Result<Vec<Written>, Problem> {
    let server = &site.server;
    let mut written = Vec::new();
    match action {
        Action::Apply(objects) => {
            for object in objects {
                written.push(apply(server, object).await?);
            }
        }
        Action::Create(object) => written.push(server.create(object).await?),
        Action::Replace(object) => written.push(server.replace(object).await?),
        Action::Edit(of, set) => written.push(server.edit(of, set).await?),
        Action::Delete(of, cascade) => written.push(server.delete(of, *cascade).await?),
        Action::Restore(of) => {
            for reference in of {
                written.extend(restore(site, reference).await?);
            }
        }
        _ => {}
    }
    Ok(written)
}

/// Applies an object. A kind whose definition came a moment ago may not be served yet, nor a namespace be known.
async fn apply(server: &Server, object: &Value) -> Result<Written, Problem> {
    let mut attempts = 0;
    loop {
        match server.apply(object).await {
            Err(Problem::NotServed(_)) if attempts < 100 => {
                attempts += 1;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            answer => return answer,
        }
    }
}

/// As a backup does it: the same content under a new uid. Dependents stay.
async fn restore(site: &Site, of: &Reference) -> Result<Vec<Written>, Problem> {
    let server = &site.server;
    let Some(mut object) = server.get(of).await? else {
        return Err(Problem::Broken(format!("there is no {of}")));
    };
    let deleted = server.delete(of, Some(crate::file::Cascade::Orphan)).await?;
    // A real server without a garbage collector waits for one that lets the dependents be.
    if matches!(site.watched, Watched::Real(_)) {
        server
            .orphan(of, object["metadata"]["uid"].as_str().unwrap_or(""))
            .await?;
    }
    let mut attempts = 0;
    while server.get(of).await?.is_some() {
        attempts += 1;
        if attempts > 500 {
            return Err(Problem::Broken(format!("{of} does not go: who holds it?")));
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    if let Some(meta) = object["metadata"].as_object_mut() {
        for key in [
            "uid",
            "resourceVersion",
            "generation",
            "creationTimestamp",
            "managedFields",
        ] {
            meta.remove(key);
        }
    }
    Ok(vec![deleted, server.create(&object).await?])
}
