//! What is done about an object: tried while a policy only informs, done when it enforces.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockgate_api::ocm::configuration::RelatedObject;
use lockgate_engine::comply::diff::difference;
use lockgate_engine::comply::{
    Difference, Fault, Judged, Recreate, Remedy, Standing, Template, Unpruned, is_same, made, status_fits,
};
use lockgate_engine::object;
use serde_json::Value;

use super::super::dispatching::{SendError, encode};
use super::Visit;
use crate::cache::{Cache, Key};
use crate::link::{DeleteOptions, Deleted, LinkError};
use crate::resource::Resource;

/// What a server said to a change that was only tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tried {
    /// Nothing would change.
    Same,
    /// This would.
    Differs(String),
    /// It cannot be.
    Refused(Fault),
    /// It cannot be changed to this, only made anew.
    Immutable(String),
}

/// How much is told of what a server says to a change that is not possible, in characters.
const SAID: usize = 300;
/// What is told in the place of a difference that may be secret.
const REDACTED: &str = "# The difference is redacted because it contains sensitive data: it is told if \
    spec[\"object-templates\"][].recordDiff is \"InStatus\".";

/// What was tried: the place of the template among those of its policy, uid and version of the object. Several templates may
/// speak of one object, and each has its own answer.
pub(super) type Try = (usize, String, String);

/// The tries that are worth remembering, and what was refused.
type Kept = (Option<(Try, Tried)>, Option<String>);

/// One template on its way to its objects.
pub(super) struct Carrying<'a> {
    pub(super) visit: &'a Visit<'a>,
    pub(super) template: &'a Template,
    /// Its place among those of its policy.
    pub(super) place: usize,
    pub(super) resource: &'a Resource,
    pub(super) cache: &'a Arc<Cache>,
    pub(super) enforce: bool,
    /// The name under which this policy makes objects.
    pub(super) maker: &'a str,
    pub(super) tried: &'a BTreeMap<Try, Tried>,
}

