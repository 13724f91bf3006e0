//! The user behind a request.

use std::collections::BTreeMap;

use machinery_value::{Map, Value};

/// Members may do everything, whatever the RBAC objects say.
pub const GROUP_MASTERS: &str = "system:masters";
/// The group of everybody who proved who they are.
pub const GROUP_AUTHENTICATED: &str = "system:authenticated";
/// The group of everybody who did not.
pub const GROUP_UNAUTHENTICATED: &str = "system:unauthenticated";
/// The group of all nodes.
pub const GROUP_NODES: &str = "system:nodes";
/// The group of all service accounts.
pub const GROUP_SERVICE_ACCOUNTS: &str = "system:serviceaccounts";
/// Before the namespace: the group of its service accounts.
pub const GROUP_SERVICE_ACCOUNTS_PREFIX: &str = "system:serviceaccounts:";
/// The name of a user who presented nothing.
pub const USER_ANONYMOUS: &str = "system:anonymous";
/// The name of the server when it calls itself.
pub const USER_APISERVER: &str = "system:apiserver";
/// Before `namespace:name`: the user name of a service account.
pub const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";

/// Extra key: which credential was used (`JTI=…`, `X509SHA256=…`).
pub const EXTRA_CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";
/// Extra key: the pod that a token is bound to.
pub const EXTRA_POD_NAME: &str = "authentication.kubernetes.io/pod-name";
/// Extra key: that pod's uid.
pub const EXTRA_POD_UID: &str = "authentication.kubernetes.io/pod-uid";
/// Extra key: the node of that pod, or the node that a token is bound to.
pub const EXTRA_NODE_NAME: &str = "authentication.kubernetes.io/node-name";
/// Extra key: that node's uid.
pub const EXTRA_NODE_UID: &str = "authentication.kubernetes.io/node-uid";

/// Who is asking.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserInfo {
    /// The user name.
    pub name: String,
    /// Distinguishes users who had the same name at different times; may be empty.
    pub uid: String,
    /// The groups, in the order in which they were found.
    pub groups: Vec<String>,
    /// Whatever else the authenticator knows.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl UserInfo {
    /// A user with these groups and nothing else; `system:authenticated` is *not* added.
    pub fn new<S: Into<String>>(name: impl Into<String>, groups: impl IntoIterator<Item = S>) -> Self {
        let groups = groups.into_iter().map(Into::into).collect();
        Self {
            name: name.into(),
            groups,
            ..Self::default()
        }
    }

    /// Whoever presented no credentials at all.
    pub fn anonymous() -> Self {
        Self::new(USER_ANONYMOUS, [GROUP_UNAUTHENTICATED])
    }

    /// The server itself: may do everything.
    pub fn apiserver() -> Self {
        Self::new(USER_APISERVER, [GROUP_MASTERS, GROUP_AUTHENTICATED])
    }

    /// The service account `name` of `namespace`, authenticated.
    pub fn service_account(namespace: &str, name: &str, uid: &str) -> Self {
        let mut user = Self::new(
            service_account_user(namespace, name),
            service_account_groups(namespace),
        );
        user.uid = uid.to_owned();
        user.authenticated()
    }

    /// The same user as a member of `system:authenticated`, unless a group already says whether they are.
    #[must_use]
    pub fn authenticated(mut self) -> Self {
        let known = |g: &String| g == GROUP_AUTHENTICATED || g == GROUP_UNAUTHENTICATED;
        if self.name != USER_ANONYMOUS && !self.groups.iter().any(known) {
            self.groups.push(GROUP_AUTHENTICATED.to_owned());
        }
        self
    }

    /// Whether the user is a member of `group`.
    pub fn in_group(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }

    /// As `userInfo` of a SelfSubjectReview: empty fields are left out.
    pub fn to_json(&self) -> Value {
        let mut out = Map::new();
        if !self.name.is_empty() {
            out.insert("username".into(), self.name.clone().into());
        }
        if !self.uid.is_empty() {
            out.insert("uid".into(), self.uid.clone().into());
        }
        if !self.groups.is_empty() {
            out.insert("groups".into(), self.groups.clone().into());
        }
        if !self.extra.is_empty() {
            let extra = self
                .extra
                .iter()
                .map(|(k, v)| (k.clone(), Value::from(v.clone())));
            out.insert("extra".into(), Value::Object(extra.collect()));
        }
        Value::Object(out)
    }

    /// From `userInfo` of a SelfSubjectReview; what is not of the right type is taken as absent.
    pub fn from_json(value: &Value) -> Self {
        Self::from_fields(value, "username")
    }

    /// From an object whose user name is in the field `name_field`, the rest being named as usual.
    pub(crate) fn from_fields(value: &Value, name_field: &str) -> Self {
        let extra = value.get("extra").and_then(Value::as_object);
        Self {
            name: text(value, name_field).to_owned(),
            uid: text(value, "uid").to_owned(),
            groups: texts(value.get("groups")),
            extra: extra
                .into_iter()
                .flatten()
                .map(|(k, v)| (k.clone(), texts(Some(v))))
                .collect(),
        }
    }
}

