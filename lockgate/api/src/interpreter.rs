//! ResourceInterpreterCustomization: how the objects of a kind are read, in the words of those who know the kind.

use serde::{Deserialize, Serialize};

use crate::meta::{Condition, ObjectMeta};

/// How the objects of a kind are read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InterpreterCustomization {
    /// Metadata.
    pub metadata: ObjectMeta,
    /// What is customized.
    pub spec: InterpreterSpec,
    /// What became of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<InterpreterStatus>,
}

/// What is customized, for which kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InterpreterSpec {
    /// The kind.
    pub target: InterpreterTarget,
    /// The scripts.
    pub customizations: Customizations,
}

/// A kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InterpreterTarget {
    /// Its apiVersion.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
}

/// The scripts, each for one question.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Customizations {
    /// What a member's object keeps: `Retain(desiredObj, observedObj)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<LuaScript>,
    /// How many replicas it asks for, and what one needs: `GetReplicas(obj)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replica_resource: Option<LuaScript>,
    /// Its parts that have replicas of their own: `GetComponents(obj)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub component_resource: Option<LuaScript>,
    /// The object with a cluster's share of replicas: `ReviseReplica(obj, desiredReplica)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replica_revision: Option<LuaScript>,
    /// Which part of a member's status is kept: `ReflectStatus(observedObj)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_reflection: Option<LuaScript>,
    /// The template with the status of all members: `AggregateStatus(desiredObj, statusItems)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_aggregation: Option<LuaScript>,
    /// Whether a member's object is well: `InterpretHealth(observedObj)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health_interpretation: Option<LuaScript>,
    /// What it needs beside itself: `GetDependencies(desiredObj)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dependency_interpretation: Option<LuaScript>,
}

/// A script.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LuaScript {
    /// Its text, in Lua 5.1.
    pub lua_script: String,
}

/// What became of a customization.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InterpreterStatus {
    /// The generation that this speaks of.
    pub observed_generation: i64,
    /// `Accepted`: whether every script can be read and defines its function.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::meta::null_is_default"
    )]
    pub conditions: Vec<Condition>,
}
