//! What waits: what `lockgate pending` shows and `lockgate activate` acts on. [`select`] says which templates are meant,
//! [`gather`] reads them, [`show`] prints; what waits and what it would do is the engine's to say.

pub(crate) mod gather;
pub(crate) mod select;
pub(crate) mod show;

use clap::{Args, ValueEnum};

use crate::connect::HubArguments;

/// Which templates.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Which {
    /// What to look at: `all`, KIND, KIND/NAME or KIND NAME; all if it is not given
    #[arg(value_name = "KIND/NAME", num_args = 0..=2)]
    pub(crate) what: Vec<String>,
    /// Only what this policy owns: NAME, NAMESPACE/NAME, pp/NAME or cpp/NAME
    #[arg(long, value_name = "POLICY")]
    pub(crate) policy: Option<String>,
    /// Only templates with these labels; the name of a policy works as a label, as in
    /// clusterpropagationpolicy.karmada.io/name=POLICY
    #[arg(short = 'l', long, value_name = "LABELS")]
    pub(crate) selector: Option<String>,
    /// The namespace [default: the context's; all, if a ClusterPropagationPolicy is named]
    #[arg(short, long, value_name = "NS", conflicts_with = "all_namespaces")]
    pub(crate) namespace: Option<String>,
    /// All namespaces, and what is in none
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,
    #[command(flatten)]
    pub(crate) hub: HubArguments,
}

/// The form of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    #[default]
    Table,
    Wide,
    Json,
    Yaml,
}
