use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::Timestamp;
use machinery_value::Value;
use serde_json::json;

use super::*;

const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

fn tokens() -> ServiceAccountTokens {
    ServiceAccountTokens::new(Arc::new(TokenKey::generate().unwrap()), ISSUER)
}

fn account() -> ObjectRef {
    ObjectRef {
        name: "sa".into(),
        uid: "sa-uid".into(),
    }
}

fn issue(tokens: &ServiceAccountTokens, audiences: &[String], bound: Option<&BoundObject>) -> Issued {
    let node = ObjectRef {
        name: "n1".into(),
        uid: String::new(),
    };
    let wanted = Issue {
        namespace: "ns",
        account: &account(),
        audiences,
        expiration_seconds: 600,
        bound,
        node: Some(&node),
    };
    tokens.issue(&wanted, at(1000)).unwrap()
}

fn part(token: &str, number: usize) -> Value {
    let part = token.split('.').nth(number).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

#[test]
fn claims_are_those_of_kubernetes() {
    let tokens = tokens();
    let pod = BoundObject {
        kind: BoundKind::Pod,
        name: "p".into(),
        uid: "p-uid".into(),
    };
    let issued = issue(&tokens, &[], Some(&pod));
    assert_eq!(issued.expires, at(1600));
    assert_eq!(issued.audiences, [ISSUER]);
    let header = part(&issued.token, 0);
    assert_eq!(header["alg"], "ES256");
    assert_eq!(header["kid"], tokens.jwks()["keys"][0]["kid"]);
    let mut claims = part(&issued.token, 1);
    assert!(uuid::Uuid::parse_str(claims["jti"].take().as_str().unwrap()).is_ok());
    assert_eq!(
        claims,
        json!({
            "iss": ISSUER, "sub": "system:serviceaccount:ns:sa", "aud": [ISSUER],
            "exp": 1600, "iat": 1000, "nbf": 1000, "jti": null,
            "kubernetes.io": {
                "namespace": "ns",
                "serviceaccount": {"name": "sa", "uid": "sa-uid"},
                "pod": {"name": "p", "uid": "p-uid"},
                "node": {"name": "n1"},
            },
        })
    );
    let legacy = tokens.issue_legacy("ns", &account(), "secret").unwrap();
    assert_eq!(
        part(&legacy, 1),
        json!({
            "iss": "kubernetes/serviceaccount", "sub": "system:serviceaccount:ns:sa",
            "kubernetes.io/serviceaccount/namespace": "ns",
            "kubernetes.io/serviceaccount/secret.name": "secret",
            "kubernetes.io/serviceaccount/service-account.name": "sa",
            "kubernetes.io/serviceaccount/service-account.uid": "sa-uid",
        })
    );
}

#[test]
fn a_verified_token_says_who_and_what_to_look_up() {
    let tokens = tokens();
    for (kind, keys, looks) in [
        (
            BoundKind::Pod,
            vec!["credential-id", "node-name", "pod-name", "pod-uid"],
            vec![("ServiceAccount", "ns", "sa"), ("Pod", "ns", "b")],
        ),
        (
            BoundKind::Secret,
            vec!["credential-id"],
            vec![("ServiceAccount", "ns", "sa"), ("Secret", "ns", "b")],
        ),
        (
            BoundKind::Node,
            vec!["credential-id", "node-name", "node-uid"],
            vec![("ServiceAccount", "ns", "sa"), ("Node", "", "b")],
        ),
    ] {
        let bound = BoundObject {
            kind,
            name: "b".into(),
            uid: "b-uid".into(),
        };
        let issued = issue(&tokens, &[], Some(&bound));
        let verified = tokens.verify(&issued.token, &[], at(1100)).unwrap();
        assert_eq!(verified.bound, Some(bound));
        assert_eq!(verified.expires, Some(at(1600)));
        assert_eq!(verified.service_account_uid, "sa-uid");
        assert_eq!(verified.user.name, "system:serviceaccount:ns:sa");
        assert_eq!(
            verified.user.groups,
            [
                "system:serviceaccounts",
                "system:serviceaccounts:ns",
                "system:authenticated"
            ]
        );
        let found: Vec<&str> = verified
            .user
            .extra
            .keys()
            .map(|k| k.rsplit('/').next().unwrap())
            .collect();
        assert_eq!(found, keys);
        let checks = verified.live_checks();
        let found: Vec<_> = checks
            .iter()
            .map(|c| (c.kind, c.namespace.as_str(), c.name.as_str()))
            .collect();
        assert_eq!(found, looks);
    }
}

#[test]
fn time_audience_issuer_and_signature_are_checked() {
    let (tokens, stranger) = (tokens(), tokens());
    let plain = issue(&tokens, &[], None).token;
    let vault = issue(&tokens, &["vault".into(), "db".into()], None).token;
    let resigned = |claims: Value| jwt::sign(&tokens_key(&tokens), &claims).unwrap();
    let claims = part(&plain, 1);
    let with = |key: &str, value: Value| {
        let mut claims = claims.clone();
        claims[key] = value;
        resigned(claims)
    };
    let mut tampered = plain.clone();
    let middle = tampered.find('.').unwrap() + 20;
    let other = if tampered.as_bytes()[middle] == b'A' {
        "B"
    } else {
        "A"
    };
    tampered.replace_range(middle..=middle, other);
    let signature_cut = plain[..plain.len() - 2].to_owned();
    let none = {
        let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#);
        let rest = plain.split_once('.').unwrap().1.rsplit_once('.').unwrap().0;
        format!("{header}.{rest}.")
    };
    let audience_text =
        format!(r#"token audiences ["vault" "db"] is invalid for the target audiences ["{ISSUER}"]"#);
    type Row<'a> = (&'a str, &'a [&'a str], i64, Result<&'a [&'a str], &'a str>);
    let table: Vec<Row<'_>> = vec![
        (&plain, &[], 1000, Ok(&[ISSUER])),
        (&plain, &[], 1660, Ok(&[ISSUER])),
        (&plain, &[], 1661, Err("service account token has expired")),
        (&plain, &[], 940, Ok(&[ISSUER])),
        (&plain, &[], 939, Err("service account token is not valid yet")),
        (&vault, &[], 1000, Err(&audience_text)),
        (&vault, &["db", "web"], 1000, Ok(&["db"])),
        (&tampered, &[], 1000, Err("?")),
        (
            &signature_cut,
            &[],
            1000,
            Err("go-jose/go-jose: error in cryptographic primitive"),
        ),
        (
            &none,
            &[],
            1000,
            Err("go-jose/go-jose: error in cryptographic primitive"),
        ),
        ("", &[], 1000, Err("invalid bearer token")),
        ("a.b.c", &[], 1000, Err("invalid bearer token")),
        ("secret", &[], 1000, Err("invalid bearer token")),
    ];
    for (token, audiences, now, expected) in table {
        let audiences: Vec<String> = audiences.iter().map(|&a| a.to_owned()).collect();
        let got = tokens.verify(token, &audiences, at(now));
        match (got, expected) {
            (Ok(verified), Ok(audiences)) => assert_eq!(verified.audiences, audiences),
            (Err(_), Err("?")) => {}
            (Err(error), Err(text)) => assert_eq!(error.to_string(), text),
            (got, expected) => panic!("{got:?} instead of {expected:?}"),
        }
    }
    for (token, text) in [
        (with("iss", json!("https://elsewhere")), "invalid bearer token"),
        (
            with("sub", json!("system:serviceaccount:ns:other")),
            "sub claim is invalid",
        ),
        (with("sub", json!("system:admin")), "sub claim is invalid"),
        (with("exp", Value::Null), "exp claim is missing"),
        (
            with("iat", json!(5000)),
            "service account token is issued in the future",
        ),
        (with("kubernetes.io", json!({})), "sub claim is invalid"),
        (
            stranger.issue_legacy("ns", &account(), "s").unwrap(),
            "invalid signature, no keys found",
        ),
        (
            issue(&stranger, &[], None).token,
            "invalid signature, no keys found",
        ),
    ] {
        assert_eq!(
            tokens.verify(&token, &[], at(1000)).unwrap_err().to_string(),
            text
        );
    }
    // A signature that was found good is remembered, its time and audience are not.
    assert!(tokens.verify(&plain, &[], at(1000)).is_ok());
    assert_eq!(tokens.verify(&plain, &[], at(9000)), Err(TokenError::Expired));
    assert!(tokens.verify(&plain, &["db".to_owned()], at(1000)).is_err());
    // One audience may stand alone.
    assert!(tokens.verify(&with("aud", json!(ISSUER)), &[], at(1000)).is_ok());
}

