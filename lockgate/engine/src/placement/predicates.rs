//! Predicates: labels, claims and expressions that clusters must match.

use lockgate_api::ocm::placement::{ClaimSelector, Predicate};
use lockgate_api::placement;
use machinery_schema::cel::{CelProgram, CelType, Scope};
use machinery_value::labels::LabelSelector;
use serde_json::{Map, Value, json};

use super::prioritize::Scores;
use super::{Candidate, Misconfigured};
use crate::gate::grouping::Member as _;
use crate::selector::compile_labels;

/// The name under which misconfigured predicates are told.
const PART: &str = "Predicate";
/// What expressions see.
const CLUSTER: &str = "managedCluster";
/// How expressions read the scores of add-ons, and the variable that this becomes.
const SCORES: &str = "managedCluster.scores(";
const SCORES_VARIABLE: &str = "managedClusterScores";
/// What one expression may cost for one cluster, in steps. There are thousands of clusters.
const MAX_STEPS: u64 = 10_000;
/// Fragments of names and words in messages are cut there.
const MAX_SHOWN: usize = 200;

/// A predicate in the form that is matched often.
#[derive(Debug)]
pub struct Compiled {
    labels: Option<LabelSelector>,
    claims: Option<LabelSelector>,
    expressions: Vec<Expression>,
}

#[derive(Debug)]
struct Expression {
    text: String,
    program: CelProgram,
    /// The AddOnPlacementScores that it reads.
    scores: Vec<String>,
}

/// A selector over claims as one over labels, which claims are matched like.
pub fn claims_as_labels(claims: &ClaimSelector) -> placement::LabelSelector {
    placement::LabelSelector {
        match_expressions: claims.match_expressions.clone(),
        ..placement::LabelSelector::default()
    }
}

/// Reads predicates.
pub fn compile(predicates: &[Predicate]) -> Result<Vec<Compiled>, Misconfigured> {
    let one = |(at, predicate): (usize, &Predicate)| {
        let selector = &predicate.required_cluster_selector;
        let bad = |part: &str, error: String| {
            let message = format!("predicates[{at}].requiredClusterSelector.{part}: {error}");
            Misconfigured::new(PART, message)
        };
        let labels = selector.label_selector.as_ref().map(compile_labels).transpose();
        let claims = selector
            .claim_selector
            .as_ref()
            .map(|claims| compile_labels(&claims_as_labels(claims)))
            .transpose();
        let texts = selector.cel_selector.iter().flat_map(|cel| &cel.cel_expressions);
        let expressions = texts.enumerate().map(|(number, text)| {
            expression(text).map_err(|error| bad(&format!("celSelector.celExpressions[{number}]"), error))
        });
        Ok(Compiled {
            labels: labels.map_err(|error| bad("labelSelector", error.to_string()))?,
            claims: claims.map_err(|error| bad("claimSelector", error.to_string()))?,
            expressions: expressions.collect::<Result<_, _>>()?,
        })
    };
    predicates.iter().enumerate().map(one).collect()
}

fn expression(text: &str) -> Result<Expression, String> {
    let (rewritten, scores) = read_scores(text)?;
    let mut scope = Scope::default();
    for variable in [CLUSTER, SCORES_VARIABLE] {
        scope.declare(variable, CelType::Dyn);
    }
    scope.check(&rewritten).map_err(|problem| match undeclared(&problem) {
        Some(name) => format!(
            "there is no {name:?}: an expression is about managedCluster, as in managedCluster.metadata.labels[\"env\"] == \"prod\""
        ),
        None => problem,
    })?;
    Ok(Expression {
        text: text.to_owned(),
        program: CelProgram::compile(&rewritten)?,
        scores,
    })
}

/// The name that means nothing, if that is the problem.
fn undeclared(problem: &str) -> Option<&str> {
    let (_, rest) = problem.split_once("undeclared reference to '")?;
    rest.split_once('\'').map(|(name, _)| name)
}

/// An expression with the scores that it asks for as a variable, and their names. Only names that are written out can be
/// asked for.
fn read_scores(text: &str) -> Result<(String, Vec<String>), String> {
    let (mut rewritten, mut names, mut rest) = (String::new(), Vec::new(), text);
    while let Some(at) = rest.find(SCORES) {
        let argument = rest[at + SCORES.len()..].trim_start();
        let written_out = "scores() takes the name of an AddOnPlacementScore in quotes";
        let quote = argument
            .chars()
            .next()
            .filter(|quote| matches!(quote, '"' | '\''))
            .ok_or(written_out)?;
        let (name, after) = argument[1..].split_once(quote).ok_or(written_out)?;
        let after = after.trim_start().strip_prefix(')').ok_or(written_out)?;
        if name.contains('\\') {
            return Err(written_out.to_owned());
        }
        rewritten.push_str(&rest[..at]);
        rewritten.push_str(&format!("{SCORES_VARIABLE}[{}]", json!(name)));
        names.push(name.to_owned());
        rest = after;
    }
    rewritten.push_str(rest);
    Ok((rewritten, names))
}

