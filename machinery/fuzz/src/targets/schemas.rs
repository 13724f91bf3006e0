//! Schemas of custom resources, CEL, and the rules of built-in kinds.

use machinery_kinds::{Gvk, defaults, strategy, validation};
use machinery_schema::cel::{CelProgram, CelType, Scope};
use machinery_schema::{CustomSchema, StructuralOptions, check_crd_schema};
use machinery_value::Value;
use machinery_value::field::FieldPath;

use super::{documents, hold, nth, objects, seeds, shape, way};
use crate::{Outcome, SEPARATOR, Target};

pub(super) const TARGETS: &[Target] = &[
    Target {
        name: "crd-schema",
        about: "a schema of a custom resource, an object of it, and the object before",
        seeds: || {
            seeds(&[
                "{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\",\"x-kubernetes-validations\":[{\"rule\":\"self.a <= 3 && self.l.all(x, x != 'z')\",\"messageExpression\":\"'a is ' + string(self.a)\"}],\"properties\":{\"a\":{\"type\":\"integer\",\"default\":1,\"maximum\":5},\"l\":{\"type\":\"array\",\"maxItems\":4,\"x-kubernetes-list-type\":\"set\",\"default\":[],\"items\":{\"type\":\"string\",\"maxLength\":9,\"pattern\":\"^[a-z]+$\"}},\"p\":{\"x-kubernetes-int-or-string\":true},\"n\":{\"type\":\"string\",\"nullable\":true,\"format\":\"date-time\"},\"f\":{\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":true},\"m\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"number\",\"multipleOf\":0.5}}}}}}\n---\n{\"spec\":{\"a\":2,\"l\":[\"x\"],\"p\":\"50%\",\"n\":null,\"f\":{\"g\":[1]},\"m\":{\"k\":1.5},\"bogus\":1}}\n---\n{\"spec\":{\"a\":1}}",
                "{\"type\":\"object\",\"properties\":{\"ports\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-map-keys\":[\"n\",\"q\"],\"items\":{\"type\":\"object\",\"required\":[\"n\"],\"properties\":{\"n\":{\"type\":\"string\"},\"q\":{\"type\":\"string\",\"default\":\"T\"},\"e\":{\"type\":\"object\",\"x-kubernetes-embedded-resource\":true,\"x-kubernetes-preserve-unknown-fields\":true}},\"anyOf\":[{\"required\":[\"q\"]},{\"not\":{\"required\":[\"e\"]}}]}}}}\n---\n{\"ports\":[{\"n\":\"a\"},{\"n\":\"b\",\"e\":{\"apiVersion\":\"v1\",\"kind\":\"K\",\"metadata\":{\"name\":\"x\"}}}]}",
            ])
        },
        run: crd_schema,
    },
    Target {
        name: "cel",
        about: "a CEL expression, and the object, the old object and the parameters that it sees",
        seeds: || {
            const DOCUMENTS: &str = "{\"a\":1,\"s\":\"text\",\"l\":[1,2,3],\"m\":{\"k\":\"v\"},\"n\":null,\"metadata\":{\"name\":\"x\",\"labels\":{}}}\n---\n{\"a\":2}\n---\n{\"limit\":3}";
            [
                "object.a + oldObject.a <= params.limit || !has(object.b)",
                "object.l.all(x, x > 0) && object.l.exists_one(x, x == 2) && object.l.map(x, x * 2).filter(x, x > 2).size() == 2",
                "object.s.matches('^t.*') && object.s.split('').join('-') == '' || object.s.replace('t', 'u').find('[a-z]+') != ''",
                "object.?n.orValue('x') == 'x' ? [1, 2u, 3.0, b'a'] : {'k': [null]}",
                "quantity('1.5Gi').isGreaterThan(quantity('1G')) && duration('1h').getHours() == 1 && timestamp('2020-01-01T00:00:00Z').getFullYear() > 0",
                "object.metadata.labels.exists(k, k.startsWith('a')) && ip('1.2.3.4').family() == 4 && url('https://a/b').getHost() == 'a'",
                "object.l.isSorted() && object.l.sum() == 6 && object.l.indexOf(2) == 1 && sets.contains(object.l, [1])",
                "'%s and %d'.format([object.s, object.a]) + string(1.5) + string(int('5') / 2 - (-3 % 2))",
            ]
            .iter()
            .map(|expression| format!("{expression}{SEPARATOR}{DOCUMENTS}").into_bytes())
            .collect()
        },
        run: cel,
    },
    Target {
        name: "kinds",
        about: "an object of a built-in kind and the one before: defaults, preparation, validation",
        seeds: || {
            let pairs = objects()
                .into_iter()
                .map(|object| format!("{object}{SEPARATOR}{object}"));
            pairs.map(String::into_bytes).collect()
        },
        run: kinds,
    },
];