fn tokens_key(tokens: &ServiceAccountTokens) -> Arc<TokenKey> {
    tokens.signing_key()
}

#[test]
fn former_keys_are_believed_and_lifetimes_capped() {
    let (old, new) = (
        Arc::new(TokenKey::generate().unwrap()),
        Arc::new(TokenKey::generate().unwrap()),
    );
    let before = ServiceAccountTokens::new(Arc::clone(&old), ISSUER);
    let after = ServiceAccountTokens::new(new, ISSUER)
        .with_former_key(old)
        .with_max_expiration(60);
    let token = issue(&before, &[], None).token;
    assert!(after.verify(&token, &[], at(1000)).is_ok());
    let fresh = issue(&after, &[], None);
    assert_eq!(fresh.expires, at(1060));
    assert_eq!(
        before.verify(&fresh.token, &[], at(1000)),
        Err(TokenError::UnknownKey)
    );
    assert_eq!(after.jwks()["keys"].as_array().unwrap().len(), 2);
}

#[test]
fn live_objects_are_judged() {
    let tokens = tokens();
    let pod = BoundObject {
        kind: BoundKind::Pod,
        name: "p".into(),
        uid: "p-uid".into(),
    };
    let bound = issue(&tokens, &[], Some(&pod)).token;
    let checks = tokens.verify(&bound, &[], at(1000)).unwrap().live_checks();
    let legacy = tokens.issue_legacy("ns", &account(), "s").unwrap();
    let verified = tokens.verify(&legacy, &[], at(i64::from(u32::MAX))).unwrap();
    assert_eq!(verified.expires, None);
    let secret = verified.live_checks().remove(1);
    let object =
        |uid: &str, deleted: Option<&str>| json!({"metadata": {"uid": uid, "deletionTimestamp": deleted}});
    let holding = |text: &str| json!({"metadata": {}, "data": {"token": STANDARD.encode(text)}});
    let dying = json!({"metadata": {"deletionTimestamp": "1970-01-01T00:16:40Z"}, "data": {"token": STANDARD.encode(&legacy)}});
    let (sa, pod) = (&checks[0], &checks[1]);
    let now = at(1000);
    for (check, found, token, expected) in [
        (sa, Some(object("sa-uid", None)), &bound, ""),
        (
            sa,
            Some(object("sa-uid", Some("1970-01-01T00:15:40Z"))),
            &bound,
            "",
        ),
        (
            sa,
            Some(object("sa-uid", Some("1970-01-01T00:15:39Z"))),
            &bound,
            "service account ns/sa has been deleted",
        ),
        (
            sa,
            Some(object("new", None)),
            &bound,
            "service account UID (new) does not match claim (sa-uid)",
        ),
        (sa, None, &bound, "serviceaccounts \"sa\" not found"),
        (pod, Some(object("p-uid", None)), &bound, ""),
        (
            pod,
            Some(object("new", None)),
            &bound,
            "pod UID (new) does not match service account pod ref claim (p-uid)",
        ),
        (
            pod,
            Some(object("p-uid", Some("1970-01-01T00:00:00Z"))),
            &bound,
            "service account token has been invalidated",
        ),
        (pod, None, &bound, "service account token has been invalidated"),
        (&secret, Some(holding(&legacy)), &legacy, ""),
        (
            &secret,
            Some(holding("x")),
            &legacy,
            "Token does not match server's copy",
        ),
        (
            &secret,
            Some(json!({})),
            &legacy,
            "Token does not match server's copy",
        ),
        (&secret, Some(dying), &legacy, "Token has been invalidated"),
        (&secret, None, &legacy, "Token has been invalidated"),
    ] {
        let got = check.judge(found.as_ref(), token, now);
        assert_eq!(
            got.map_or_else(|error| error.to_string(), |()| String::new()),
            expected
        );
    }
}