impl Compiled {
    /// Whether a cluster matches as far as labels and claims go.
    fn may_match(&self, cluster: &Candidate) -> bool {
        let (labels, claims) = (self.labels.as_ref(), self.claims.as_ref());
        labels.is_none_or(|labels| labels.matches(|key| cluster.label(key)))
            && claims.is_none_or(|claims| claims.matches(|name| cluster.claim(name)))
    }

    /// Whether a cluster matches, or why not.
    fn matches(
        &self,
        cluster: &Candidate,
        scores: &dyn Scores,
    ) -> Result<Result<(), Mismatch<'_>>, Misconfigured> {
        if let Some(labels) = &self.labels
            && !labels.matches(|key| cluster.label(key))
        {
            return Ok(Err(Mismatch::Labels(labels)));
        }
        if let Some(claims) = &self.claims
            && !claims.matches(|name| cluster.claim(name))
        {
            return Ok(Err(Mismatch::Claims(claims)));
        }
        for expression in &self.expressions {
            match expression.holds(cluster, scores)? {
                Ok(true) => {}
                Ok(false) => return Ok(Err(Mismatch::Expression(&expression.text))),
                Err(error) => return Ok(Err(Mismatch::Failed(&expression.text, error))),
            }
        }
        Ok(Ok(()))
    }
}

impl Expression {
    /// Whether it is true of a cluster. An error of the inner kind is about this cluster, as one that lacks a label.
    fn holds(&self, cluster: &Candidate, scores: &dyn Scores) -> Result<Result<bool, String>, Misconfigured> {
        let all: Map<String, Value> = self
            .scores
            .iter()
            .map(|name| {
                let of = scores.all(cluster.name(), name);
                let list = of
                    .into_iter()
                    .map(|(name, value)| json!({"name": name, "value": value}));
                (name.clone(), list.collect())
            })
            .collect();
        let all = Value::Object(all);
        let (answer, steps) = self
            .program
            .eval_counted(&[(CLUSTER, cluster.object()), (SCORES_VARIABLE, &all)]);
        if steps > MAX_STEPS {
            let message = format!(
                "the CEL expression {:?} costs too much: more than {MAX_STEPS} steps for a cluster",
                shown(&self.text)
            );
            return Err(Misconfigured::new(PART, message));
        }
        match answer {
            Ok(Value::Bool(holds)) => Ok(Ok(holds)),
            Ok(_) => {
                let message = format!(
                    "the CEL expression {:?} is neither true nor false",
                    shown(&self.text)
                );
                Err(Misconfigured::new(PART, message))
            }
            Err(error) => Ok(Err(error)),
        }
    }
}

/// In what a cluster does not match.
enum Mismatch<'a> {
    Labels(&'a LabelSelector),
    Claims(&'a LabelSelector),
    Expression(&'a str),
    Failed(&'a str, String),
}

impl std::fmt::Display for Mismatch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Labels(labels) => write!(f, "its labels do not match {labels}"),
            Self::Claims(claims) => write!(f, "its claims do not match {claims}"),
            Self::Expression(text) => write!(f, "{} is false", shown(text)),
            Self::Failed(text, error) => write!(f, "{} cannot be told: {error}", shown(text)),
        }
    }
}

/// As much of a text as a message shows.
fn shown(text: &str) -> &str {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

/// Whether one of the predicates may match a cluster, as far as labels and claims go.
pub fn any_may_match(predicates: &[Compiled], cluster: &Candidate) -> bool {
    let mut all = predicates.iter();
    predicates.is_empty() || all.any(|predicate| predicate.may_match(cluster))
}

/// Whether one of the predicates matches a cluster. No predicates match every cluster.
pub fn any_matches(
    predicates: &[Compiled],
    cluster: &Candidate,
    scores: &dyn Scores,
) -> Result<bool, Misconfigured> {
    for predicate in predicates {
        if predicate.matches(cluster, scores)?.is_ok() {
            return Ok(true);
        }
    }
    Ok(predicates.is_empty())
}

/// Why none of the predicates matches a cluster, in words.
pub fn explain(predicates: &[Compiled], cluster: &Candidate, scores: &dyn Scores) -> String {
    let mut words = Vec::new();
    for (at, predicate) in predicates.iter().enumerate() {
        let number = match predicates.len() {
            1 => String::new(),
            _ => format!("predicate {}: ", at + 1),
        };
        match predicate.matches(cluster, scores) {
            Ok(Ok(())) => return "a predicate matches it".to_owned(),
            Ok(Err(mismatch)) => words.push(format!("{number}{mismatch}")),
            Err(error) => words.push(format!("{number}{error}")),
        }
    }
    words.join("; ")
}
