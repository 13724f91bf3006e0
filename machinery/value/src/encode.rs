//! Values to bytes: JSON as Go's encoder writes numbers, and YAML for those who ask for it.

use std::io;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::Formatter;

use crate::gofmt::json_float;

/// Writes compact JSON whose floats look as Go writes them: an integral float has no fraction.
struct GoNumbers;

impl Formatter for GoNumbers {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(json_float(value).as_bytes())
    }
}

/// Counts bytes instead of keeping them.
struct Counter(usize);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The value as compact JSON, object keys sorted.
pub fn to_vec(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(256);
    write(value, &mut bytes)
        .expect("a Value has string keys and finite numbers, and both writers never fail");
    bytes
}

/// How many bytes [`to_vec`] would give of this as a value; of what is none, those before it fails.
pub fn encoded_len(value: &impl Serialize) -> usize {
    let mut counter = Counter(0);
    // What was counted before a failure is the answer.
    let _ = write(value, &mut counter);
    counter.0
}

fn write(value: &impl Serialize, writer: &mut impl io::Write) -> serde_json::Result<()> {
    value.serialize(&mut serde_json::Serializer::with_formatter(writer, GoNumbers))
}

/// The value as one YAML document that ends with a newline.
pub fn to_yaml(value: &Value) -> String {
    // Folding would break long lines that people grep and copy, so only literal blocks are used.
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    match serde_saphyr::to_string_with_options(value, options) {
        Ok(text) => text,
        // JSON is YAML: what the YAML writer should ever refuse is still answered.
        Err(_) => String::from_utf8_lossy(&to_vec(value)).into_owned() + "\n",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_compact_sorted_and_writes_floats_as_go() {
        let value = json!({"b": 1.0, "a": [1e21, 1.25, -7], "c": "é\n"});
        let bytes = to_vec(&value);
        assert_eq!(
            String::from_utf8_lossy(&bytes),
            r#"{"a":[1e+21,1.25,-7],"b":1,"c":"é\n"}"#
        );
        assert_eq!(encoded_len(&value), bytes.len());
    }

    #[test]
    fn yaml_reads_as_kubectl_prints_it() {
        let value = json!({
            "kind": "ConfigMap",
            "data": {"yes": "no", "number": "1", "text": "one\ntwo\n", "empty": ""},
            "list": [{"name": "a", "ports": [80]}, {"name": "b"}],
            "none": {},
        });
        let expected = "data:\n  empty: \"\"\n  number: \"1\"\n  text: |\n    one\n    two\n  \"yes\": \"no\"\nkind: ConfigMap\n\
                        list:\n- name: a\n  ports:\n  - 80\n- name: b\nnone: {}\n";
        assert_eq!(to_yaml(&value), expected);
    }
}