fn crd_schema(input: &[u8]) -> Outcome {
    let documents = documents(input);
    let (schema, mut object) = (nth(&documents, 0), nth(&documents, 1));
    let old = documents.get(2);
    let mut told = 0;
    for status_subresource in [false, true] {
        let options = StructuralOptions { status_subresource };
        let errors = check_crd_schema(&schema, &FieldPath::new("schema"), options);
        told ^= errors
            .iter()
            .map(|error| way(&error.message))
            .fold(0, |a, b| a ^ b);
        if errors.is_empty() && CustomSchema::new(&schema).is_err() {
            return Err("a schema that passed its checks cannot be used".to_owned());
        }
    }
    let Ok(schema) = CustomSchema::new(&schema) else {
        return Ok(told);
    };
    schema.prune(&mut object);
    hold(schema.prune(&mut object).is_empty(), "pruning twice finds more")?;
    if object.is_object() {
        schema.apply_defaults(&mut object);
        let once = object.clone();
        schema.apply_defaults(&mut object);
        // A default may itself lack what defaults fill in, which a schema that passes its checks has not.
        hold(told != 0 || object == once, "defaults applied twice change more")?;
    }
    let errors = schema.validate(&object, old);
    Ok(told
        ^ errors
            .iter()
            .map(|error| way(&error.message))
            .fold(1, |a, b| a ^ b))
}

fn cel(input: &[u8]) -> Outcome {
    let documents = documents(input);
    let Some(Value::String(source)) = documents.first() else {
        return Ok(0);
    };
    let program = match CelProgram::compile(source) {
        Ok(program) => program,
        Err(error) if error == "the expression could not be compiled" => return Err(error),
        Err(error) => return Ok(way(&error)),
    };
    let (object, old, params) = (nth(&documents, 1), nth(&documents, 2), nth(&documents, 3));
    let variables = [
        ("object", &object),
        ("oldObject", &old),
        ("params", &params),
        ("self", &object),
    ];
    let mut scope = Scope::default();
    for (name, _) in variables {
        scope.declare(name, CelType::Dyn);
    }
    if scope
        .check(source)
        .is_err_and(|error| error == "the expression could not be checked")
    {
        return Err("the expression could not be checked".to_owned());
    }
    match program.eval(&variables) {
        Ok(value) => {
            hold(
                program.eval(&variables) == Ok(value.clone()),
                "evaluating again gives something else",
            )?;
            Ok(shape(&value))
        }
        Err(error) => Ok(way(&error)),
    }
}

fn kinds(input: &[u8]) -> Outcome {
    let documents = documents(input);
    let (object, old) = (nth(&documents, 0), nth(&documents, 1));
    let text = |key: &str| object[key].as_str().unwrap_or("").to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let gvk = Gvk::new(group, version, &kind);
    // Decoding sees to types before objects come this far.
    let Some(ty) = machinery_wire::lookup(group, version, &kind) else {
        return Ok(0);
    };
    let Ok(decoded) = machinery_wire::decode(ty, object.clone()) else {
        return Ok(1);
    };
    let mut new = decoded.value;
    defaults::apply(group, version, &kind, &mut new);
    let once = new.clone();
    defaults::apply(group, version, &kind, &mut new);
    hold(new == once, "defaults applied twice change more")?;
    let mut created = new.clone();
    strategy::prepare_create(gvk, &mut created);
    let mut errors = validation::validate_create(gvk, &created);
    for old in [&old, &created] {
        let mut updated = new.clone();
        strategy::prepare_update(gvk, &mut updated, old);
        errors.extend(validation::validate_update(gvk, &updated, old));
        let mut updated = new.clone();
        strategy::prepare_status_update(gvk, &mut updated, old);
        errors.extend(validation::validate_status_update(gvk, &updated, old));
        errors.extend(validation::object_meta_update(true, &updated, old));
    }
    Ok(errors
        .iter()
        .map(|error| way(&error.message))
        .fold(shape(&new), |a, b| a ^ b))
}
