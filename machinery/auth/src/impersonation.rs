//! Acting as somebody else: the `Impersonate-*` headers.
//!
//! The headers say who the request is to count as. Whoever really sent it must be allowed every one of the
//! [`ImpersonationCheck`]s, in order; the first that is denied is the answer.

use crate::rbac::Attributes;
use crate::user::{
    GROUP_AUTHENTICATED, GROUP_UNAUTHENTICATED, USER_ANONYMOUS, UserInfo, service_account_groups,
    split_service_account,
};

const AUTHENTICATION_GROUP: &str = "authentication.k8s.io";
const AUTHENTICATION_VERSION: &str = "authentication.k8s.io/v1";

/// Why the headers cannot be followed. Answered with 400 and this text; the request must not go on as its sender.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImpersonationError {
    /// Headers that only make sense with `Impersonate-User` came without it.
    #[error("requested [{0}] without impersonating a user")]
    NoUser(String),
    /// The value of this header is not UTF-8.
    #[error("the header {0} is not text")]
    NotText(String),
}

/// Whom a request wants to be, and what its sender must be allowed for that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impersonation {
    /// Whom the request counts as if all checks pass.
    pub user: UserInfo,
    /// What the sender must be allowed; never empty.
    pub checks: Vec<ImpersonationCheck>,
}

impl Impersonation {
    /// What `sender` must be allowed, in order.
    pub fn attributes<'a>(&'a self, sender: &'a UserInfo) -> impl Iterator<Item = Attributes<'a>> {
        self.checks.iter().map(move |check| check.attributes(sender))
    }
}

/// One thing to be allowed: the verb `impersonate` on this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImpersonationCheck {
    group: &'static str,
    resource: &'static str,
    subresource: String,
    namespace: String,
    name: String,
}

impl ImpersonationCheck {
    fn new(group: &'static str, resource: &'static str, name: &str) -> Self {
        Self {
            group,
            resource,
            name: name.to_owned(),
            subresource: String::new(),
            namespace: String::new(),
        }
    }

    /// What `sender` must be allowed.
    pub fn attributes<'a>(&'a self, sender: &'a UserInfo) -> Attributes<'a> {
        Attributes {
            subresource: &self.subresource,
            namespace: &self.namespace,
            name: &self.name,
            ..Attributes::resource(sender, "impersonate", self.group, self.resource)
        }
    }

    /// As the message about a missing user shows it.
    fn show(&self) -> String {
        let (kind, version) = match self.resource {
            "serviceaccounts" => ("ServiceAccount", ""),
            "users" => ("User", ""),
            "groups" => ("Group", ""),
            "userextras" => ("UserExtra", AUTHENTICATION_VERSION),
            _ => ("UID", AUTHENTICATION_VERSION),
        };
        format!(
            "{{{kind} {} {}  {version}  {}}}",
            self.namespace, self.name, self.subresource
        )
    }
}

