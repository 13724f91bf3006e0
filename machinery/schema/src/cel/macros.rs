//! The calls that are no functions: what they stand for is put in their place, at the place of their parenthesis.

use kube_cel::cel::common::ast::operators as op;
use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr,
};

use super::lex::Unread;
use super::parse::{call, node};
use super::runtime::{MERGE, PAIRS, PUT};

/// The variable that holds the result of a loop.
pub(super) const RESULT: &str = "@result";

/// The variable that holds a key with its value.
pub(super) const PAIR: &str = "@pair";

/// A call without a target.
pub(super) fn global(at: usize, name: &str, mut args: Vec<IdedExpr>) -> Result<IdedExpr, Unread> {
    if name != op::HAS || args.len() != 1 {
        return Ok(call(at, name, args));
    }
    let argument = args.swap_remove(0);
    match argument.expr {
        Expr::Select(mut select) if !select.test => {
            select.test = true;
            Ok(node(at, Expr::Select(select)))
        }
        _ => Err(Unread::new(place(&argument), "invalid argument to has() macro")),
    }
}

/// A call on a target.
pub(super) fn member(
    at: usize,
    name: &str,
    target: IdedExpr,
    args: Vec<IdedExpr>,
) -> Result<IdedExpr, Unread> {
    let mut parts = args.into_iter();
    match (name, parts.len()) {
        (op::ALL | op::EXISTS | op::EXISTS_ONE | op::MAP | op::FILTER, 2) | (op::MAP, 3) => {}
        (op::ALL | op::EXISTS | "existsOne", 3)
        | ("transformList" | "transformMap" | "transformMapEntry", 3 | 4) => {
            return with_two(at, name, target, parts.collect());
        }
        _ => {
            let call = CallExpr {
                func_name: name.to_owned(),
                target: Some(Box::new(target)),
                args: parts.collect(),
            };
            return Ok(node(at, Expr::Call(call)));
        }
    }
    let (variable, first) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let Expr::Ident(iter_var) = variable.expr.clone() else {
        return Err(Unread::new(place(&variable), "argument must be a simple name"));
    };
    let so_far = || node(at, Expr::Ident(RESULT.to_owned()));
    let literal = |value: LiteralValue| node(at, Expr::Literal(value));
    let truth = |value: bool| literal(LiteralValue::Boolean(value.into()));
    let list = |elements: Vec<IdedExpr>| node(at, Expr::List(ListExpr::new(elements)));
    let goes_on = |condition: IdedExpr| call(at, op::NOT_STRICTLY_FALSE, vec![condition]);
    let added = |more: IdedExpr| call(at, op::ADD, vec![so_far(), more]);
    let (start, condition, step, result) = match name {
        op::ALL => (
            truth(true),
            goes_on(so_far()),
            call(at, op::LOGICAL_AND, vec![so_far(), first]),
            so_far(),
        ),
        op::EXISTS => (
            truth(false),
            goes_on(call(at, op::LOGICAL_NOT, vec![so_far()])),
            call(at, op::LOGICAL_OR, vec![so_far(), first]),
            so_far(),
        ),
        op::MAP => {
            let (test, value) = match parts.next() {
                Some(value) => (Some(first), value),
                None => (None, first),
            };
            let grown = added(list(vec![value]));
            let step = match test {
                Some(test) => call(at, op::CONDITIONAL, vec![test, grown, so_far()]),
                None => grown,
            };
            (list(Vec::new()), truth(true), step, so_far())
        }
        op::FILTER => {
            let grown = added(list(vec![variable]));
            let step = call(at, op::CONDITIONAL, vec![first, grown, so_far()]);
            (list(Vec::new()), truth(true), step, so_far())
        }
        _ => {
            let one = || literal(LiteralValue::Int(1.into()));
            let step = call(at, op::CONDITIONAL, vec![first, added(one()), so_far()]);
            let result = call(at, op::EQUALS, vec![so_far(), one()]);
            (literal(LiteralValue::Int(0.into())), truth(true), step, result)
        }
    };
    Ok(node(
        at,
        Expr::Comprehension(Box::new(ComprehensionExpr {
            iter_range: target,
            iter_var,
            iter_var2: None,
            accu_var: RESULT.to_owned(),
            accu_init: start,
            loop_cond: condition,
            loop_step: step,
            result,
        })),
    ))
}

