//! The variable `authorizer` of admission policies: asks, in an expression, whether somebody may do something.
//!
//! An expression builds a question piece by piece (`authorizer.group('apps').resource('deployments')`) and asks it with
//! `check`. Who answers is behind [`Authority`]; this module knows only how to ask.

use std::fmt;
use std::sync::Arc;

use kube_cel::cel::extractors::This;
use kube_cel::cel::objects::{Opaque, ResolveResult};
use kube_cel::cel::{Context, ExecutionError, Value};
use machinery_value::names;

use super::runtime::spend;

/// What asking costs, of the million that an expression may spend: the third question of one expression is too many.
const CHECK_COST: usize = 350_000;

/// The variable.
pub(super) const AUTHORIZER: &str = "authorizer";
/// The resource of the request; to expressions it looks like a field, and is a variable of its own.
pub(super) const REQUEST_RESOURCE: &str = "authorizer.requestResource";

/// Answers whether somebody may do something.
pub trait Authority: Send + Sync {
    /// The answer to one question.
    fn answer(&self, question: &Question) -> Verdict;
}

/// May they?
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// The namespace and name of the ServiceAccount that is asked about, if it is not who makes the request.
    pub account: Option<(String, String)>,
    /// The path, if it is not about a resource.
    pub path: Option<String>,
    /// The verb.
    pub verb: String,
    /// The API group.
    pub group: String,
    /// The resource, plural.
    pub resource: String,
    /// The subresource.
    pub subresource: String,
    /// The namespace.
    pub namespace: String,
    /// The name of the object.
    pub name: String,
}

/// The answer, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Whether they may.
    pub allowed: bool,
    /// Why; may be empty.
    pub reason: String,
    /// What went wrong when it was asked.
    pub error: Option<String>,
}

/// How far a question has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Authorizer,
    Path,
    Group,
    Resource,
}

/// A question in the making.
#[derive(Clone)]
struct Asking {
    authority: Arc<dyn Authority>,
    stage: Stage,
    question: Question,
}

impl fmt::Debug for Asking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Asking").field(&self.question).finish()
    }
}

impl PartialEq for Asking {
    fn eq(&self, other: &Self) -> bool {
        self.stage == other.stage && self.question == other.question
    }
}

impl Eq for Asking {}

impl Opaque for Asking {
    fn runtime_type_name(&self) -> &str {
        match self.stage {
            Stage::Authorizer => "kubernetes.authorization.Authorizer",
            Stage::Path => "kubernetes.authorization.PathCheck",
            Stage::Group => "kubernetes.authorization.GroupCheck",
            Stage::Resource => "kubernetes.authorization.ResourceCheck",
        }
    }
}

impl Opaque for Verdict {
    fn runtime_type_name(&self) -> &str {
        "kubernetes.authorization.Decision"
    }
}

/// The variable `authorizer` of one request.
#[derive(Clone)]
pub struct Authorizer {
    authority: Arc<dyn Authority>,
    request: Question,
}

impl Authorizer {
    /// `request` is what `authorizer.requestResource` asks about; its verb does not matter.
    pub fn new(authority: Arc<dyn Authority>, request: Question) -> Self {
        Self { authority, request }
    }

