//! Labels, annotations, finalizers, taints and namespaces that the system writes or reads.

/// On templates and bindings: the id of the PropagationPolicy that claims them.
pub const PP_ID: &str = "propagationpolicy.karmada.io/permanent-id";
/// On templates and bindings: that policy's namespace.
pub const PP_NAMESPACE: &str = "propagationpolicy.karmada.io/namespace";
/// On templates and bindings: that policy's name.
pub const PP_NAME: &str = "propagationpolicy.karmada.io/name";
/// On templates and bindings: the id of the ClusterPropagationPolicy that claims them.
pub const CPP_ID: &str = "clusterpropagationpolicy.karmada.io/permanent-id";
/// On templates and bindings: that policy's name.
pub const CPP_NAME: &str = "clusterpropagationpolicy.karmada.io/name";

/// On bindings, Works and manifests: the ResourceBinding's id.
pub const RB_ID: &str = "resourcebinding.karmada.io/permanent-id";
/// On Works and manifests: the ResourceBinding's namespace.
pub const RB_NAMESPACE: &str = "resourcebinding.karmada.io/namespace";
/// On Works and manifests: the ResourceBinding's name.
pub const RB_NAME: &str = "resourcebinding.karmada.io/name";
/// On bindings, Works and manifests: the ClusterResourceBinding's id.
pub const CRB_ID: &str = "clusterresourcebinding.karmada.io/permanent-id";
/// On Works and manifests: the ClusterResourceBinding's name.
pub const CRB_NAME: &str = "clusterresourcebinding.karmada.io/name";
/// On bindings: who follows the template, a JSON array.
pub const DEPENDENCIES: &str = "resourcebinding.karmada.io/dependencies";
/// On bindings of dependencies: prefix of the labels that name the bindings that need them.
pub const DEPENDED_BY_PREFIX: &str = "resourcebinding.karmada.io/depended-by-";
/// On bindings: the placement that was last placed, as JSON.
pub const APPLIED_PLACEMENT: &str = "policy.karmada.io/applied-placement";
/// On bindings: the group of clusters in use and the rebalance that was last followed, as JSON.
pub const PLACED: &str = "lockgate.karmada.io/placed";
/// On bindings: since when the application is unhealthy, by cluster, as JSON.
pub const UNHEALTHY_SINCE: &str = "lockgate.karmada.io/unhealthy-since";
/// What an application took along when it failed over, on its binding: the cluster that it came to, and the labels of its copy.
pub const CARRIED_STATE: &str = "lockgate.karmada.io/carried-state";
/// On bindings: somebody else manages them.
pub const BINDING_MANAGED_BY: &str = "binding.karmada.io/managed-by";
/// On bindings, and on claimed templates that have none yet: the record of the last activation, as JSON.
pub const ACTIVATED: &str = "lockgate.karmada.io/activated";
/// On bindings: the generation of the policy that was activated last, for people; the record says the same.
pub const ACTIVATED_GENERATION: &str = "lockgate.karmada.io/activated-policy-generation";
/// On templates: activation was asked for; the value names the request.
pub const ACTIVATE: &str = "lockgate.karmada.io/activate";

/// On bindings: how far a rollout is, as JSON: the current, the last good and the rejected revision, and the last command.
pub const ROLLOUT: &str = "lockgate.karmada.io/rollout";
/// On templates: what an operator asks of a rollout, as JSON.
pub const ROLLOUT_REQUEST: &str = "lockgate.karmada.io/rollout-request";
/// On revisions: the digest of what every cluster gets.
pub const REVISION_DIGEST: &str = "lockgate.karmada.io/revision-digest";
/// On a revision that was given up.
pub const REVISION_GIVEN_UP: &str = "lockgate.karmada.io/given-up";
/// On what keeps an object that was deleted until it is made again: which it is.
pub const KEPT: &str = "lockgate.karmada.io/kept";

