//! What a request leaves for the log on its way.

use std::sync::Arc;

use machinery_auth::UserInfo;
use machinery_auth::rbac::Decision;
use machinery_value::Value;
use parking_lot::Mutex;

use super::event::{Facts, ObjectRef, is_long};
use crate::request::RequestInfo;

/// Takes down what is to be logged of one request. Clones take down the same.
#[derive(Clone, Debug)]
pub(crate) struct Trail(pub(super) Arc<Mutex<Facts>>);

impl Trail {
    pub(super) fn new(facts: Facts) -> Self {
        Self(Arc::new(Mutex::new(facts)))
    }

    /// What is asked.
    pub(crate) fn asked(&self, info: &RequestInfo) {
        let mut facts = self.0.lock();
        facts.verb = info.verb;
        facts.object = ObjectRef::of(info);
        facts.is_long = is_long(info);
    }

    /// By whom.
    pub(crate) fn sent_by(&self, user: &Arc<UserInfo>) {
        self.0.lock().user = Some(user.clone());
    }

    /// Whom it counts as, if that is somebody else.
    pub(crate) fn counts_as(&self, user: &Arc<UserInfo>) {
        self.0.lock().acts_as = Some(user.clone());
    }

    /// What the roles say.
    pub(crate) fn decided(&self, decision: &Decision) {
        let allowed = if decision.allowed { "allow" } else { "forbid" };
        self.annotate("authorization.k8s.io/decision".to_owned(), allowed.to_owned());
        self.annotate("authorization.k8s.io/reason".to_owned(), decision.reason());
    }

    /// The object that the body is.
    pub(crate) fn read(&self, object: &Value) {
        if let Some(reference) = &mut self.0.lock().object {
            reference.complete(object);
        }
    }

    /// Adds an annotation. What was said first stays.
    pub(crate) fn annotate(&self, key: String, value: String) {
        self.0.lock().annotations.entry(key).or_insert(value);
    }

    /// That the answer is this `Status`.
    pub(crate) fn answers(&self, status: Value) {
        self.0.lock().status = Some(status);
    }
}
