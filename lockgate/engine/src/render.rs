//! The render station: what exactly one cluster gets.
//!
//! ```text
//! template ─▶ replicas ─▶ overrides ─▶ prune ─▶ stamp ─▶ manifest of the Work
//! ```
//!
//! What always holds:
//! - Equal inputs give equal output, and [`inputs_digest`] says whether they are equal without rendering. A Work is
//!   rendered again only when that digest moves, so that another version of this code moves nothing.
//! - A manifest is the same object as its template: overrides change what is in it, never its group, kind, name or
//!   namespace.
//! - What the hub keeps for itself on templates is not sent.

mod digest;
mod explain;
mod overrides;
mod prune;
mod requirements;
mod stamp;
mod workload;

use std::collections::BTreeMap;
use std::sync::Arc;

use lockgate_api::{Binding, Cluster, OverridePolicy, names};
use machinery_value::encode::encoded_len;
use serde_json::Value;
use thiserror::Error;

use crate::failover::Carried;
use crate::interpret::{InterpretError, Script};
use crate::object::{self, TemplateId};

pub use digest::{
    activated_hash, content_hash, inputs_digest, inputs_digest_with, manifest_hash, namespace_digest,
};
pub use explain::{Explained, FieldChange, Step, changes, explain, explain_namespace};
pub use overrides::{
    OverrideError, SelectedRule, matching_policies, may_set_replicas, relevant_overrides, rules_for_cluster,
};
pub use prune::prune;
pub(crate) use prune::{SERVER_METADATA, TOKEN_SECRET};
pub(crate) use requirements::resource_request as pod_request;
pub(crate) use requirements::{no_amount, requirements};
pub use workload::{Workload, completions, workload};

use stamp::Stamp;
pub(crate) use stamp::resolution;

/// What a Work may weigh: the request that etcd takes by default, less room for the Work's own metadata and status.
pub const WORK_LIMIT: usize = 1536 * 1024 - 128 * 1024;

/// Everything that a manifest is rendered from.
#[derive(Clone, Copy, Debug)]
pub struct RenderInput<'a> {
    /// The template.
    pub template: &'a Value,
    /// Its binding; one with a namespace is a ResourceBinding.
    pub binding: &'a Binding,
    /// The binding's permanent id.
    pub binding_id: &'a str,
    /// The Work's permanent id.
    pub work_id: &'a str,
    /// Where it goes.
    pub cluster: &'a Cluster,
    /// The replicas that the cluster gets; none for what is no workload.
    pub replicas: Option<i64>,
    /// Whether these are the replicas that it has, and keeps whatever overrides say: it gets fewer when others have theirs.
    pub keeps: bool,
    /// The completions of a Job that the cluster gets; none to keep the template's.
    pub completions: Option<i64>,
    /// How replicas are given to a manifest, if a script says so.
    pub reviser: Option<&'a Script>,
    /// All override policies that exist; those that matter are selected here.
    pub overrides: &'a [Arc<OverridePolicy>],
    /// `Abort` or `Overwrite`, as the binding says; the template may say otherwise.
    pub conflict_resolution: &'a str,
}

/// What one cluster gets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rendered {
    /// The Work's name; its namespace is the cluster's execution namespace.
    pub work_name: String,
    /// The Work's labels.
    pub labels: BTreeMap<String, String>,
    /// The Work's annotations.
    pub annotations: BTreeMap<String, String>,
    /// The manifest.
    pub manifest: Value,
    /// The rules that were applied, in order.
    pub applied: Vec<AppliedRule>,
    /// The digest of what this was rendered from.
    pub digest: String,
    /// What somebody wrote and what had no effect, in whole sentences.
    pub warnings: Vec<String>,
}

/// A rule that was applied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppliedRule {
    /// The policy's namespace; empty for a ClusterOverridePolicy.
    pub namespace: String,
    /// The policy's name.
    pub name: String,
    /// Its place in `overrideRules`.
    pub rule: usize,
}

/// Why there is no manifest for a cluster.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RenderError {
    /// An override does not fit the template.
    #[error(transparent)]
    Override(#[from] Box<OverrideError>),
    /// A script does not give replicas to the template.
    #[error(transparent)]
    Interpret(#[from] Box<InterpretError>),
    /// A part of the object that must be a map is something else.
    #[error("{template}: {path} is not a map")]
    NotAMap {
        /// The template.
        template: String,
        /// Where.
        path: &'static str,
    },
    /// Another template has the Work's name.
    #[error(
        "the Work {work} belongs to {owner}, whose name gives the same one: rename one of the two objects"
    )]
    NameTaken {
        /// The Work.
        work: String,
        /// What it is a copy of.
        owner: String,
    },
    /// The manifest would not fit into a Work.
    #[error("the manifest has {size} bytes, and a Work holds at most {limit}: make the template smaller")]
    TooLarge {
        /// How many bytes it has.
        size: usize,
        /// How many it may have.
        limit: usize,
    },
}