    /// The two variables that it stands for.
    pub(super) fn variables(&self) -> [(&'static str, Value); 2] {
        let asking = |stage, question| {
            Value::Opaque(Arc::new(Asking {
                authority: Arc::clone(&self.authority),
                stage,
                question,
            }))
        };
        [
            (AUTHORIZER, asking(Stage::Authorizer, Question::default())),
            (REQUEST_RESOURCE, asking(Stage::Resource, self.request.clone())),
        ]
    }
}

/// Adds the functions.
pub(super) fn register(context: &mut Context<'_>) {
    context.add_function("path", |This(this): This<Value>, path: Arc<String>| {
        if path.trim().is_empty() {
            return Err(problem("path must not be empty"));
        }
        on(&this, Stage::Authorizer, Stage::Path, |question| {
            question.path = Some(path.to_string());
        })
    });
    context.add_function("group", |This(this): This<Value>, group: Arc<String>| {
        on(&this, Stage::Authorizer, Stage::Group, |question| {
            question.group = group.to_string();
        })
    });
    context.add_function("serviceAccount", service_account);
    context.add_function("resource", |This(this): This<Value>, resource: Arc<String>| {
        if resource.trim().is_empty() {
            return Err(problem("resource must not be empty"));
        }
        on(&this, Stage::Group, Stage::Resource, |question| {
            question.resource = resource.to_string();
        })
    });
    context.add_function(
        "subresource",
        |This(this): This<Value>, subresource: Arc<String>| {
            on(&this, Stage::Resource, Stage::Resource, |question| {
                question.subresource = subresource.to_string();
            })
        },
    );
    context.add_function("namespace", |This(this): This<Value>, namespace: Arc<String>| {
        on(&this, Stage::Resource, Stage::Resource, |question| {
            question.namespace = namespace.to_string();
        })
    });
    context.add_function("name", |This(this): This<Value>, name: Arc<String>| {
        on(&this, Stage::Resource, Stage::Resource, |question| {
            question.name = name.to_string();
        })
    });
    // Roles do not look at selectors.
    let selector =
        |This(this): This<Value>, _: Arc<String>| on(&this, Stage::Resource, Stage::Resource, |_| {});
    context.add_function("fieldSelector", selector);
    context.add_function("labelSelector", selector);
    context.add_function("check", check);
    context.add_function("allowed", |This(this): This<Value>| {
        told(&this, |verdict| Value::Bool(verdict.allowed))
    });
    context.add_function("errored", |This(this): This<Value>| {
        told(&this, |verdict| Value::Bool(verdict.error.is_some()))
    });
    context.add_function("error", |This(this): This<Value>| {
        told(&this, |verdict| text(verdict.error.as_deref().unwrap_or("")))
    });
    context.add_function("reason", |This(this): This<Value>| {
        told(&this, |verdict| text(&verdict.reason))
    });
}

fn service_account(This(this): This<Value>, namespace: Arc<String>, name: Arc<String>) -> ResolveResult {
    if !names::dns1123_subdomain(&name).is_empty() {
        return Err(problem("Invalid service account name"));
    }
    if !names::dns1123_label(&namespace).is_empty() {
        return Err(problem("Invalid service account namespace"));
    }
    on(&this, Stage::Authorizer, Stage::Authorizer, |question| {
        question.account = Some((namespace.to_string(), name.to_string()));
    })
}

fn check(This(this): This<Value>, verb: Arc<String>) -> ResolveResult {
    let asking = asking(&this)?;
    if !matches!(asking.stage, Stage::Path | Stage::Resource) {
        return Err(ExecutionError::NoSuchOverload);
    }
    spend(CHECK_COST)?;
    let question = Question {
        verb: verb.to_string(),
        ..asking.question.clone()
    };
    Ok(Value::Opaque(Arc::new(asking.authority.answer(&question))))
}

fn asking(value: &Value) -> Result<&Asking, ExecutionError> {
    let Value::Opaque(opaque) = value else {
        return Err(ExecutionError::NoSuchOverload);
    };
    opaque.downcast_ref().ok_or(ExecutionError::NoSuchOverload)
}

/// Takes a question from one stage to another.
fn on(value: &Value, from: Stage, to: Stage, change: impl FnOnce(&mut Question)) -> ResolveResult {
    let asking = asking(value)?;
    if asking.stage != from {
        return Err(ExecutionError::NoSuchOverload);
    }
    let mut next = asking.clone();
    next.stage = to;
    change(&mut next.question);
    Ok(Value::Opaque(Arc::new(next)))
}

fn told(value: &Value, tell: impl FnOnce(&Verdict) -> Value) -> ResolveResult {
    match value {
        Value::Opaque(opaque) => opaque
            .downcast_ref()
            .map(tell)
            .ok_or(ExecutionError::NoSuchOverload),
        _ => Err(ExecutionError::NoSuchOverload),
    }
}

fn text(text: &str) -> Value {
    Value::String(Arc::new(text.to_owned()))
}

fn problem(message: &str) -> ExecutionError {
    ExecutionError::function_error("authorizer", message)
}
