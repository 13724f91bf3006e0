//! The kubeconfig: a context, cluster and user for each cluster, all of the cluster's name.

use std::path::Path;

use machinery_auth::Pki;
use machinery_value::{Value, decode, encode};
use serde_json::json;

use crate::exit::Failure;
use crate::up::cluster::Cluster;
use crate::up::directory::write_file;

/// The administrator of every cluster of the fleet.
const USER: &str = "lockgate-admin";
const GROUP: &str = "system:masters";

/// Says in a file that it is ours to replace.
const EXTENSION: &str = "lockgate";

/// Writes the file; entries of others in it are kept, and only touched at all when `merge` asks for it.
pub(crate) fn write(path: &Path, pki: &Pki, clusters: &[Cluster], merge: bool) -> Result<(), Failure> {
    let present = read(path)?;
    let foreign = present.as_ref().is_some_and(|config| !is_ours(config));
    if foreign && !merge {
        return Err(Failure::Usage(format!(
            "{} holds a kubeconfig of somebody else: add --merge to add the contexts of this fleet to it, \
             or name another file",
            path.display()
        )));
    }
    let ours = config(pki, clusters)?;
    let config = match present {
        Some(present) if foreign => merged(present, ours),
        _ => ours,
    };
    write_file(path, encode::to_yaml(&config).as_bytes())
}

fn read(path: &Path) -> Result<Option<Value>, Failure> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => {
            return Err(Failure::Unwritable {
                path: path.to_owned(),
                source,
            });
        }
    };
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    let refuse = |why: String| {
        Failure::Usage(format!(
            "{} is no kubeconfig ({why}): it was left alone",
            path.display()
        ))
    };
    let value = decode::from_yaml(&bytes)
        .map_err(|e| refuse(e.to_string()))?
        .value;
    if value["kind"] == "Config" {
        Ok(Some(value))
    } else {
        Err(refuse("its kind is not Config".into()))
    }
}

fn is_ours(config: &Value) -> bool {
    config["extensions"]
        .as_array()
        .is_some_and(|list| list.iter().any(|e| e["name"] == EXTENSION))
}

fn config(pki: &Pki, clusters: &[Cluster]) -> Result<Value, Failure> {
    let (certificate, key) = pki
        .client_cert(USER, &[GROUP])
        .map_err(|e| Failure::Other(format!("failed to make a certificate: {e}")))?;
    let names = |make: &dyn Fn(&Cluster) -> Value| clusters.iter().map(make).collect::<Vec<Value>>();
    Ok(json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": clusters.first().map(|c| c.name.as_str()).unwrap_or_default(),
        "clusters": names(&|c| json!({"name": c.name, "cluster": {
            "server": c.url(), "certificate-authority-data": base64(pki.ca_pem())}})),
        "users": names(&|c| json!({"name": c.name, "user": {
            "client-certificate-data": base64(&certificate), "client-key-data": base64(&key)}})),
        "contexts": names(&|c| json!({"name": c.name, "context": {"cluster": c.name, "user": c.name}})),
        "extensions": [{"name": EXTENSION, "extension": {"version": env!("CARGO_PKG_VERSION")}}],
    }))
}

/// Adds our entries to the file of somebody else; theirs of the same name give way, everything else stays.
fn merged(mut theirs: Value, ours: Value) -> Value {
    for section in ["clusters", "users", "contexts"] {
        let added = ours[section].as_array().cloned().unwrap_or_default();
        let mut kept: Vec<Value> = theirs[section].as_array().cloned().unwrap_or_default();
        kept.retain(|entry| !added.iter().any(|a| a["name"] == entry["name"]));
        kept.extend(added);
        theirs[section] = Value::Array(kept);
    }
    theirs["current-context"] = ours["current-context"].clone();
    theirs
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_entries_survive_a_merge() {
        let theirs = json!({"kind": "Config", "contexts": [{"name": "prod"}, {"name": "hub", "context": 1}], "preferences": {"x": 1}});
        let ours = json!({"contexts": [{"name": "hub", "context": 2}], "current-context": "hub"});
        let merged = merged(theirs, ours);
        assert_eq!(
            merged["contexts"],
            json!([{"name": "prod"}, {"name": "hub", "context": 2}])
        );
        assert_eq!(merged["preferences"]["x"], 1);
        assert_eq!(merged["current-context"], "hub");
    }
}
