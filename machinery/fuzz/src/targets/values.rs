//! Documents, patches, selectors, paths, quantities.

use machinery_kinds::Gvk;
use machinery_value::decode::{self, DecodeError, MAX_DEPTH};
use machinery_value::jsonpath::JsonPath;
use machinery_value::labels::LabelSelector;
use machinery_value::labels::fields::FieldSelector;
use machinery_value::quantity::Quantity;
use machinery_value::strategic::{self, NoSchema};
use machinery_value::{Value, encode, hash, json_patch, merge_patch};

use super::{documents, hold, nth, objects, parts, seeds, shape, way};
use crate::{Outcome, SEPARATOR, Target};

pub(super) const TARGETS: &[Target] = &[
    Target {
        name: "json",
        about: "documents in JSON",
        seeds: || {
            let texts = seeds(&[
                r#"{"a":[1,-2.5e3,"é\u00e9\ud83d\ude00",null,true],"a":{}}"#,
                "[[[[0]]]]",
                " 12 ",
            ]);
            texts.into_iter().chain(written()).collect()
        },
        run: json,
    },
    Target {
        name: "yaml",
        about: "documents in YAML",
        seeds: || {
            let mut all = seeds(&[
                "a: &x {b: [1, 0x1f, 010, .inf, ~, yes, 2020-01-01]}\nc: *x\n<<: *x\n",
                "- |\n  text\n   more\n- >-\n  folded\n  text\n- 'it''s'\n- \"\\x41\\n\"\n",
                "? [a, b]\n: c\n!!str d: 5\n# comment\n---\nsecond\n",
            ]);
            all.extend(
                objects()
                    .iter()
                    .take(12)
                    .map(|object| encode::to_yaml(object).into_bytes()),
            );
            all
        },
        run: yaml,
    },
    Target {
        name: "json-patch",
        about: "a document and a JSON patch of it",
        seeds: || {
            seeds(&[
                "{\"a\":[1,2,{\"b\":null}],\"c\":{\"d/e\":1}}\n---\n[{\"op\":\"add\",\"path\":\"/a/-\",\"value\":{}},{\"op\":\"move\",\"from\":\"/c\",\"path\":\"/a/0\"},{\"op\":\"test\",\"path\":\"/a/-1\",\"value\":null}]",
                "{\"a\":{\"b\":{\"c\":[1]}}}\n---\n[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/a/b/c/0\"},{\"op\":\"remove\",\"path\":\"/a/b/c/1\"},{\"op\":\"replace\",\"path\":\"\",\"value\":[]}]",
            ])
        },
        run: patch_json,
    },
    Target {
        name: "merge-patch",
        about: "a document and a merge patch of it",
        seeds: || {
            seeds(&[
                "{\"a\":{\"b\":1,\"c\":[1]},\"d\":null}\n---\n{\"a\":{\"b\":null,\"e\":{\"f\":null}},\"d\":{}}",
                "[]\n---\n{\"a\":1}",
            ])
        },
        run: patch_merge,
    },
    Target {
        name: "strategic-patch",
        about: "a Deployment and a strategic merge patch of it",
        seeds: || {
            seeds(&[
                "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"a\",\"env\":[{\"name\":\"X\",\"value\":\"1\"}]},{\"name\":\"b\"}],\"volumes\":[{\"name\":\"v\",\"emptyDir\":{}}]}}}}\n---\n{\"spec\":{\"template\":{\"spec\":{\"$setElementOrder/containers\":[{\"name\":\"b\"},{\"name\":\"a\"}],\"containers\":[{\"name\":\"a\",\"env\":[{\"name\":\"X\",\"$patch\":\"delete\"}]}],\"volumes\":[{\"name\":\"v\",\"$retainKeys\":[\"name\",\"configMap\"],\"configMap\":{\"name\":\"c\"}}]}}}}",
                "{\"metadata\":{\"finalizers\":[\"a\",\"b\"],\"labels\":{\"x\":\"y\"}}}\n---\n{\"metadata\":{\"$deleteFromPrimitiveList/finalizers\":[\"a\"],\"$setElementOrder/finalizers\":[\"c\",\"b\"],\"finalizers\":[\"c\"],\"labels\":{\"$patch\":\"replace\",\"z\":null}}}",
            ])
        },
        run: patch_strategic,
    },
    Target {
        name: "selector",
        about: "label and field selectors, as text and as objects",
        seeds: || {
            seeds(&[
                "app in (a, b),tier notin (c),!x,y,z!=1,w==2,v=",
                "metadata.name=a\\,b,spec.x!=c\\=d,status.phase==Running",
                "{\"matchLabels\":{\"a\":\"b\"},\"matchExpressions\":[{\"key\":\"k\",\"operator\":\"In\",\"values\":[\"v\"]},{\"key\":\"e\",\"operator\":\"DoesNotExist\"}]}",
            ])
        },
        run: selector,
    },
    Target {
        name: "jsonpath",
        about: "a JSONPath and a document that it is asked of",
        seeds: || {
            seeds(&[
                "{.spec.containers[?(@.name==\"a\")].image}\n---\n{\"spec\":{\"containers\":[{\"name\":\"a\",\"image\":\"i\"}]}}",
                ".status.conditions[?(@.type=='Ready')].status\n---\n{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
                "$..a['b','c'][0:2:1,-1]\n---\n{\"a\":{\"b\":[1,2,3],\"c\":[[4]]}}",
                ".metadata.labels.a\\.b/c\n---\n{\"metadata\":{\"labels\":{\"a.b/c\":\"x\"}}}",
                ".a[*]..[?(@.b >= 2)]\n---\n{\"a\":[[{\"b\":1},{\"b\":2.5}]]}",
            ])
        },
        run: jsonpath,
    },
    Target {
        name: "quantity",
        about: "quantities",
        seeds: || {
            seeds(&[
                "1",
                "100m",
                "1.5Gi",
                "-0.000000001",
                "1e3",
                "12E",
                "9223372036854775807",
                "0.1n",
            ])
        },
        run: quantity,
    },
];