/// Reads the headers of a request (names in any case); `None` if nobody is to be impersonated.
pub fn parse<'a>(
    headers: impl IntoIterator<Item = (&'a str, &'a [u8])>,
) -> Result<Option<Impersonation>, ImpersonationError> {
    let (mut name, mut uid, mut groups, mut extras) = ("", "", Vec::new(), Vec::new());
    for (header, value) in headers {
        let header = header.to_ascii_lowercase();
        let Some(what) = header.strip_prefix("impersonate-") else {
            continue;
        };
        // Left out, such a header would let the request go on as its sender.
        let value = std::str::from_utf8(value).map_err(|_| ImpersonationError::NotText(header.clone()))?;
        match what {
            // Of headers that may come once, the first counts.
            "user" if name.is_empty() => name = value,
            "uid" if uid.is_empty() => uid = value,
            "group" => groups.push(value),
            other => extras.extend(other.strip_prefix("extra-").map(|key| (unescape(key), value))),
        }
    }

    let mut user = UserInfo::new(name, groups.iter().copied());
    let mut checks = Vec::new();
    if let Some((namespace, account)) = split_service_account(name) {
        let check = ImpersonationCheck::new("", "serviceaccounts", account);
        checks.push(ImpersonationCheck {
            namespace: namespace.to_owned(),
            ..check
        });
        if groups.is_empty() {
            user.groups = service_account_groups(namespace).into();
        }
    } else if !name.is_empty() {
        checks.push(ImpersonationCheck::new("", "users", name));
    }
    checks.extend(
        groups
            .iter()
            .map(|group| ImpersonationCheck::new("", "groups", group)),
    );
    for (key, value) in extras {
        let check = ImpersonationCheck::new(AUTHENTICATION_GROUP, "userextras", value);
        checks.push(ImpersonationCheck {
            subresource: key.clone(),
            ..check
        });
        user.extra.entry(key).or_default().push(value.to_owned());
    }
    if !uid.is_empty() {
        checks.push(ImpersonationCheck::new(AUTHENTICATION_GROUP, "uids", uid));
        user.uid = uid.to_owned();
    }
    if checks.is_empty() {
        return Ok(None);
    }
    if name.is_empty() {
        let shown: Vec<String> = checks.iter().map(ImpersonationCheck::show).collect();
        return Err(ImpersonationError::NoUser(shown.join(" ")));
    }
    add_standing(&mut user);
    Ok(Some(Impersonation { user, checks }))
}

/// Everybody is in one of the two groups; who is given neither gets the one that fits their name.
fn add_standing(user: &mut UserInfo) {
    if user.name != USER_ANONYMOUS {
        if !user.in_group(GROUP_AUTHENTICATED) && !user.in_group(GROUP_UNAUTHENTICATED) {
            user.groups.push(GROUP_AUTHENTICATED.to_owned());
        }
    } else if !user.in_group(GROUP_UNAUTHENTICATED) {
        user.groups.push(GROUP_UNAUTHENTICATED.to_owned());
    }
}

