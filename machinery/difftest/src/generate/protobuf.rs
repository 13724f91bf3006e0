//! Objects as typed clients send them: ConfigMaps in protobuf.

use serde_json::Value;

/// A ConfigMap as the body of a request, in hexadecimal digits; none if it has something that cannot be said in protobuf.
pub(super) fn config_map(object: &Value) -> Option<String> {
    let mut raw = field(1, &metadata(&object["metadata"])?);
    raw.extend(texts(2, &object["data"])?);
    if !object["binaryData"].is_null() {
        return None;
    }
    if let Some(fixed) = object["immutable"].as_bool() {
        raw.extend([4 << 3, u8::from(fixed)]);
    }
    let kind = [field(1, b"v1"), field(2, b"ConfigMap")].concat();
    let body = [
        b"k8s\0".to_vec(),
        field(1, &kind),
        field(2, &raw),
        field(3, b""),
        field(4, b""),
    ];
    Some(body.concat().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn metadata(metadata: &Value) -> Option<Vec<u8>> {
    let mut raw = Vec::new();
    for (key, value) in metadata.as_object()? {
        raw.extend(match key.as_str() {
            "name" => field(1, value.as_str()?.as_bytes()),
            "labels" => texts(11, value)?,
            "annotations" => texts(12, value)?,
            "finalizers" => {
                let all = value.as_array()?.iter();
                let each: Option<Vec<_>> = all.map(|one| Some(field(14, one.as_str()?.as_bytes()))).collect();
                each?.concat()
            }
            _ => return None,
        });
    }
    Some(raw)
}

/// A map of texts, each entry a message of its own.
fn texts(number: u8, map: &Value) -> Option<Vec<u8>> {
    let mut raw = Vec::new();
    for (key, value) in map.as_object().into_iter().flatten() {
        let entry = [field(1, key.as_bytes()), field(2, value.as_str()?.as_bytes())].concat();
        raw.extend(field(number, &entry));
    }
    Some(raw)
}

fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut raw = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length >= 0x80 {
        raw.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    raw.push(length as u8);
    raw.extend_from_slice(bytes);
    raw
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_is_what_is_read() {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "a", "labels": {"x": "y"}, "annotations": {"n": "a longer text ".repeat(12)}, "finalizers": ["a/b"]},
            "data": {"k": "v", "l": ""},
            "immutable": true,
        });
        let digits = config_map(&object).unwrap();
        let bytes: Vec<u8> = (0..digits.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
            .collect();
        let read = machinery_wire::decode_proto(&bytes).unwrap();
        assert_eq!(read.value, object);
        assert_eq!(
            config_map(&json!({"metadata": {"name": "a"}, "data": {"k": 5}})),
            None
        );
    }
}