#[test]
fn keys_come_back_from_pem_and_are_published() {
    let (key, pem) = TokenKey::generate_with_pem().unwrap();
    let again = TokenKey::from_pem(&pem).unwrap();
    assert_eq!(again.id(), key.id());
    let tokens = ServiceAccountTokens::new(Arc::new(key), ISSUER);
    let jwk = &tokens.jwks()["keys"][0];
    assert_eq!(
        (&jwk["kty"], &jwk["crv"], &jwk["alg"], &jwk["use"]),
        (&json!("EC"), &json!("P-256"), &json!("ES256"), &json!("sig"))
    );
    // A verifier that has only the published key must come to the same result.
    let coordinate = |name: &str| URL_SAFE_NO_PAD.decode(jwk[name].as_str().unwrap()).unwrap();
    let point = [vec![4], coordinate("x"), coordinate("y")].concat();
    let token = issue(&tokens, &[], None).token;
    let (signed, signature) = token.rsplit_once('.').unwrap();
    ring::signature::UnparsedPublicKey::new(&ring::signature::ECDSA_P256_SHA256_FIXED, point)
        .verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap())
        .unwrap();
    assert_eq!(
        tokens.openid_configuration("https://1.2.3.4:6443/openid/v1/jwks"),
        json!({
            "issuer": ISSUER,
            "jwks_uri": "https://1.2.3.4:6443/openid/v1/jwks",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        })
    );
    for bad in [
        "",
        "x",
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
    ] {
        assert!(TokenKey::from_pem(bad).is_err());
    }
    assert!(!format!("{tokens:?}").contains("pair"));
}

