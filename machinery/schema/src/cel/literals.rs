//! Literals that can be seen to be wrong before anything runs: patterns, times and lengths of time.

use kube_cel::cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue};
use regex::Regex;

use super::runtime;
use crate::validate::pattern::translate;

/// Adds what is wrong with the literals of an expression, and where.
pub(super) fn check(expression: &IdedExpr, problems: &mut Vec<(usize, String)>) {
    match &expression.expr {
        Expr::Call(call) => {
            let wrong = match (
                call.func_name.as_str(),
                call.args.as_slice(),
                call.target.is_some(),
            ) {
                ("duration" | "timestamp", [argument], false) => text(argument)
                    .is_some()
                    .then(|| (argument, !runtime::succeeds(expression))),
                ("matches", [argument], true) | ("matches", [_, argument], false) => {
                    text(argument).map(|pattern| (argument, Regex::new(&translate(pattern)).is_err()))
                }
                _ => None,
            };
            if let Some((argument, true)) = wrong {
                let at = usize::try_from(argument.id).unwrap_or(0);
                problems.push((at, format!("invalid {} argument", call.func_name)));
            }
            call.target.iter().for_each(|target| check(target, problems));
            call.args.iter().for_each(|argument| check(argument, problems));
        }
        Expr::Select(select) => check(&select.operand, problems),
        Expr::List(list) => list.elements.iter().for_each(|element| check(element, problems)),
        Expr::Map(map) => {
            for entry in &map.entries {
                if let EntryExpr::MapEntry(entry) = &entry.expr {
                    check(&entry.key, problems);
                    check(&entry.value, problems);
                }
            }
        }
        Expr::Comprehension(comprehension) => {
            for part in [
                &comprehension.iter_range,
                &comprehension.accu_init,
                &comprehension.loop_cond,
                &comprehension.loop_step,
                &comprehension.result,
            ] {
                check(part, problems);
            }
        }
        Expr::Ident(_) | Expr::Literal(_) | Expr::Struct(_) | Expr::Unspecified => {}
    }
}

fn text(expression: &IdedExpr) -> Option<&str> {
    match &expression.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    }
}