impl Carrying<'_> {
    /// Does, or tries, what would make one object so.
    pub(super) async fn carry(&self, one: &mut Judged) -> Result<Kept, SendError> {
        match one.remedy.take() {
            None => Ok((None, None)),
            Some(Remedy::Create(object)) => {
                let refused = if self.enforce {
                    self.create(one, &object, Standing::Created).await?
                } else {
                    None
                };
                Ok((None, refused))
            }
            Some(Remedy::Delete(live)) => {
                let refused = if self.enforce {
                    self.delete(one, &live).await?
                } else {
                    None
                };
                Ok((None, refused))
            }
            Some(Remedy::Update {
                merged,
                live,
                status_differs,
            }) => self.update(one, &merged, &live, status_differs).await,
        }
    }

    /// Whether this policy made an object that it finds. It was stopped then before it could say so.
    pub(super) async fn is_maker(&self, one: &Judged) -> Result<bool, SendError> {
        let answer = match self.visit.link.get(&self.path(one)).await {
            Ok(answer) => answer,
            Err(LinkError::NotFound) => return Ok(false),
            Err(error) => return Err(SendError::Member(error)),
        };
        let live: Value = serde_json::from_slice(&answer).unwrap_or_default();
        Ok(object::meta_text(&live, "uid") == one.uid && object::is_managed_by(&live, self.maker))
    }

    fn path(&self, one: &Judged) -> String {
        let name = one.names.first().map_or("", String::as_str);
        self.resource.object(&one.namespace, name)
    }

    async fn create(
        &self,
        one: &mut Judged,
        object: &Value,
        standing: Standing,
    ) -> Result<Option<String>, SendError> {
        self.visit.may_write()?;
        let collection = self.resource.collection(&one.namespace) + "?fieldValidation=Strict";
        let body = encode(object);
        match self.visit.link.create_as(self.maker, &collection, body).await {
            Ok(answer) => {
                let made = self.learn(one, &answer)?;
                // A status that is demanded comes later, from whoever keeps it.
                one.awaits_status = !status_fits(self.template, &made);
                one.standing = if one.awaits_status {
                    Standing::Differs
                } else {
                    standing
                };
                one.made = true;
                Ok(None)
            }
            Err(LinkError::AlreadyExists) => {
                self.read_again(one).await?;
                Err(SendError::Again)
            }
            Err(error) => {
                let which = self.words(one);
                // Its namespace may come with a later object.
                let may_pass = matches!(error, LinkError::NotFound);
                let why = match &error {
                    LinkError::NotFound => format!("namespace {} does not exist", one.namespace),
                    other => said(other)?,
                };
                let (reason, message) = if standing == Standing::Created {
                    (
                        "K8s creation error",
                        format!("{which} is missing, and cannot be created, reason: `{why}`"),
                    )
                } else {
                    (
                        "K8s update template error",
                        format!("{which} failed to recreate with the error `{why}`"),
                    )
                };
                one.standing = Standing::Wrong(Fault {
                    may_pass,
                    ..fault(reason, message.clone())
                });
                Ok(Some(message))
            }
        }
    }

    async fn delete(&self, one: &mut Judged, live: &Value) -> Result<Option<String>, SendError> {
        self.visit.may_write()?;
        let uid = object::meta_text(live, "uid").to_owned();
        let options = DeleteOptions::as_read(&uid, object::meta_text(live, "resourceVersion"));
        match self.visit.link.delete_answer(&self.path(one), &options).await {
            Ok(Deleted::Gone) => {
                self.forget(one, &uid);
                one.standing = Standing::Deleted;
                one.uid.clear();
                Ok(None)
            }
            Ok(Deleted::Going(answer)) => {
                self.learn(one, &answer)?;
                one.is_going = true;
                Ok(Some(format!("{} is being deleted", self.words(one))))
            }
            Err(LinkError::NotFound) => {
                self.forget(one, &uid);
                one.standing = Standing::Missing;
                one.uid.clear();
                Ok(None)
            }
            Err(LinkError::Conflict) => {
                self.read_again(one).await?;
                Err(SendError::Again)
            }
            Err(error) => {
                let message = format!(
                    "{} exists, and cannot be deleted, reason: `{}`",
                    self.words(one),
                    said(&error)?
                );
                one.standing = Standing::Wrong(fault("K8s deletion error", message.clone()));
                Ok(Some(message))
            }
        }
    }

    async fn update(
        &self,
        one: &mut Judged,
        merged: &Value,
        live: &Arc<Value>,
        status_differs: bool,
    ) -> Result<Kept, SendError> {
        let id = (
            self.place,
            object::meta_text(live, "uid").to_owned(),
            object::meta_text(live, "resourceVersion").to_owned(),
        );
        let known = self.tried.get(&id).cloned();
        let tried = match known {
            Some(known) => known,
            None => self.try_it(one, merged, live).await?,
        };
        let kept = Some((id, tried.clone()));
        match tried {
            Tried::Same => {
                if one.standing == Standing::Differs && !status_differs {
                    one.standing = Standing::AsSpecified;
                    one.same_after_dry_run = true;
                }
                one.awaits_status = status_differs;
                Ok((kept, None))
            }
            Tried::Refused(fault) => {
                // It may be allowed later, and nobody will say so.
                let refused = Some(fault.message.clone());
                one.standing = Standing::Wrong(fault);
                Ok((None, refused))
            }
            Tried::Immutable(told) => {
                one.difference = told;
                if self.template.recreate != Recreate::Never {
                    return self.make_anew(one, live, kept).await;
                }
                one.standing = if self.enforce {
                    Standing::Wrong(fault(
                        "K8s update template error",
                        format!(
                            "{} cannot be updated, likely due to immutable fields not matching, you may set \
                             spec[\"object-templates\"][].recreateOption to recreate the object",
                            self.words(one)
                        ),
                    ))
                } else {
                    Standing::Differs
                };
                Ok((kept, None))
            }
            Tried::Differs(told) => {
                one.standing = Standing::Differs;
                one.difference = told;
                if self.template.recreate == Recreate::Always {
                    return self.make_anew(one, live, kept).await;
                }
                if !self.enforce {
                    return Ok((kept, None));
                }
                let refused = self.replace(one, merged, status_differs).await?;
                Ok((None, refused))
            }
        }
    }

    /// Asks the server what would come of a change.
    async fn try_it(&self, one: &Judged, merged: &Value, live: &Value) -> Result<Tried, SendError> {
        let path = self.path(one) + "?dryRun=All&fieldValidation=Strict";
        match self.visit.link.replace(&path, encode(merged)).await {
            Ok(answer) => {
                let answer: Value =
                    serde_json::from_slice(&answer).map_err(|error| SendError::NotYet(error.to_string()))?;
                if is_same(&answer, live) {
                    return Ok(Tried::Same);
                }
                Ok(Tried::Differs(self.difference(one, live, &answer)))
            }
            Err(LinkError::Conflict | LinkError::NotFound) => {
                self.read_again(one).await?;
                Err(SendError::Again)
            }
            Err(LinkError::Refused {
                code: 422, message, ..
            }) => {
                let mut told = self.difference(one, live, merged);
                if self.template.difference == Difference::Told {
                    // Such messages may hold the whole object.
                    let start: String = message.lines().flat_map(str::chars).take(SAID).collect();
                    told.insert_str(0, &format!("# {start}\n"));
                }
                Ok(Tried::Immutable(told))
            }
            Err(error) => {
                let name = one.names.concat();
                let why = said(&error)?;
                let message = if matches!(error, LinkError::Refused { code: 400, .. }) {
                    format!("Error validating the object {name}, the error is `{why}`")
                } else {
                    format!(
                        "Error issuing a dry run update request for the object `{name}`, the error is `{why}`"
                    )
                };
                Ok(Tried::Refused(fault("K8s update template error", message)))
            }
        }
    }

    /// What differs, as far as it may be told.
    fn difference(&self, one: &Judged, live: &Value, wanted: &Value) -> String {
        match self.template.difference {
            Difference::Untold => String::new(),
            Difference::Redacted => REDACTED.to_owned(),
            Difference::Told => {
                let name = match one.namespace.as_str() {
                    "" => one.names.concat(),
                    namespace => format!("{namespace}/{}", one.names.concat()),
                };
                difference(&name, live, wanted)
            }
        }
    }

    async fn replace(
        &self,
        one: &mut Judged,
        merged: &Value,
        status_differs: bool,
    ) -> Result<Option<String>, SendError> {
        self.visit.may_write()?;
        let path = self.path(one) + "?fieldValidation=Strict";
        match self.visit.link.replace(&path, encode(merged)).await {
            Ok(answer) => {
                self.learn(one, &answer)?;
                if !status_differs {
                    one.standing = Standing::Updated;
                }
                one.awaits_status = status_differs;
                one.difference.clear();
                Ok(None)
            }
            Err(LinkError::Conflict | LinkError::NotFound) => {
                self.read_again(one).await?;
                Err(SendError::Again)
            }
            Err(error) => {
                let message = format!(
                    "{} failed to update with the error `{}`",
                    self.words(one),
                    said(&error)?
                );
                one.standing = Standing::Wrong(fault("K8s update template error", message.clone()));
                Ok(Some(message))
            }
        }
    }

    /// Deletes an object and makes it from its template alone: what its old self was given by others, such as the selector of
    /// a Job, does not fit the new one. While the policy only informs, that is told.
    async fn make_anew(
        &self,
        one: &mut Judged,
        live: &Value,
        kept: Option<(Try, Tried)>,
    ) -> Result<Kept, SendError> {
        if !self.enforce {
            one.standing = Standing::Differs;
            one.anew = true;
            return Ok((kept, None));
        }
        if let Some(refused) = self.delete(one, live).await? {
            return Ok((None, Some(refused)));
        }
        one.difference.clear();
        let object = made(self.template, &one.namespace, &one.names.concat());
        let refused = self.create(one, &object, Standing::Updated).await?;
        Ok((None, refused))
    }

    /// `configmaps [box] in namespace shop`.
    fn words(&self, one: &Judged) -> String {
        let names = one.names.join(", ");
        let place = match one.namespace.as_str() {
            "" => String::new(),
            namespace => format!(" in namespace {namespace}"),
        };
        format!("{} [{names}]{place}", self.resource.plural)
    }

    fn key(one: &Judged) -> Key {
        Key::new(&one.namespace, one.names.first().map_or("", String::as_str))
    }

    fn learn(&self, one: &mut Judged, answer: &[u8]) -> Result<Value, SendError> {
        self.cache.learn(answer).map_err(SendError::Member)?;
        let object: Value =
            serde_json::from_slice(answer).map_err(|error| SendError::NotYet(error.to_string()))?;
        object::meta_text(&object, "uid").clone_into(&mut one.uid);
        Ok(object)
    }

    fn forget(&self, one: &Judged, uid: &str) {
        self.cache.forget(&Self::key(one), uid);
    }

    /// Reads an object that has moved on.
    async fn read_again(&self, one: &Judged) -> Result<(), SendError> {
        match self.visit.link.get(&self.path(one)).await {
            Ok(answer) => self.cache.learn_read(&answer).map_err(SendError::Member),
            Err(LinkError::NotFound) => {
                let key = Self::key(one);
                if let Some(cached) = self.cache.get(&key) {
                    self.cache.forget(&key, &cached.uid);
                }
                Ok(())
            }
            Err(error) => Err(SendError::Member(error)),
        }
    }
}