/// The string at `key`, or the empty one.
pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The strings of a list; anything else is skipped.
pub(crate) fn texts(value: Option<&Value>) -> Vec<String> {
    let list = value.and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

/// The user name of a service account.
pub fn service_account_user(namespace: &str, name: &str) -> String {
    format!("{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}")
}

/// The groups of the service accounts of `namespace`.
pub fn service_account_groups(namespace: &str) -> [String; 2] {
    [
        GROUP_SERVICE_ACCOUNTS.to_owned(),
        format!("{GROUP_SERVICE_ACCOUNTS_PREFIX}{namespace}"),
    ]
}

/// Namespace and name, if `user` is the user name of a service account that could exist.
pub fn split_service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(SERVICE_ACCOUNT_PREFIX)?.split_once(':')?;
    let valid = is_label(namespace) && name.len() <= 253 && name.split('.').all(is_subdomain_part);
    valid.then_some((namespace, name))
}

/// Whether `text` is an RFC 1123 label.
fn is_label(text: &str) -> bool {
    text.len() <= 63 && is_subdomain_part(text)
}

fn is_subdomain_part(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.iter().all(|&b| plain(b) || b == b'-')
        && bytes.first().is_some_and(|&b| plain(b))
        && bytes.last().is_some_and(|&b| plain(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_leaves_empty_fields_out_and_comes_back() {
        let mut full = UserInfo::new("admin", [GROUP_MASTERS, GROUP_AUTHENTICATED]);
        full.uid = "admin-uid".into();
        full.extra.insert("k".into(), vec!["v1".into(), "v2".into()]);
        let table = [
            (UserInfo::default(), json!({})),
            (UserInfo::new("a", [] as [&str; 0]), json!({"username": "a"})),
            (
                full,
                json!({"username": "admin", "uid": "admin-uid", "groups": ["system:masters", "system:authenticated"],
                       "extra": {"k": ["v1", "v2"]}}),
            ),
        ];
        for (user, expected) in table {
            assert_eq!(user.to_json(), expected);
            assert_eq!(UserInfo::from_json(&expected), user);
        }
        assert_eq!(
            UserInfo::from_json(&json!({"username": 1, "groups": "x", "extra": []})),
            UserInfo::default()
        );
    }

    #[test]
    fn authenticated_is_added_once_and_never_to_the_unauthenticated() {
        let table: [(&str, &[&str], &[&str]); 5] = [
            ("a", &[], &["system:authenticated"]),
            ("a", &["g"], &["g", "system:authenticated"]),
            (
                "a",
                &["system:authenticated", "g"],
                &["system:authenticated", "g"],
            ),
            ("a", &["system:unauthenticated"], &["system:unauthenticated"]),
            ("system:anonymous", &[], &[]),
        ];
        for (name, groups, expected) in table {
            assert_eq!(
                UserInfo::new(name, groups.iter().copied()).authenticated().groups,
                expected
            );
        }
    }

    #[test]
    fn service_account_names_split_only_when_valid() {
        assert_eq!(
            split_service_account("system:serviceaccount:ns:default"),
            Some(("ns", "default"))
        );
        assert_eq!(
            split_service_account("system:serviceaccount:ns:a.b-c"),
            Some(("ns", "a.b-c"))
        );
        let long = format!("system:serviceaccount:{}:a", "n".repeat(64));
        for bad in [
            "bob",
            "system:serviceaccount:ns",
            "system:serviceaccount::a",
            "system:serviceaccount:ns:",
            "system:serviceaccount:ns:a:b",
            "system:serviceaccount:NS:a",
            "system:serviceaccount:n.s:a",
            "system:serviceaccount:ns:a..b",
            "system:serviceaccount:-ns:a",
            &long,
        ] {
            assert_eq!(split_service_account(bad), None, "{bad}");
        }
        let user = UserInfo::service_account("ns", "sa", "u1");
        assert_eq!(user.name, "system:serviceaccount:ns:sa");
        assert_eq!(
            user.groups,
            [
                "system:serviceaccounts",
                "system:serviceaccounts:ns",
                "system:authenticated"
            ]
        );
    }
}
