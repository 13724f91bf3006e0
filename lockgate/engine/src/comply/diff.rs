//! What would change, line by line.

use machinery_value::encode::to_yaml;
use serde_json::Value;

/// No more lines are told.
const MAX_LINES: usize = 50;
/// Objects with more lines are not compared line by line.
const MAX_COMPARED: usize = 500;
/// Lines around a change.
const CONTEXT: usize = 3;

/// What differs between an object and what it would become, as `diff -u` has it; empty if nothing does.
pub fn difference(name: &str, live: &Value, wanted: &Value) -> String {
    let (old, new) = (text(live), text(wanted));
    if old == new {
        return String::new();
    }
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    if old.len() > MAX_COMPARED || new.len() > MAX_COMPARED {
        return format!("# {name} differs; it has too many lines to be compared here\n");
    }
    let mut told = vec![format!("--- {name} : existing"), format!("+++ {name} : updated")];
    told.extend(hunks(&old, &new));
    if told.len() > MAX_LINES {
        let hidden = told.len() - MAX_LINES;
        told.truncate(MAX_LINES);
        told.push(format!("# {hidden} more lines"));
    }
    told.join("\n") + "\n"
}

fn text(object: &Value) -> String {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for key in ["managedFields", "resourceVersion", "generation", "uid"] {
            metadata.remove(key);
        }
    }
    to_yaml(&object)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Edit {
    Same,
    Old,
    New,
}

/// The shortest way from one to the other, in hunks.
fn hunks(old: &[&str], new: &[&str]) -> Vec<String> {
    let edits = edits(old, new);
    let mut told = Vec::new();
    let mut at = 0;
    while let Some(next) = edits[at..].iter().position(|(edit, ..)| *edit != Edit::Same) {
        let begin = (at + next).saturating_sub(CONTEXT).max(at);
        let mut end = at + next;
        let mut last = end;
        while end < edits.len() && end <= last + 2 * CONTEXT {
            if edits[end].0 != Edit::Same {
                last = end;
            }
            end += 1;
        }
        let end = (last + CONTEXT + 1).min(edits.len());
        let hunk = &edits[begin..end];
        let count = |skip: Edit| hunk.iter().filter(|(edit, ..)| *edit != skip).count();
        told.push(format!(
            "@@ -{},{} +{},{} @@",
            hunk[0].1 + 1,
            count(Edit::New),
            hunk[0].2 + 1,
            count(Edit::Old)
        ));
        told.extend(hunk.iter().map(|(edit, was, is)| match edit {
            Edit::Same => format!(" {}", old[*was]),
            Edit::Old => format!("-{}", old[*was]),
            Edit::New => format!("+{}", new[*is]),
        }));
        at = end;
    }
    told
}

/// Every line with where it is on both sides.
fn edits(old: &[&str], new: &[&str]) -> Vec<(Edit, usize, usize)> {
    let width = new.len() + 1;
    // The longest common rest from each pair of lines on.
    let mut common = vec![0_u32; (old.len() + 1) * width];
    for was in (0..old.len()).rev() {
        for is in (0..new.len()).rev() {
            common[was * width + is] = if old[was] == new[is] {
                common[(was + 1) * width + is + 1] + 1
            } else {
                common[(was + 1) * width + is].max(common[was * width + is + 1])
            };
        }
    }
    let (mut was, mut is) = (0, 0);
    let mut edits = Vec::new();
    while was < old.len() || is < new.len() {
        let edit = if was < old.len() && is < new.len() && old[was] == new[is] {
            Edit::Same
        } else if is == new.len()
            || (was < old.len() && common[(was + 1) * width + is] >= common[was * width + is + 1])
        {
            Edit::Old
        } else {
            Edit::New
        };
        edits.push((edit, was, is));
        was += usize::from(edit != Edit::New);
        is += usize::from(edit != Edit::Old);
    }
    edits
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_changed_line_is_told_with_what_is_around_it() {
        let object = |purpose: &str| {
            json!({"apiVersion": "v1", "data": {"env": "dev", "purpose": purpose}, "kind": "ConfigMap",
                "metadata": {"name": "a", "resourceVersion": purpose}})
        };
        assert_eq!(
            difference("shop/a", &object("load-testing"), &object("load-test")),
            "--- shop/a : existing\n+++ shop/a : updated\n@@ -1,7 +1,7 @@\n apiVersion: v1\n data:\n   env: dev\n\
             -  purpose: load-testing\n+  purpose: load-test\n kind: ConfigMap\n metadata:\n   name: a\n"
        );
        assert_eq!(difference("a", &object("x"), &object("x")), "");
    }

    #[test]
    fn it_is_bounded() {
        let object = |many: usize| json!({"data": (0..many).map(|n| n.to_string()).collect::<Vec<_>>()});
        assert_eq!(
            difference("a", &object(0), &object(200)).lines().count(),
            MAX_LINES + 1
        );
        assert_eq!(difference("a", &object(0), &object(2000)).lines().count(), 1);
    }
}
