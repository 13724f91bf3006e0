//! The token by which a member knows us. A token that runs out says so itself, so that nothing else must be remembered to
//! renew it in time: the Secret on the hub is the whole state.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::link::{Link, LinkError};
use crate::resource::Resource;

/// The longest life that the API accepts in a request; servers shorten it to what they allow.
const LONGEST_SECONDS: u64 = 1 << 32;
/// A long-lived token is renewed this long before its end, not a third of its life.
const EARLIEST: SignedDuration = SignedDuration::from_hours(30 * 24);

/// What a token says of itself. Nothing here was verified: it only tells when to ask for another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Claims {
    pub(super) namespace: String,
    pub(super) account: String,
    issued: Timestamp,
    expires: Timestamp,
}

impl Claims {
    /// The claims of a service account's token that runs out; `None` for any other.
    pub(super) fn of(token: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Payload {
            sub: String,
            iat: i64,
            exp: i64,
        }
        let mut parts = token.split('.');
        let (_, payload, _) = (parts.next()?, parts.next()?, parts.next()?);
        let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
        let payload: Payload = serde_json::from_slice(&payload).ok()?;
        let account = payload.sub.strip_prefix("system:serviceaccount:")?;
        let (namespace, account) = account.split_once(':')?;
        Some(Self {
            namespace: namespace.to_owned(),
            account: account.to_owned(),
            issued: Timestamp::from_second(payload.iat).ok()?,
            expires: Timestamp::from_second(payload.exp).ok()?,
        })
    }

    /// Whether it is time for another: in the last third of its life, and no sooner than a month before its end.
    pub(super) fn renewal_due(&self, now: Timestamp) -> bool {
        let life = self.expires.duration_since(self.issued);
        let early = (life / 3).min(EARLIEST);
        self.expires.duration_since(now) <= early
    }

    /// The end of its life.
    pub(super) fn expires(&self) -> Timestamp {
        self.expires
    }
}

/// Asks a server for a token of a service account that lives as long as the server allows.
pub(super) async fn request(link: &Link, namespace: &str, account: &str) -> Result<String, LinkError> {
    let accounts = Resource::new("", "v1", "serviceaccounts", "ServiceAccount", true);
    let path = accounts.object(namespace, account) + "/token";
    let body = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"expirationSeconds": LONGEST_SECONDS},
    });
    let answer = link.create(&path, body.to_string().into_bytes()).await?;
    let answer: Value = serde_json::from_slice(&answer)
        .map_err(|error| LinkError::BadAnswer(format!("TokenRequest: {error}")))?;
    match answer["status"]["token"].as_str() {
        Some(token) if !token.is_empty() => Ok(token.to_owned()),
        _ => Err(LinkError::BadAnswer("TokenRequest: no token in it".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(payload: &Value) -> String {
        format!("e30.{}.sig", URL_SAFE_NO_PAD.encode(payload.to_string()))
    }

    #[test]
    fn only_tokens_of_accounts_that_run_out_have_claims() {
        let account = "system:serviceaccount:ns:me";
        let cases = [
            (token(&json!({"sub": account, "iat": 0, "exp": 90})), true),
            (token(&json!({"sub": account, "iat": 0})), false),
            (token(&json!({"sub": "admin", "iat": 0, "exp": 90})), false),
            ("opaque".to_owned(), false),
            ("a.b.c".to_owned(), false),
            (String::new(), false),
        ];
        for (token, expected) in cases {
            assert_eq!(Claims::of(&token).is_some(), expected, "{token}");
        }
    }

    #[test]
    fn tokens_are_renewed_in_their_last_third_but_no_sooner_than_a_month_before_the_end() {
        const DAY: i64 = 86_400;
        let cases = [
            // Life, age, whether it is due.
            (90, 59, false),
            (90, 60, true),
            (90, 1000, true),
            (365 * DAY, 334 * DAY, false),
            (365 * DAY, 335 * DAY, true),
        ];
        for (life, age, due) in cases {
            let claims = Claims::of(&token(
                &json!({"sub": "system:serviceaccount:ns:me", "iat": 1000, "exp": 1000 + life}),
            ))
            .expect("claims");
            let now = Timestamp::from_second(1000 + age).expect("a time");
            assert_eq!(claims.renewal_due(now), due, "{life} {age}");
        }
    }
}
