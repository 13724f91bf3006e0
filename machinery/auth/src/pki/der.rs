//! As much DER as a client certificate needs.
//!
//! The certificate library allows one organisation for a subject, and a user can be in many groups; so the part
//! that is signed is written here.

use jiff::Timestamp;
use jiff::tz::TimeZone;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const UTF8_STRING: u8 = 0x0c;

/// An object identifier, already encoded.
type Oid = &'static [u8];
const OID_COMMON_NAME: Oid = &[0x55, 0x04, 0x03];
const OID_ORGANIZATION: Oid = &[0x55, 0x04, 0x0a];
const OID_KEY_USAGE: Oid = &[0x55, 0x1d, 0x0f];
const OID_BASIC_CONSTRAINTS: Oid = &[0x55, 0x1d, 0x13];
const OID_AUTHORITY_KEY_ID: Oid = &[0x55, 0x1d, 0x23];
const OID_EXTENDED_KEY_USAGE: Oid = &[0x55, 0x1d, 0x25];
const OID_CLIENT_AUTH: Oid = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02];
const OID_ECDSA_WITH_SHA256: Oid = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];

/// What a client certificate says.
pub(super) struct ClientCertificate<'a> {
    /// A positive number of at most 20 bytes.
    pub(super) serial: [u8; 16],
    /// The authority's name, encoded.
    pub(super) issuer: &'a [u8],
    pub(super) issuer_key_id: &'a [u8],
    pub(super) from: Timestamp,
    pub(super) until: Timestamp,
    pub(super) user: &'a str,
    pub(super) groups: Vec<&'a str>,
    /// The subject's public key as SubjectPublicKeyInfo.
    pub(super) public_key_info: &'a [u8],
}

impl ClientCertificate<'_> {
    /// The part that the authority signs, with ECDSA and SHA-256.
    pub(super) fn to_be_signed(&self) -> Vec<u8> {
        let groups = self.groups.iter().map(|group| attribute(OID_ORGANIZATION, group));
        let subject: Vec<u8> = groups
            .chain([attribute(OID_COMMON_NAME, self.user)])
            .flatten()
            .collect();
        let extensions = [
            // digitalSignature is the first bit of eight, seven of them unused.
            extension(OID_KEY_USAGE, true, &[0x03, 0x02, 0x07, 0x80]),
            extension(
                OID_EXTENDED_KEY_USAGE,
                false,
                &seq(&[&tlv(0x06, OID_CLIENT_AUTH)]),
            ),
            extension(OID_BASIC_CONSTRAINTS, true, &seq(&[])),
            extension(
                OID_AUTHORITY_KEY_ID,
                false,
                &seq(&[&tlv(0x80, self.issuer_key_id)]),
            ),
        ];
        seq(&[
            &tlv(0xa0, &tlv(0x02, &[2])),
            &integer(&self.serial),
            &signature_algorithm(),
            self.issuer,
            &seq(&[&time(self.from), &time(self.until)]),
            &tlv(SEQUENCE, &subject),
            self.public_key_info,
            &tlv(0xa3, &tlv(SEQUENCE, &extensions.concat())),
        ])
    }
}

/// The signed part and its signature as a certificate.
pub(super) fn certificate(to_be_signed: &[u8], signature: &[u8]) -> Vec<u8> {
    let bits = [&[0], signature].concat();
    seq(&[to_be_signed, &signature_algorithm(), &tlv(0x03, &bits)])
}

fn signature_algorithm() -> Vec<u8> {
    seq(&[&tlv(0x06, OID_ECDSA_WITH_SHA256)])
}

fn attribute(oid: Oid, value: &str) -> Vec<u8> {
    tlv(SET, &seq(&[&tlv(0x06, oid), &tlv(UTF8_STRING, value.as_bytes())]))
}

fn extension(oid: Oid, critical: bool, value: &[u8]) -> Vec<u8> {
    let critical: &[u8] = if critical { &[0x01, 0x01, 0xff] } else { &[] };
    seq(&[&tlv(0x06, oid), critical, &tlv(0x04, value)])
}

/// Years up to 2049 have two digits, later ones four.
fn time(at: Timestamp) -> Vec<u8> {
    let at = at.to_zoned(TimeZone::UTC);
    if (1950..2050).contains(&at.year()) {
        tlv(0x17, at.strftime("%y%m%d%H%M%SZ").to_string().as_bytes())
    } else {
        tlv(0x18, at.strftime("%Y%m%d%H%M%SZ").to_string().as_bytes())
    }
}

fn integer(magnitude: &[u8]) -> Vec<u8> {
    let start = magnitude
        .iter()
        .position(|&b| b != 0)
        .unwrap_or(magnitude.len().saturating_sub(1));
    let mut bytes = magnitude[start..].to_vec();
    // A set top bit would make it negative.
    if bytes.first().is_none_or(|&b| b >= 0x80) {
        bytes.insert(0, 0);
    }
    tlv(0x02, &bytes)
}

fn seq(parts: &[&[u8]]) -> Vec<u8> {
    tlv(SEQUENCE, &parts.concat())
}

fn tlv(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    let length = content.len();
    if length < 0x80 {
        out.push(length as u8);
    } else {
        let bytes = length.to_be_bytes();
        let significant = &bytes[bytes.iter().position(|&b| b != 0).unwrap_or(0)..];
        out.push(0x80 | significant.len() as u8);
        out.extend_from_slice(significant);
    }
    out.extend_from_slice(content);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_integers() {
        assert_eq!(tlv(4, &[0; 0x7f])[..2], [4, 0x7f]);
        assert_eq!(tlv(4, &[0; 0x80])[..3], [4, 0x81, 0x80]);
        assert_eq!(tlv(4, &[0; 0x1234])[..4], [4, 0x82, 0x12, 0x34]);
        assert_eq!(integer(&[0, 0, 5]), [2, 1, 5]);
        assert_eq!(integer(&[0x80]), [2, 2, 0, 0x80]);
        assert_eq!(integer(&[0, 0]), [2, 1, 0]);
    }

    #[test]
    fn times_change_their_form_in_2050() {
        for (text, expected) in [
            ("2049-12-31T23:59:59Z", b"\x17\x0d491231235959Z".as_slice()),
            ("2050-01-01T00:00:00Z", b"\x18\x0f20500101000000Z".as_slice()),
        ] {
            assert_eq!(time(text.parse().unwrap()), expected);
        }
    }
}