fn written() -> Vec<Vec<u8>> {
    objects().iter().take(12).map(encode::to_vec).collect()
}

fn json(input: &[u8]) -> Outcome {
    let decoded = match decode::from_json(input) {
        Err(error) => return Ok(way(&error.to_string())),
        Ok(decoded) => decoded,
    };
    hold(
        decode::depth(&decoded.value) <= MAX_DEPTH,
        "deeper than the bound",
    )?;
    let plain: Result<Value, _> = serde_json::from_slice(input);
    hold(plain.is_ok(), "a plain reader does not read it")?;
    let text = encode::to_vec(&decoded.value);
    hold(
        text.len() == encode::encoded_len(&decoded.value),
        "the length is not the announced one",
    )?;
    let again = decode::from_json(&text).map_err(|error| format!("cannot be read back: {error}"))?;
    hold(
        encode::to_vec(&again.value) == text,
        "reading and writing again changes it",
    )?;
    hold(
        hash::canonical_hash(&again.value) == hash::canonical_hash(&decoded.value),
        "the hash is another after reading again",
    )?;
    Ok(shape(&decoded.value))
}

fn yaml(input: &[u8]) -> Outcome {
    let decoded = match decode::from_yaml(input) {
        Err(DecodeError::Yaml(text)) if text.contains("the reader failed") => return Err(text),
        Err(error) => return Ok(way(&error.to_string())),
        Ok(decoded) => decoded,
    };
    hold(
        decode::depth(&decoded.value) <= MAX_DEPTH,
        "deeper than the bound",
    )?;
    let text = encode::to_yaml(&decoded.value);
    let again = decode::from_yaml(text.as_bytes())
        .map_err(|error| format!("{text:?} cannot be read back: {error}"))?;
    hold(
        encode::to_vec(&again.value) == encode::to_vec(&decoded.value),
        "reading what was written gives something else",
    )?;
    Ok(shape(&decoded.value))
}

fn patch_json(input: &[u8]) -> Outcome {
    let documents = documents(input);
    let mut target = nth(&documents, 0);
    match json_patch::apply(&mut target, &nth(&documents, 1)) {
        Ok(()) => Ok(shape(&target)),
        Err(error) => Ok(way(&error.to_string())),
    }
}