/// Percent-decodes; a key that is not properly encoded is taken as it is.
fn unescape(key: &str) -> String {
    let mut bytes = Vec::with_capacity(key.len());
    let mut rest = key.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        if first != b'%' {
            bytes.push(first);
            rest = tail;
            continue;
        }
        let digits = tail
            .get(..2)
            .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let value = digits
            .and_then(|d| std::str::from_utf8(d).ok())
            .and_then(|d| u8::from_str_radix(d, 16).ok());
        let Some(value) = value else { return key.to_owned() };
        bytes.push(value);
        rest = &tail[2..];
    }
    String::from_utf8(bytes).unwrap_or_else(|_| key.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rbac::forbidden_message;

    fn read(headers: &[(&str, &str)]) -> Result<Option<Impersonation>, ImpersonationError> {
        parse(headers.iter().map(|(name, value)| (*name, value.as_bytes())))
    }

    fn check(headers: &[(&str, &str)], user: UserInfo, needs: &[&str]) {
        let got = read(headers).unwrap().unwrap();
        assert_eq!(got.user, user);
        let sender = UserInfo::new("bob", [] as [&str; 0]);
        let said: Vec<String> = got
            .checks
            .iter()
            .map(|check| forbidden_message(&check.attributes(&sender), ""))
            .collect();
        assert_eq!(said, needs);
    }

    #[test]
    fn headers_become_a_user_and_checks() {
        check(
            &[("Impersonate-User", "alice")],
            UserInfo::new("alice", ["system:authenticated"]),
            &[
                r#"users "alice" is forbidden: User "bob" cannot impersonate resource "users" in API group "" at the cluster scope"#,
            ],
        );
        check(
            &[
                ("impersonate-user", "alice"),
                ("Impersonate-Group", "a"),
                ("impersonate-group", "b"),
                ("accept", "x"),
            ],
            UserInfo::new("alice", ["a", "b", "system:authenticated"]),
            &[
                r#"users "alice" is forbidden: User "bob" cannot impersonate resource "users" in API group "" at the cluster scope"#,
                r#"groups "a" is forbidden: User "bob" cannot impersonate resource "groups" in API group "" at the cluster scope"#,
                r#"groups "b" is forbidden: User "bob" cannot impersonate resource "groups" in API group "" at the cluster scope"#,
            ],
        );
        check(
            &[("Impersonate-User", "system:serviceaccount:ns:sa")],
            UserInfo::service_account("ns", "sa", ""),
            &[
                r#"serviceaccounts "sa" is forbidden: User "bob" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "ns""#,
            ],
        );
        let mut extra = UserInfo::new("alice", ["system:unauthenticated"]);
        extra.uid = "u1".into();
        extra
            .extra
            .insert("example.com/scope".into(), vec!["x".into(), "y".into()]);
        check(
            &[
                ("Impersonate-User", "alice"),
                ("Impersonate-Group", "system:unauthenticated"),
                ("Impersonate-Extra-Example.com%2Fscope", "x"),
                ("Impersonate-Extra-example.com%2fscope", "y"),
                ("Impersonate-Uid", "u1"),
            ],
            extra,
            &[
                r#"users "alice" is forbidden: User "bob" cannot impersonate resource "users" in API group "" at the cluster scope"#,
                r#"groups "system:unauthenticated" is forbidden: User "bob" cannot impersonate resource "groups" in API group "" at the cluster scope"#,
                r#"userextras.authentication.k8s.io "x" is forbidden: User "bob" cannot impersonate resource "userextras/example.com/scope" in API group "authentication.k8s.io" at the cluster scope"#,
                r#"userextras.authentication.k8s.io "y" is forbidden: User "bob" cannot impersonate resource "userextras/example.com/scope" in API group "authentication.k8s.io" at the cluster scope"#,
                r#"uids.authentication.k8s.io "u1" is forbidden: User "bob" cannot impersonate resource "uids" in API group "authentication.k8s.io" at the cluster scope"#,
            ],
        );
    }

    #[test]
    fn the_anonymous_user_stays_unauthenticated() {
        let got = read(&[
            ("Impersonate-User", "system:anonymous"),
            ("Impersonate-Group", "g"),
        ]);
        assert_eq!(got.unwrap().unwrap().user.groups, ["g", "system:unauthenticated"]);
    }

    #[test]
    fn nothing_to_impersonate_and_nobody() {
        assert_eq!(read(&[("accept", "x"), ("Impersonate-User", "")]), Ok(None));
        for (headers, text) in [
            (
                vec![("Impersonate-Group", "b")],
                "requested [{Group  b    }] without impersonating a user",
            ),
            (
                vec![("Impersonate-Uid", "u"), ("Impersonate-Extra-k", "v")],
                "requested [{UserExtra  v  authentication.k8s.io/v1  k} {UID  u  authentication.k8s.io/v1  }] without impersonating a user",
            ),
        ] {
            assert_eq!(read(&headers).unwrap_err().to_string(), text);
        }
    }

    #[test]
    fn what_is_not_text_is_refused_rather_than_left_out() {
        let headers = [("Impersonate-User", b"\xff".as_slice())];
        assert_eq!(
            parse(headers).unwrap_err().to_string(),
            "the header impersonate-user is not text"
        );
        assert_eq!(parse([("accept", b"\xff".as_slice())]), Ok(None));
        assert_eq!(
            read(&[("Impersonate-User", "grüße")]).unwrap().unwrap().user.name,
            "grüße"
        );
    }

    #[test]
    fn keys_that_are_not_encoded_stay_as_they_are() {
        for (key, expected) in [
            ("a%2fb", "a/b"),
            ("a%2", "a%2"),
            ("a%zz", "a%zz"),
            ("a%ff", "a%ff"),
            ("", ""),
        ] {
            assert_eq!(unescape(key), expected);
        }
    }
}
