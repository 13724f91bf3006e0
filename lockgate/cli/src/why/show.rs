//! How the answer is printed.

use lockgate_api::Condition;
use lockgate_api::ocm::placement::{MISCONFIGURED, SATISFIED};
use serde_json::{Value, json};

use super::gather::Answer;
use crate::print::{Cell, Paint, Table, Tone};

/// The answer for people.
pub(super) fn table(answer: &Answer, wide: bool, headers: bool, paint: Paint) -> String {
    let mut text = String::new();
    if headers {
        text.push_str(&head(answer, paint));
    }
    let mut columns = vec!["CLUSTER", "SELECTED", "GROUP", "SCORE", "WHY"];
    if wide {
        columns.insert(4, "SCORES");
    }
    let mut table = Table::new(&columns);
    for explained in &answer.clusters {
        let selected = match explained.selected {
            true => Cell::new("✔ yes", Tone::Good),
            false => Cell::new("– no", Tone::Faint),
        };
        let group = explained.group.as_ref().map(|(index, name)| match name.as_str() {
            "" => index.to_string(),
            name => format!("{index} ({name})"),
        });
        let score = explained.score().map(|score| score.to_string());
        let mut cells: Vec<Cell> = vec![
            explained.cluster.clone().into(),
            selected,
            group.unwrap_or_default().into(),
            score.unwrap_or_default().into(),
            explained.why.clone().into(),
        ];
        if wide {
            let parts: Vec<String> = explained
                .scores
                .iter()
                .map(|(by, score, weight)| format!("{by} {score}x{weight}"))
                .collect();
            cells.insert(4, parts.join(", ").into());
        }
        table.row(cells);
    }
    text.push_str(&table.render(paint, headers));
    text
}

fn head(answer: &Answer, paint: Paint) -> String {
    let selected = answer.status.number_of_selected_clusters;
    let mut text = format!(
        "{}   {selected} selected{}\n",
        paint.tone(
            &format!("placement/{} -n {}", answer.name, answer.namespace),
            Tone::Strong
        ),
        match answer.sets.join(", ") {
            sets if sets.is_empty() => String::new(),
            sets => format!(", from the sets {sets}"),
        }
    );
    for kind in [SATISFIED, MISCONFIGURED] {
        let Some(condition) = Condition::find(&answer.status.conditions, kind) else {
            continue;
        };
        // That nothing is wrong with it needs no words.
        if kind == MISCONFIGURED && !condition.is_true() {
            continue;
        }
        let bad = condition.is_true() == (kind == MISCONFIGURED);
        let line = format!("{}: {}", condition.reason, condition.message);
        let tone = if bad { Tone::Bad } else { Tone::Good };
        text.push_str(&format!("{}\n", paint.tone(&line, tone)));
    }
    for note in &answer.notes {
        text.push_str(&format!("{note}\n"));
    }
    text.push('\n');
    text
}

/// The answer for programs.
pub(super) fn value(answer: &Answer) -> Value {
    let clusters = answer.clusters.iter().map(|explained| {
        let scores = explained
            .scores
            .iter()
            .map(|(by, score, weight)| json!({"prioritizer": by, "score": score, "weight": weight}));
        let group = explained
            .group
            .as_ref()
            .map(|(index, name)| json!({"index": index, "name": name}));
        json!({
            "cluster": explained.cluster,
            "selected": explained.selected,
            "group": group,
            "score": explained.score(),
            "scores": scores.collect::<Value>(),
            "why": explained.why,
        })
    });
    json!({
        "namespace": answer.namespace,
        "placement": answer.name,
        "clusterSets": answer.sets,
        "selected": answer.status.number_of_selected_clusters,
        "conditions": answer.status.conditions,
        "notes": answer.notes,
        "clusters": clusters.collect::<Value>(),
    })
}