/// The name that a loop gives to what it is at.
fn variable(argument: Option<IdedExpr>) -> Result<String, Unread> {
    let argument = argument.unwrap_or_default();
    match argument.expr {
        Expr::Ident(name) => Ok(name),
        _ => Err(Unread::new(place(&argument), "argument must be a simple name")),
    }
}

/// A loop with two variables: the key and the value of a map, or the place and the element of a list.
fn with_two(at: usize, name: &str, target: IdedExpr, args: Vec<IdedExpr>) -> Result<IdedExpr, Unread> {
    let mut parts = args.into_iter();
    let (key, value) = (variable(parts.next())?, variable(parts.next())?);
    let part = |index: i64| {
        let pair = node(at, Expr::Ident(PAIR.to_owned()));
        let index = node(at, Expr::Literal(LiteralValue::Int(index.into())));
        call(at, op::INDEX, vec![pair, index])
    };
    let told = |body: IdedExpr| bind(at, &key, part(0), bind(at, &value, part(1), body));
    let so_far = || node(at, Expr::Ident(RESULT.to_owned()));
    let first = told(parts.next().unwrap_or_default());
    let (test, body) = match parts.next() {
        Some(body) => (Some(first), told(body)),
        None => (None, first),
    };
    let pairs = call(at, PAIRS, vec![target]);
    let (start, grown) = match name {
        "transformList" => {
            let one = node(at, Expr::List(ListExpr::new(vec![body])));
            (
                node(at, Expr::List(ListExpr::default())),
                call(at, op::ADD, vec![so_far(), one]),
            )
        }
        "transformMap" => (
            node(at, Expr::Map(MapExpr::default())),
            call(at, PUT, vec![so_far(), part(0), body]),
        ),
        "transformMapEntry" => (
            node(at, Expr::Map(MapExpr::default())),
            call(at, MERGE, vec![so_far(), body]),
        ),
        // The others ask one thing of each pair, as they do of each element.
        _ => {
            let pair = node(at, Expr::Ident(PAIR.to_owned()));
            let name = if name == "existsOne" { op::EXISTS_ONE } else { name };
            return member(at, name, pairs, vec![pair, body]);
        }
    };
    let step = match test {
        Some(test) => call(at, op::CONDITIONAL, vec![test, grown, so_far()]),
        None => grown,
    };
    Ok(node(
        at,
        Expr::Comprehension(Box::new(ComprehensionExpr {
            iter_range: pairs,
            iter_var: PAIR.to_owned(),
            iter_var2: None,
            accu_var: RESULT.to_owned(),
            accu_init: start,
            loop_cond: node(at, Expr::Literal(LiteralValue::Boolean(true.into()))),
            loop_step: step,
            result: so_far(),
        })),
    ))
}

/// The body with a name for a value in it: a loop over nothing whose accumulator is the variable.
pub(super) fn bind(at: usize, name: &str, value: IdedExpr, body: IdedExpr) -> IdedExpr {
    node(
        at,
        Expr::Comprehension(Box::new(ComprehensionExpr {
            iter_range: node(at, Expr::List(ListExpr::default())),
            iter_var: "#unused".to_owned(),
            iter_var2: None,
            accu_var: name.to_owned(),
            accu_init: value,
            loop_cond: node(at, Expr::Literal(LiteralValue::Boolean(false.into()))),
            loop_step: node(at, Expr::Ident(name.to_owned())),
            result: body,
        })),
    )
}

fn place(expression: &IdedExpr) -> usize {
    usize::try_from(expression.id).unwrap_or(0)
}
