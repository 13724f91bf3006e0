//! Bodies as Go types, in JSON and protobuf, and the tables that are printed of objects.

use jiff::Timestamp;
use machinery_table::{CustomColumns, IncludeObject, Printer, list_table, object_table};
use machinery_value::Value;
use machinery_wire::{decode, decode_proto, interpret, lookup};

use super::{documents, hold, nth, objects, shape, way};
use crate::{Outcome, SEPARATOR, Target};

pub(super) const TARGETS: &[Target] = &[
    Target {
        name: "go-json",
        about: "objects of built-in kinds, decoded as Go decodes them",
        seeds: || {
            objects()
                .iter()
                .map(|object| object.to_string().into_bytes())
                .collect()
        },
        run: go_json,
    },
    Target {
        name: "protobuf",
        about: "bodies in protobuf",
        seeds: protobuf_seeds,
        run: protobuf,
    },
    Target {
        name: "table",
        about: "an object to print, and printer columns of a definition",
        seeds: || {
            let columns = r#"{"additionalPrinterColumns":[{"name":"A","type":"date","jsonPath":".metadata.creationTimestamp"},{"name":"B","type":"integer","jsonPath":".spec.replicas"},{"name":"C","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}]}"#;
            let whole = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","creationTimestamp":"2020-01-01T00:00:00Z","deletionTimestamp":"2020-01-01T00:00:10Z"},"spec":{"initContainers":[{"name":"i","restartPolicy":"Always"}],"containers":[{"name":"c"}]},"status":{"phase":"Running","initContainerStatuses":[{"name":"i","state":{"terminated":{"exitCode":1,"signal":9}},"restartCount":3,"lastState":{"terminated":{"finishedAt":"2020-01-01T00:00:00Z"}}}],"containerStatuses":[{"name":"c","ready":true,"state":{"waiting":{"reason":"R"}}}]}}"#;
            let mut all = vec![format!("{whole}{SEPARATOR}{columns}").into_bytes()];
            all.extend(
                objects()
                    .iter()
                    .map(|object| format!("{object}{SEPARATOR}{columns}").into_bytes()),
            );
            all
        },
        run: table,
    },
];

fn go_json(input: &[u8]) -> Outcome {
    let object = nth(&documents(input), 0);
    let header = match interpret(&object) {
        Ok(header) => header,
        Err(error) => return Ok(way(&error.to_string())),
    };
    let Some(ty) = lookup(&header.group, &header.version, &header.kind) else {
        return Ok(0);
    };
    match decode(ty, object) {
        Err(error) => Ok(way(&error.to_string())),
        Ok(once) => {
            let unknown = once.unknown.len();
            twice(ty, once.value).map(|value| shape(&value) ^ unknown as u64)
        }
    }
}

/// What was decoded is decoded again, without a change from the second time on.
fn twice(ty: machinery_wire::TypeRef, value: Value) -> Result<Value, String> {
    let second = decode(ty, value).map_err(|error| format!("cannot be read back: {error}"))?;
    hold(second.unknown.is_empty(), "wrote a field that it does not know")?;
    let third = decode(ty, second.value.clone()).map_err(|error| format!("cannot be read back: {error}"))?;
    hold(third.value == second.value, "reading again changes it")?;
    Ok(second.value)
}

fn protobuf(input: &[u8]) -> Outcome {
    let object = match decode_proto(input) {
        Ok(object) => object,
        Err(error) => return Ok(way(&error.to_string())),
    };
    let (group, version) = object
        .api_version
        .split_once('/')
        .unwrap_or(("", &object.api_version));
    let ty = lookup(group, version, &object.kind).ok_or("decoded a kind that is not in the table")?;
    let value = twice(ty, object.value)?;
    Ok(shape(&value))
}

fn protobuf_seeds() -> Vec<Vec<u8>> {
    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, bytes.len() as u8], bytes].concat()
    }
    let body = |api: &str, kind: &str, raw: &[u8]| {
        let meta = [field(1, api.as_bytes()), field(2, kind.as_bytes())].concat();
        [b"k8s\0".to_vec(), field(1, &meta), field(2, raw)].concat()
    };
    let labels = field(11, &[field(1, b"app"), field(2, b"a")].concat());
    let meta = field(
        1,
        &[
            field(1, b"name"),
            field(3, b"default"),
            labels,
            field(8, &[8, 100, 16, 5]),
        ]
        .concat(),
    );
    let container = field(
        2,
        &[
            field(1, b"c"),
            field(2, b"image"),
            field(7, &[field(1, b"A"), field(2, b"1")].concat()),
        ]
        .concat(),
    );
    let lease = [field(1, b"holder"), vec![16, 15], field(3, &[8, 100, 16, 5])].concat();
    vec![
        body("v1", "Pod", &[meta.clone(), field(2, &container)].concat()),
        body(
            "v1",
            "ConfigMap",
            &[meta.clone(), field(2, &[field(1, b"k"), field(2, b"v")].concat())].concat(),
        ),
        body(
            "v1",
            "Secret",
            &[
                meta.clone(),
                field(2, &[field(1, b"k"), field(2, b"\x00\xff")].concat()),
            ]
            .concat(),
        ),
        body(
            "coordination.k8s.io/v1",
            "Lease",
            &[meta, field(2, &lease)].concat(),
        ),
        body("meta.k8s.io/v1", "DeleteOptions", &[8, 30]),
    ]
}

fn table(input: &[u8]) -> Outcome {
    let documents = documents(input);
    let (object, version) = (nth(&documents, 0), nth(&documents, 1));
    let text = |key: &str| object[key].as_str().unwrap_or("");
    let (group, served) = text("apiVersion")
        .split_once('/')
        .unwrap_or(("", text("apiVersion")));
    let now = Timestamp::from_second(1_600_000_000).unwrap_or_default();
    let mut outcome = 0;
    for printer in [
        Printer::builtin(group, served, text("kind")),
        Printer::custom(CustomColumns::of_version(&version)),
    ] {
        let cells = printer.cells(&object, now);
        hold(
            cells.len() == printer.columns().len(),
            "cells and columns do not match",
        )?;
        for include in [
            IncludeObject::None,
            IncludeObject::Metadata,
            IncludeObject::Object,
        ] {
            object_table(&printer, &object, include, true, now);
            list_table(&printer, &object, include, now);
        }
        outcome ^= way(&Value::Array(cells).to_string().replace('"', ""));
    }
    Ok(outcome)
}