#[test]
fn requests_are_checked() {
    let read = |spec: Value| TokenRequest::from_json(&json!({"spec": spec}));
    let plain = read(json!({})).unwrap();
    assert_eq!(
        (plain.expiration_seconds, plain.audiences.len(), plain.bound),
        (3600, 0, None)
    );
    assert_eq!(
        TokenRequest::from_json(&Value::Null).unwrap().expiration_seconds,
        3600
    );
    let full = read(json!({"audiences": ["a"], "expirationSeconds": 600,
        "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": "u"}}));
    let bound = full.unwrap().bound.unwrap();
    assert_eq!(
        (bound.kind.as_str(), bound.name.as_str(), bound.uid.as_str()),
        ("Pod", "p", "u")
    );
    for (seconds, text) in [
        (
            599_i64,
            "spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes",
        ),
        (
            (1 << 32) + 1,
            "spec.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds",
        ),
    ] {
        assert_eq!(
            read(json!({"expirationSeconds": seconds})).unwrap_err()[0].to_string(),
            text
        );
    }
    assert!(read(json!({"expirationSeconds": 1_i64 << 32})).is_ok());
}

#[test]
fn fixed_tokens_and_headers() {
    let mut tokens = StaticTokens::new([("abc".to_owned(), UserInfo::new("admin", ["system:masters"]))]);
    assert_eq!(
        tokens.find("abc").unwrap().groups,
        ["system:masters", "system:authenticated"]
    );
    for unknown in ["", "ab", "abcd", "ABC"] {
        assert_eq!(tokens.find(unknown), None);
    }
    tokens.insert("", UserInfo::anonymous());
    assert_eq!(tokens.find(""), None);
    tokens.insert("abc", UserInfo::new("other", ["g"]));
    assert_eq!(tokens.find("abc").unwrap().name, "other");
    assert_eq!(format!("{tokens:?}"), r#"StaticTokens { users: ["other"] }"#);

    for (header, token) in [
        ("Bearer abc", Some("abc")),
        ("bearer abc", Some("abc")),
        (" Bearer abc ", Some("abc")),
        ("Bearer", None),
        ("Bearer ", None),
        ("Bearer  abc", None),
        ("Basic abc", None),
        ("", None),
    ] {
        assert_eq!(bearer_token(header), token, "{header:?}");
    }
}