/// On Works and manifests: the Work's id.
pub const WORK_ID: &str = "work.karmada.io/permanent-id";
/// On manifests: the Work's namespace.
pub const WORK_NAMESPACE: &str = "work.karmada.io/namespace";
/// On manifests: the Work's name.
pub const WORK_NAME: &str = "work.karmada.io/name";
/// On templates, Works and manifests: `overwrite` or `abort`.
pub const CONFLICT_RESOLUTION: &str = "work.karmada.io/conflict-resolution";
/// On Works: the override policies that were applied, as JSON.
pub const APPLIED_OVERRIDES: &str = "policy.karmada.io/applied-overrides";
/// On Works: the cluster override policies that were applied, as JSON.
pub const APPLIED_CLUSTER_OVERRIDES: &str = "policy.karmada.io/applied-cluster-overrides";
/// On Works: a digest of everything that the manifest was rendered from.
pub const RENDERED_FROM: &str = "lockgate.karmada.io/rendered-from";
/// On Works: a digest of the manifest, so that one that somebody edited by hand is not sent.
pub const RENDERED: &str = "lockgate.karmada.io/rendered";
/// On Works: which rollout policies suspend them, and why, for people.
pub const SUSPENDED_BY: &str = "lockgate.karmada.io/suspended-by";
/// On Works: the revision that the member was last told by a rollout.
pub const REVISION: &str = "lockgate.karmada.io/revision";
/// On Works: when it was told, RFC 3339.
pub const RELEASED_AT: &str = "lockgate.karmada.io/released-at";
/// On Works: since when the member has been well with it, RFC 3339.
pub const HEALTHY_SINCE: &str = "lockgate.karmada.io/healthy-since";
/// On Works: since when the member has not been well with it, RFC 3339.
pub const FAILED_SINCE: &str = "lockgate.karmada.io/failed-since";
/// On Works: the older way to suspend them, with the value `suppressed`.
pub const INSTRUCTION: &str = "propagation.karmada.io/instruction";

/// On manifests: we manage this object, with the value `true`.
pub const MANAGED: &str = "karmada.io/managed";
/// On namespaces of members: something in it was preserved, so that it is not deleted; with the value `true`.
pub const KEEPS_PRESERVED: &str = "lockgate.karmada.io/keeps-preserved";
/// On manifests: the template's uid.
pub const TEMPLATE_UID: &str = "resourcetemplate.karmada.io/uid";
/// On manifests: the template's generation.
pub const TEMPLATE_GENERATION: &str = "resourcetemplate.karmada.io/generation";
/// On manifests: the keys of the labels that we manage.
pub const MANAGED_LABELS: &str = "resourcetemplate.karmada.io/managed-labels";
/// On manifests: the keys of the annotations that we manage.
pub const MANAGED_ANNOTATIONS: &str = "resourcetemplate.karmada.io/managed-annotations";
/// On templates: members own the replicas, with the value `true`.
pub const RETAIN_REPLICAS: &str = "resourcetemplate.karmada.io/retain-replicas";
/// On templates: somebody else propagates them.
pub const CLAIMED_BY: &str = "resourcetemplate.karmada.io/claimed-by";
/// On any object: it must not be deleted, with the value `Always`.
pub const DELETION_PROTECTED: &str = "resourcetemplate.karmada.io/deletion-protected";
/// On namespaces: they are not sent to members, with the value `true`.
pub const SKIP_AUTO_PROPAGATION: &str = "namespace.karmada.io/skip-auto-propagation";
/// On namespaces of the system, with the value `true`.
pub const SYSTEM: &str = "karmada.io/system";

/// On Clusters.
pub const CLUSTER_FINALIZER: &str = "karmada.io/cluster-controller";
/// On Works.
pub const WORK_FINALIZER: &str = "karmada.io/execution-controller";
/// On ResourceBindings.
pub const RB_FINALIZER: &str = "karmada.io/binding-controller";
/// On ClusterResourceBindings.
pub const CRB_FINALIZER: &str = "karmada.io/cluster-resource-binding-controller";
/// On bindings whose dependencies follow them; never written here, only removed.
pub const DEPENDENCIES_FINALIZER: &str = "karmada.io/binding-dependencies-distributor";
/// On PropagationPolicies; never written here, only removed.
pub const PP_FINALIZER: &str = "karmada.io/propagation-policy-controller";
/// On ClusterPropagationPolicies; never written here, only removed.
pub const CPP_FINALIZER: &str = "karmada.io/cluster-propagation-policy-controller";

/// Taint of a cluster that says that it is not ready.
pub const TAINT_NOT_READY: &str = "cluster.karmada.io/not-ready";
/// Taint of a cluster that does not answer.
pub const TAINT_UNREACHABLE: &str = "cluster.karmada.io/unreachable";
/// Taint of a cordoned cluster.
pub const TAINT_UNSCHEDULABLE: &str = "cluster.karmada.io/unschedulable";
/// On Clusters that are leaving: `keep` or `delete`, what becomes of the objects there.
pub const UNJOIN_WORKLOADS: &str = "lockgate.karmada.io/unjoin-workloads";

/// Prefix of execution namespaces.
pub const EXECUTION_PREFIX: &str = "karmada-es-";
/// Where the secrets of members are.
pub const CLUSTER_NAMESPACE: &str = "karmada-cluster";
/// Where the control plane keeps its own objects.
pub const SYSTEM_NAMESPACE: &str = "karmada-system";