impl Visit<'_> {
    /// Deletes objects that nobody speaks of any more; gives those that are still there, and why.
    pub(super) async fn prune(&self, objects: &[RelatedObject]) -> Result<Vec<Unpruned>, SendError> {
        let mut left = Vec::new();
        for related in objects {
            let object = &related.object;
            let Some(resource) = self.resource(&object.api_version, &object.kind).await? else {
                // What the member does not serve, it does not have.
                continue;
            };
            let uid = related.properties.as_ref().map_or("", |known| &known.uid);
            let path = resource.object(&object.metadata.namespace, &object.metadata.name);
            if let Some((is_going, why)) = self.prune_one(&path, uid).await? {
                left.push(Unpruned {
                    object: related.clone(),
                    is_going,
                    why,
                });
            }
        }
        Ok(left)
    }

    /// Deletes the object of a uid as it is now; says whether it is going and what keeps it, if it is still there.
    async fn prune_one(&self, path: &str, uid: &str) -> Result<Option<(bool, String)>, SendError> {
        let live: Value = match self.link.get(path).await {
            Ok(answer) => {
                serde_json::from_slice(&answer).map_err(|error| SendError::NotYet(error.to_string()))?
            }
            Err(LinkError::NotFound) => return Ok(None),
            Err(error) => return Ok(Some((false, said(&error)?))),
        };
        if object::meta_text(&live, "uid") != uid {
            // It is somebody else's.
            return Ok(None);
        }
        if object::deleting(&live) {
            return Ok(Some((true, going(&live))));
        }
        self.may_write()?;
        let options = DeleteOptions::as_read(uid, object::meta_text(&live, "resourceVersion"));
        match self.link.delete_answer(path, &options).await {
            Ok(Deleted::Gone) | Err(LinkError::NotFound) => Ok(None),
            Ok(Deleted::Going(answer)) => {
                let object = serde_json::from_slice(&answer).unwrap_or_default();
                Ok(Some((true, going(&object))))
            }
            Err(LinkError::Conflict) => Err(SendError::Again),
            Err(error) => Ok(Some((false, said(&error)?))),
        }
    }
}

/// What keeps an object that is being deleted.
fn going(object: &Value) -> String {
    let finalizers = object["metadata"]["finalizers"].as_array();
    let names: Vec<&str> = finalizers
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    match names.as_slice() {
        [] => "it is being deleted".to_owned(),
        names => format!("it is being deleted, and waits for {}", names.join(", ")),
    }
}

fn fault(reason: &str, message: String) -> Fault {
    Fault {
        reason: reason.to_owned(),
        message,
        may_pass: false,
    }
}

/// What a refusal says; trouble on the way is no refusal.
fn said(error: &LinkError) -> Result<String, SendError> {
    match error {
        LinkError::Refused { message, .. } if error.is_refusal() => Ok(message.clone()),
        other => Err(SendError::Member(other.clone())),
    }
}