fn patch_merge(input: &[u8]) -> Outcome {
    let documents = documents(input);
    let (mut target, patch) = (nth(&documents, 0), nth(&documents, 1));
    merge_patch::apply(&mut target, &patch);
    let once = target.clone();
    merge_patch::apply(&mut target, &patch);
    hold(target == once, "applying it twice changes more")?;
    Ok(shape(&target))
}

fn patch_strategic(input: &[u8]) -> Outcome {
    let documents = documents(input);
    let (mut target, patch) = (nth(&documents, 0), nth(&documents, 1));
    let mut bare = target.clone();
    strategic::apply(NoSchema, &mut bare, &patch).ok();
    let schema = machinery_kinds::schemas::schema(Gvk::new("apps", "v1", "Deployment")).ok_or("no schema")?;
    match strategic::apply(schema, &mut target, &patch) {
        Ok(()) => Ok(shape(&target)),
        Err(error) => Ok(way(&error.to_string())),
    }
}

fn selector(input: &[u8]) -> Outcome {
    let text = String::from_utf8_lossy(input);
    let fields = match FieldSelector::parse(&text) {
        Ok(fields) => {
            let again = FieldSelector::parse(&fields.to_string()).map_err(|error| error.to_string())?;
            // They are sorted as they were written, which is not how they are shown.
            let sorted = |selector: &FieldSelector| {
                let mut all: Vec<String> = selector.requirements().iter().map(|r| format!("{r:?}")).collect();
                all.sort();
                all
            };
            hold(
                sorted(&again) == sorted(&fields),
                "a field selector is another when it is read back",
            )?;
            String::new()
        }
        Err(error) => error.to_string(),
    };
    let object = documents(input).into_iter().next();
    let from_object = match LabelSelector::from_object(object.as_ref()) {
        Ok(selector) => selector.to_string(),
        Err(error) => error.to_string(),
    };
    match LabelSelector::parse(&text) {
        Ok(selector) => {
            let shown = selector.to_string();
            let again = LabelSelector::parse(&shown).map_err(|error| format!("{shown:?}: {error}"))?;
            hold(
                again.to_string() == shown,
                "a selector is another when it is read back",
            )?;
            for value in [None, Some(""), Some("a"), Some("5")] {
                hold(
                    again.matches(|_| value) == selector.matches(|_| value),
                    "a selector matches something else when it is read back",
                )?;
            }
            Ok(way(&format!("{shown}{from_object}")))
        }
        Err(error) => Ok(way(&format!("{error}{fields}{from_object}"))),
    }
}

fn jsonpath(input: &[u8]) -> Outcome {
    let text = String::from_utf8_lossy(input);
    let (path, document) = text.split_once(SEPARATOR).unwrap_or((&text, "{}"));
    let document = decode::from_json(document.as_bytes())
        .map(|decoded| decoded.value)
        .unwrap_or_default();
    let path = match JsonPath::parse(path) {
        Ok(path) => path,
        Err(error) => return Ok(way(&error.reason)),
    };
    let found = path.find(&document);
    hold(
        path.first(&document) == found.first().copied(),
        "the first is not the first of all",
    )?;
    Ok(way(&format!("{path:?}")) ^ found.len().min(4) as u64)
}

fn quantity(input: &[u8]) -> Outcome {
    let text = parts(input).remove(0);
    match Quantity::parse(&text) {
        Err(error) => Ok(way(&error.to_string())),
        Ok(quantity) => {
            let shown = quantity.to_string();
            let again = Quantity::parse(&shown).map_err(|error| format!("{shown:?}: {error}"))?;
            hold(
                again.to_string() == shown,
                "a quantity is another when it is read back",
            )?;
            hold(
                again.milli() == quantity.milli(),
                "a quantity has another value when it is read back",
            )?;
            let _ = (
                quantity.units(),
                quantity.checked_add(&again),
                quantity.checked_sub(&again),
            );
            Ok(way(&shown) ^ shown.len() as u64)
        }
    }
}
