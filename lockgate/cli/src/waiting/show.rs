//! How what waits is printed.

use jiff::Timestamp;
use lockgate_api::binding::TargetCluster;
use lockgate_engine::claim::{Claim, ClaimKind};
use lockgate_engine::pending::{Effect, Pending};
use machinery_table::age;
use serde_json::{Value, json};

use crate::print::{Cell, Paint, Table, Tone};
use crate::waiting::Output;
use crate::waiting::gather::{Found, Row};

/// How many clusters a line of the table names.
const NAMED: usize = 4;

/// The answer in one form, without what follows a table.
pub(crate) fn render(found: &Found, output: Output, headers: bool, paint: Paint, now: Timestamp) -> String {
    match output {
        Output::Table | Output::Wide => table(&found.rows, output == Output::Wide, headers, paint, now),
        Output::Json => format!("{:#}\n", value(found)),
        Output::Yaml => machinery_value::encode::to_yaml(&value(found)),
    }
}

fn table(rows: &[Row], wide: bool, headers: bool, paint: Paint, now: Timestamp) -> String {
    let mut columns = vec![
        "NAMESPACE",
        "TEMPLATE",
        "APPLIED",
        "CURRENT",
        "WHY",
        "SINCE",
        "WOULD DO",
    ];
    if wide {
        columns.push("CHANGES");
    }
    let mut table = Table::new(&columns);
    for row in rows {
        let pending = &row.pending;
        let mut cells: Vec<Cell> = vec![
            pending.id.namespace.clone().into(),
            format!("{}/{}", pending.id.kind.to_lowercase(), pending.id.name).into(),
            applied(pending).into(),
            current(pending).into(),
            Cell::new(&row.why, Tone::Warn),
            row.since
                .map_or_else(String::new, |since| age::since(Some(since), now))
                .into(),
            would_do(pending, wide),
        ];
        if wide {
            let fields = pending.effect.as_ref().map(|effect| effect.fields.join(","));
            cells.push(fields.unwrap_or_default().into());
        }
        table.row(cells);
    }
    table.render(paint, headers)
}

fn policy_at(claim: &Claim, generation: i64) -> String {
    let kind = match claim.kind {
        ClaimKind::Namespaced => "pp",
        ClaimKind::Cluster => "cpp",
    };
    match generation {
        0 => format!("{kind}/{}", claim.name),
        generation => format!("{kind}/{}@{generation}", claim.name),
    }
}

fn applied(pending: &Pending) -> String {
    match &pending.applied {
        None => "never".to_owned(),
        Some(applied) => match &applied.claim {
            Some(claim) => policy_at(claim, applied.generation),
            None => "a policy that is gone".to_owned(),
        },
    }
}

fn current(pending: &Pending) -> String {
    match &pending.current {
        Some(policy) => policy_at(&Claim::by(policy), policy.metadata.generation),
        None => "none".to_owned(),
    }
}

fn would_do(pending: &Pending, wide: bool) -> Cell {
    let Some(effect) = &pending.effect else {
        let text = if pending.changed {
            "nothing: the template changed, and no policy matches it"
        } else {
            "nothing: no policy matches it"
        };
        return Cell::new(text, Tone::Faint);
    };
    let tone = if effect.removed.is_empty() {
        Tone::Plain
    } else {
        Tone::Bad
    };
    Cell::new(moves(effect, wide), tone)
}

/// `-member1(2) +member3(2) member2:2→4`, removals first.
pub(crate) fn moves(effect: &Effect, wide: bool) -> String {
    let sized = |target: &TargetCluster| match target.replicas {
        0 => target.name.clone(),
        replicas => format!("{}({replicas})", target.name),
    };
    let removed = effect.removed.iter().map(|target| format!("-{}", sized(target)));
    let added = effect.added.iter().map(|target| format!("+{}", sized(target)));
    let resized = effect
        .resized
        .iter()
        .map(|resized| format!("{}:{}→{}", resized.cluster, resized.from, resized.to));
    let mut parts: Vec<String> = removed.chain(added).chain(resized).collect();
    let more = parts.len().saturating_sub(NAMED);
    if !wide && more > 0 {
        parts.truncate(NAMED);
        parts.push(format!("and {more} more"));
    }
    if let Some(trouble) = &effect.trouble {
        parts.push(format!("not placed: {trouble}"));
    } else if parts.is_empty() {
        parts.push(match effect.fields.as_slice() {
            [] => "nothing moves".to_owned(),
            fields => format!("nothing moves; {}", fields.join(", ")),
        });
    }
    parts.join(" ")
}

/// What everything that waits would do, in one line.
pub(crate) fn summary(rows: &[Row]) -> String {
    let effects: Vec<&Effect> = rows
        .iter()
        .filter_map(|row| row.pending.effect.as_ref())
        .collect();
    let sum = |of: fn(&Effect) -> usize| effects.iter().map(|effect| of(effect)).sum::<usize>();
    let (removed, added, resized) = (
        sum(|effect| effect.removed.len()),
        sum(|effect| effect.added.len()),
        sum(|effect| effect.resized.len()),
    );
    format!(
        "{}: {} from clusters, {} to clusters, {} of replicas",
        templates(rows.len()),
        plural(removed, "removal"),
        plural(added, "addition"),
        plural(resized, "change"),
    )
}

/// `1 template`, `2 templates`.
pub(crate) fn templates(count: usize) -> String {
    plural(count, "template")
}

fn plural(count: usize, word: &str) -> String {
    match count {
        1 => format!("1 {word}"),
        count => format!("{count} {word}s"),
    }
}

fn value(found: &Found) -> Value {
    let rows: Vec<Value> = found.rows.iter().map(row_value).collect();
    json!({
        "kind": "PendingTemplates",
        "matched": found.matched,
        "pending": rows.len(),
        "templates": rows,
    })
}

fn row_value(row: &Row) -> Value {
    let pending = &row.pending;
    let policy = |claim: &Claim| {
        let kind = match claim.kind {
            ClaimKind::Namespaced => "PropagationPolicy",
            ClaimKind::Cluster => "ClusterPropagationPolicy",
        };
        json!({"kind": kind, "namespace": claim.namespace, "name": claim.name, "id": claim.id})
    };
    let mut value = json!({
        "apiVersion": pending.id.api_version,
        "kind": pending.id.kind,
        "namespace": pending.id.namespace,
        "name": pending.id.name,
        "why": row.why,
        "changed": pending.changed,
    });
    if let Some(since) = row.since {
        value["since"] = since.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into();
    }
    if let Some(applied) = &pending.applied {
        value["applied"] = applied
            .claim
            .as_ref()
            .map_or_else(|| json!({"id": applied.id}), policy);
        value["applied"]["generation"] = applied.generation.into();
    }
    if let Some(current) = &pending.current {
        value["current"] = policy(&Claim::by(current));
        value["current"]["generation"] = current.metadata.generation.into();
    }
    if let Some(effect) = &pending.effect {
        let resized: Vec<Value> = effect
            .resized
            .iter()
            .map(|resized| json!({"name": resized.cluster, "from": resized.from, "to": resized.to}))
            .collect();
        value["effect"] = json!({
            "added": effect.added,
            "removed": effect.removed,
            "resized": resized,
            "fields": effect.fields,
        });
        if let Some(trouble) = &effect.trouble {
            value["effect"]["trouble"] = trouble.clone().into();
        }
    }
    value
}

#[cfg(test)]
mod tests;