/// Renders a template for one cluster.
pub fn render(input: &RenderInput<'_>) -> Result<Rendered, RenderError> {
    let rules = relevant_overrides(input.template, input.cluster, input.overrides);
    let mut manifest = bare(input.template);
    revise(&mut manifest, input)?;
    carry(&mut manifest, input);
    let stamp = Stamp::bound(input);
    let digest = digest::of_input(input, &rules);
    let mut warnings = Vec::new();
    override_by(&mut manifest, input.cluster, &rules, &mut warnings)?;
    if input.keeps && overrides::rules_may_set_replicas(&rules) {
        revise(&mut manifest, input)?;
    }
    finish(manifest, input.template, &rules, &stamp, digest, warnings)
}

/// The replicas that a cluster gets in the end: those that it is given, unless overrides may say otherwise. Then it is rendered,
/// and `count` reads them; none where that fails.
pub fn replicas_after_overrides(
    input: &RenderInput<'_>,
    count: impl FnOnce(&Value) -> Option<i64>,
) -> Option<i64> {
    let rules = relevant_overrides(input.template, input.cluster, input.overrides);
    if input.replicas.is_none() || !overrides::rules_may_set_replicas(&rules) {
        return input.replicas;
    }
    count(&render(input).ok()?.manifest)
}

/// A template without what servers write.
fn bare(template: &Value) -> Value {
    let mut manifest = template.clone();
    prune::prune_servers(&mut manifest);
    manifest
}

/// Gives a manifest the cluster's share of replicas.
fn revise(manifest: &mut Value, input: &RenderInput<'_>) -> Result<(), RenderError> {
    match (input.replicas, input.reviser) {
        (Some(replicas), Some(script)) => *manifest = script.revise(manifest, replicas).map_err(Box::new)?,
        (Some(replicas), None) => workload::revise_replicas(manifest, replicas),
        (None, _) => {}
    }
    if let Some(completions) = input.completions {
        workload::revise_completions(manifest, completions);
    }
    Ok(())
}

/// Puts the labels on that the application took along from another cluster.
fn carry(manifest: &mut Value, input: &RenderInput<'_>) {
    for (label, value) in input.carried().into_iter().flat_map(|carried| carried.labels) {
        let labels = &mut manifest["metadata"]["labels"];
        if !labels.is_object() {
            *labels = Value::Object(serde_json::Map::new());
        }
        labels[label] = value.into();
    }
}

impl RenderInput<'_> {
    /// The same with the replicas that the cluster has.
    #[must_use]
    pub fn keeping(self, replicas: i64) -> Self {
        Self {
            replicas: Some(replicas),
            keeps: true,
            ..self
        }
    }

    /// What the application took along to this cluster.
    fn carried(&self) -> Option<Carried> {
        Carried::on(self.binding).filter(|carried| carried.cluster == self.cluster.metadata.name)
    }
}

/// Renders a namespace that every cluster gets because things are sent into it. No binding stands behind it, and it
/// does not say what becomes of a namespace that the member made itself: such a one is left alone.
pub fn render_namespace(
    namespace: &Value,
    work_id: &str,
    cluster: &Cluster,
    overrides: &[Arc<OverridePolicy>],
) -> Result<Rendered, RenderError> {
    let rules = relevant_overrides(namespace, cluster, overrides);
    let stamp = Stamp::unbound(work_id, cluster);
    let digest = digest::of_namespace(namespace, &rules);
    let (mut manifest, mut warnings) = (bare(namespace), Vec::new());
    override_by(&mut manifest, cluster, &rules, &mut warnings)?;
    finish(manifest, namespace, &rules, &stamp, digest, warnings)
}

fn override_by(
    manifest: &mut Value,
    cluster: &Cluster,
    rules: &[SelectedRule<'_>],
    warnings: &mut Vec<String>,
) -> Result<(), RenderError> {
    Ok(overrides::apply(manifest, rules, &cluster.metadata.name, warnings).map_err(Box::new)?)
}

/// Everything after the overrides.
fn finish(
    mut manifest: Value,
    template: &Value,
    rules: &[SelectedRule<'_>],
    stamp: &Stamp<'_>,
    digest: String,
    warnings: Vec<String>,
) -> Result<Rendered, RenderError> {
    // Overrides see what people wrote; what must not be sent goes also if an override put it there.
    prune(&mut manifest);
    let work_name = names::work_name(
        object::text(template, "kind"),
        object::meta_text(template, "namespace"),
        object::meta_text(template, "name"),
    );
    let (labels, mut annotations) = stamp.put(&mut manifest, template, &work_name)?;
    annotations.extend(overrides::applied_annotations(rules));
    let rendered = Rendered {
        work_name,
        labels,
        annotations,
        manifest,
        applied: rules.iter().map(SelectedRule::applied).collect(),
        digest,
        warnings,
    };
    let size = rendered.size();
    if size > WORK_LIMIT {
        return Err(RenderError::TooLarge {
            size,
            limit: WORK_LIMIT,
        });
    }
    Ok(rendered)
}

impl Rendered {
    /// How many bytes of a Work this takes.
    fn size(&self) -> usize {
        let keys = self.labels.iter().chain(&self.annotations);
        encoded_len(&self.manifest) + keys.map(|(key, value)| key.len() + value.len()).sum::<usize>()
    }
}

impl RenderError {
    fn not_a_map(template: &Value, path: &'static str) -> Self {
        Self::NotAMap {
            template: TemplateId::of(template).to_string(),
            path,
        }
    }
}

#[cfg(test)]
mod tests;
