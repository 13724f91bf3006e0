//! A peer certificate as a user: the common name is the name, the organisations are the groups.
//!
//! That the certificate comes from our authority was checked before ([`crate::pki::Clients`]), once for the connection. A
//! connection can outlive the certificate: so validity is asked again for every request, with [`PeerCertificate::user`].

mod request;

use std::sync::Arc;

use jiff::Timestamp;
use x509_parser::der_parser::asn1_rs::Tag;
use x509_parser::der_parser::oid;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::user::{EXTRA_CREDENTIAL_ID, UserInfo};

pub use request::{RequestError, SigningRequest};

/// Why a certificate does not say who the peer is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum X509Error {
    /// It cannot be read.
    #[error("the client certificate cannot be read: {0}")]
    Malformed(String),
    /// No authority that we know vouches for it, or not now.
    #[error("the client certificate cannot be verified: {0}")]
    Unverified(String),
    /// It names nobody; such a peer is treated as one without a certificate.
    #[error("the client certificate has no common name")]
    NoCommonName,
    /// The attribute for the uid is there twice, or is not text.
    #[error("the client certificate's uid must be one string")]
    BadUid,
    /// Now is outside its validity.
    #[error("x509: certificate has expired or is not yet valid: current time {now} is {}", if *.expired { format!("after {bound}") } else { format!("before {bound}") })]
    NotValidNow {
        /// The time of the request.
        now: Timestamp,
        /// The end of the validity that was crossed.
        bound: Timestamp,
        /// Whether that was its end rather than its beginning.
        expired: bool,
    },
}

/// The user whom a certificate names, read once for each connection.
#[derive(Clone, Debug)]
pub struct PeerCertificate {
    user: Arc<UserInfo>,
    from: Timestamp,
    until: Timestamp,
}

impl PeerCertificate {
    /// Reads a certificate that was verified (the first of the chain), in DER.
    pub fn parse(der: &[u8]) -> Result<Self, X509Error> {
        let malformed = |error: String| X509Error::Malformed(error);
        let (_, certificate) =
            X509Certificate::from_der(der).map_err(|error| malformed(error.to_string()))?;
        let subject = certificate.subject();
        let text = |value: &x509_parser::x509::AttributeTypeAndValue<'_>| value.as_str().map(str::to_owned);
        // The last one counts where there are several, as in other implementations.
        let name = subject.iter_common_name().last().map(text).transpose();
        let name = name
            .map_err(|error| malformed(error.to_string()))?
            .unwrap_or_default();
        if name.is_empty() {
            return Err(X509Error::NoCommonName);
        }
        let groups: Result<Vec<String>, _> = subject.iter_organization().map(text).collect();
        let mut user = UserInfo::new(name, groups.map_err(|error| malformed(error.to_string()))?);
        user.uid = uid(&certificate)?;
        user.extra
            .insert(EXTRA_CREDENTIAL_ID.to_owned(), vec![fingerprint(der)]);

        let at = |seconds: i64| Timestamp::from_second(seconds).map_err(|error| malformed(error.to_string()));
        let validity = certificate.validity();
        let (from, until) = (
            at(validity.not_before.timestamp())?,
            at(validity.not_after.timestamp())?,
        );
        Ok(Self {
            user: Arc::new(user.authenticated()),
            from,
            until,
        })
    }

    /// The user, if the certificate is valid at this time.
    pub fn user(&self, now: Timestamp) -> Result<&Arc<UserInfo>, X509Error> {
        if now < self.from {
            return Err(X509Error::NotValidNow {
                now,
                bound: self.from,
                expired: false,
            });
        }
        if now > self.until {
            return Err(X509Error::NotValidNow {
                now,
                bound: self.until,
                expired: true,
            });
        }
        Ok(&self.user)
    }

    /// Until when the certificate is valid.
    pub fn until(&self) -> Timestamp {
        self.until
    }
}

/// The user whom a certificate names, if it is valid at this time. For more than one request on a connection,
/// keep a [`PeerCertificate`] instead.
pub fn user(der: &[u8], now: Timestamp) -> Result<UserInfo, X509Error> {
    Ok(UserInfo::clone(PeerCertificate::parse(der)?.user(now)?))
}

/// The attribute that Kubernetes reserves for the user's uid, or nothing.
fn uid(certificate: &X509Certificate<'_>) -> Result<String, X509Error> {
    let wanted = oid!(1.3.6.1.4.1.57683.2);
    let mut found = certificate
        .subject()
        .iter_attributes()
        .filter(|a| *a.attr_type() == wanted);
    let Some(attribute) = found.next() else {
        return Ok(String::new());
    };
    let is_text = [Tag::Utf8String, Tag::PrintableString].contains(&attribute.attr_value().header.tag());
    match attribute.as_str() {
        Ok(uid) if is_text && found.next().is_none() && !uid.is_empty() => Ok(uid.to_owned()),
        _ => Err(X509Error::BadUid),
    }
}

fn fingerprint(der: &[u8]) -> String {
    use std::fmt::Write as _;
    let digest = ring::digest::digest(&ring::digest::SHA256, der);
    let mut out = "X509SHA256=".to_owned();
    for byte in digest.as_ref() {
        let _ = write!(out, "{byte:02x}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DistinguishedName, DnType, DnValue, KeyPair};

    fn uid_type() -> DnType {
        DnType::from_oid(&[1, 3, 6, 1, 4, 1, 57683, 2])
    }

    fn certificate(subject: &[(DnType, DnValue)]) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        for (kind, value) in subject {
            params.distinguished_name.push(kind.clone(), value.clone());
        }
        params
            .self_signed(&KeyPair::generate().unwrap())
            .unwrap()
            .der()
            .to_vec()
    }

    #[test]
    fn subjects_and_whom_they_name() {
        let name = || (DnType::CommonName, DnValue::from("ann"));
        let group = (DnType::OrganizationName, DnValue::from("devs"));
        let uid = (uid_type(), DnValue::from("u-1"));
        let number = (uid_type(), DnValue::Ia5String("u-1".try_into().unwrap()));
        for (subject, expected) in [
            (vec![name()], Ok(("ann", "", vec!["system:authenticated"]))),
            (
                vec![group.clone(), name(), uid],
                Ok(("ann", "u-1", vec!["devs", "system:authenticated"])),
            ),
            (vec![group], Err(X509Error::NoCommonName)),
            (
                vec![(DnType::CommonName, DnValue::from(""))],
                Err(X509Error::NoCommonName),
            ),
            (vec![name(), number], Err(X509Error::BadUid)),
            (
                vec![name(), (uid_type(), DnValue::from(""))],
                Err(X509Error::BadUid),
            ),
        ] {
            let got = user(&certificate(&subject), "2026-01-01T00:00:00Z".parse().unwrap());
            let got = got.as_ref().map(|u| {
                (
                    u.name.as_str(),
                    u.uid.as_str(),
                    u.groups.iter().map(String::as_str).collect(),
                )
            });
            assert_eq!(got.map_err(Clone::clone), expected);
        }
    }
}
