//! Kinds of objects that are read: their versions, and what makes an object unreadable.

use std::collections::BTreeMap;

use dra_alloc::skip::{SkipDeclaration, SkipField};
use dra_alloc::{AllocatedState, GateSet, StateError};
use dra_attrs::{Component, Profile, Quantity};
use k8s_openapi::Resource;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{Container, Node, Pod, PodSpec};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::api::resource::v1::{
    DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice,
};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as KubeQuantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use readiness::rule::{NodeReadinessRule, ReadinessTaintRule};
use readiness::{GatedNode, GatedPod, KubeletConfiguration};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use serde_path_to_error::Segment;

use super::Manifests;
use super::problem::Fault;
use super::tree::Step;
use crate::objects::KubeObject;

const SKIP: &str = "skipNodeOperations";

/// Largest number of bytes of an object's name.
const MAX_NAME_LEN: usize = 253;

/// Kind of object that is read.
pub(super) trait Kind: Sized {
    const KIND: &'static str;
    const GROUP: &'static str;
    /// Name of the resource in the API; none for a kind that no API server serves.
    const RESOURCE: Option<&'static str> = None;
    /// API versions whose objects have the shape of the type; any if empty.
    const VERSIONS: &'static [&'static str];
    /// Beginnings of the paths of fields that may be unknown.
    const MAY_GROW: &'static [&'static [&'static str]] = &[];

    fn list(manifests: &mut Manifests) -> &mut Vec<Self>;

    fn read(json: Value) -> Result<Self, Fault>;

    fn metadata(&self) -> Option<&ObjectMeta>;

    /// Returns the object as it was understood; `None` if nothing is known of its other fields.
    fn to_json(&self) -> Option<Value>;

    /// Rejects objects that a reader accepts and no API server stores.
    fn check(&self) -> Result<(), Fault> {
        Ok(())
    }
}

/// Kinds of k8s-openapi: versions, where the object goes, how it is read, fields that may be unknown, and the check.
macro_rules! kubernetes_kinds {
    ($($kind:ty: $versions:expr, $($list:ident).+, $read:ident, $grow:expr $(, $check:ident)?;)*) => {
        $(impl Kind for $kind {
            const KIND: &'static str = <$kind as Resource>::KIND;
            const GROUP: &'static str = <$kind as Resource>::GROUP;
            const RESOURCE: Option<&'static str> = Some(<$kind as Resource>::URL_PATH_SEGMENT);
            const VERSIONS: &'static [&'static str] = &$versions;
            const MAY_GROW: &'static [&'static [&'static str]] = $grow;

            fn list(manifests: &mut Manifests) -> &mut Vec<Self> {
                &mut manifests.$($list).+
            }

            fn read(json: Value) -> Result<Self, Fault> {
                $read(json)
            }

            fn metadata(&self) -> Option<&ObjectMeta> {
                Some(&self.metadata)
            }

            fn to_json(&self) -> Option<Value> {
                serde_json::to_value(self).ok()
            }

            $(fn check(&self) -> Result<(), Fault> {
                $check(self)
            })?
        })*
    };
}

/// The status of nodes and pods grows with every release, and little of it matters here.
const STATUS: &[&[&str]] = &[&["status"]];

kubernetes_kinds! {
    Node: ["v1"], nodes, traced, STATUS, check_node;
    Pod: ["v1"], pods, traced, STATUS, check_pod;
    DaemonSet: ["v1"], workloads.daemon_sets, traced, STATUS;
    Deployment: ["v1"], workloads.deployments, traced, STATUS;
    ReplicaSet: ["v1"], workloads.replica_sets, traced, STATUS;
    StatefulSet: ["v1"], workloads.stateful_sets, traced, STATUS;
    Job: ["v1"], workloads.jobs, traced, STATUS;
    CronJob: ["v1"], workloads.cron_jobs, traced, STATUS;
    PodGroup: ["v1beta1"], pod_groups, traced, &[];
    PodDisruptionBudget: ["v1"], budgets, traced, STATUS;
    PriorityClass: ["v1"], priority_classes, traced, &[];
    ClusterRole: ["v1"], roles, traced, &[];
    DeviceClass: ["v1", "v1beta2", "v1beta1"], classes, traced, &[];
    DeviceTaintRule: ["v1", "v1beta2", "v1alpha3"], taint_rules, traced, &[];
    ResourceSlice: ["v1", "v1beta2", "v1beta1"], slices, carrier, &[], check_slice;
    ResourceClaim: ["v1", "v1beta2", "v1beta1"], claims, carrier, &[], check_claim;
    ResourceClaimTemplate: ["v1", "v1beta2", "v1beta1"], claim_templates, traced, &[];
}

impl Kind for GatedNode {
    const KIND: &'static str = "Node";
    const GROUP: &'static str = "";
    const RESOURCE: Option<&'static str> = Some("nodes");
    const VERSIONS: &'static [&'static str] = &["v1"];
    const MAY_GROW: &'static [&'static [&'static str]] = &[&["status"], &["spec", "nodeReadinessGates"]];

    fn list(manifests: &mut Manifests) -> &mut Vec<Self> {
        &mut manifests.readiness.nodes
    }

    fn read(json: Value) -> Result<Self, Fault> {
        if json.pointer("/spec/readinessGates").is_some() && json.pointer("/spec/nodeReadinessGates").is_some() {
            return Err(Fault::new(&["spec"], "duplicate field `readinessGates`"));
        }
        // First as the object of Kubernetes: the gates are read from a tree, which knows no places.
        traced::<Node>(json.clone())?;
        deserialized(json)
    }

    fn metadata(&self) -> Option<&ObjectMeta> {
        Some(&self.node.metadata)
    }

    fn to_json(&self) -> Option<Value> {
        serde_json::to_value(self).ok()
    }

    fn check(&self) -> Result<(), Fault> {
        check_node(&self.node)
    }
}

impl Kind for GatedPod {
    const KIND: &'static str = "Pod";
    const GROUP: &'static str = "";
    const RESOURCE: Option<&'static str> = Some("pods");
    const VERSIONS: &'static [&'static str] = &["v1"];
    const MAY_GROW: &'static [&'static [&'static str]] = STATUS;

    fn list(manifests: &mut Manifests) -> &mut Vec<Self> {
        &mut manifests.readiness.pods
    }

    fn read(json: Value) -> Result<Self, Fault> {
        traced::<Pod>(json.clone())?;
        deserialized(json)
    }

    fn metadata(&self) -> Option<&ObjectMeta> {
        Some(&self.pod.metadata)
    }

    fn to_json(&self) -> Option<Value> {
        let mut pod = serde_json::to_value(&self.pod).ok()?;
        if let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) {
            spec.insert("nodeReadinessRequirements".to_owned(), json!(self.requirements));
        }
        Some(pod)
    }

    fn check(&self) -> Result<(), Fault> {
        check_pod(&self.pod)
    }
}

impl Kind for KubeletConfiguration {
    const KIND: &'static str = "KubeletConfiguration";
    const GROUP: &'static str = "kubelet.config.k8s.io";
    const VERSIONS: &'static [&'static str] = &["v1beta1"];

    fn list(manifests: &mut Manifests) -> &mut Vec<Self> {
        &mut manifests.readiness.kubelets
    }

    fn read(json: Value) -> Result<Self, Fault> {
        deserialized(json)
    }

    fn metadata(&self) -> Option<&ObjectMeta> {
        None
    }

    fn to_json(&self) -> Option<Value> {
        None
    }
}

impl Kind for ReadinessTaintRule {
    const KIND: &'static str = "ReadinessTaintRule";
    const GROUP: &'static str = "";
    const VERSIONS: &'static [&'static str] = &[];

    fn list(manifests: &mut Manifests) -> &mut Vec<Self> {
        &mut manifests.readiness.taint_rules
    }

    fn read(json: Value) -> Result<Self, Fault> {
        deserialized(json)
    }

    fn metadata(&self) -> Option<&ObjectMeta> {
        None
    }

    fn to_json(&self) -> Option<Value> {
        None
    }
}

impl Kind for NodeReadinessRule {
    const KIND: &'static str = "NodeReadinessRule";
    const GROUP: &'static str = "readiness.node.x-k8s.io";
    const VERSIONS: &'static [&'static str] = &[];

    fn list(manifests: &mut Manifests) -> &mut Vec<Self> {
        &mut manifests.readiness.rules
    }

    fn read(json: Value) -> Result<Self, Fault> {
        deserialized(json)
    }

    fn metadata(&self) -> Option<&ObjectMeta> {
        Some(&self.metadata)
    }

    fn to_json(&self) -> Option<Value> {
        serde_json::to_value(self).ok()
    }
}

/// Returns true if the field at a path may be unknown.
pub(super) fn may_grow<T: Kind>(path: &[Step]) -> bool {
    let is_below = |growing: &&[&str]| {
        path.len() >= growing.len() && path.iter().zip(*growing).all(|(step, key)| *step == Step::from(*key))
    };
    T::MAY_GROW.iter().any(is_below)
}

/// Reads and checks an object.
pub(super) fn read_object<T: Kind>(json: Value) -> Result<T, Fault> {
    let object = T::read(json)?;
    if let Some(metadata) = object.metadata() {
        let name = metadata.name.as_deref().unwrap_or_default();
        required(&["metadata", "name"], name)?;
        if name.len() > MAX_NAME_LEN {
            return Err(Fault::new(&["metadata", "name"], format!("more than {MAX_NAME_LEN} bytes")));
        }
    }
    object.check()?;
    Ok(object)
}

/// Reads a type of k8s-openapi, with the place of what can't be read.
pub(super) fn traced<T: KubeObject>(json: Value) -> Result<T, Fault> {
    T::from_json(json).map_err(|error| fault(&error))
}

fn deserialized<T: DeserializeOwned>(json: Value) -> Result<T, Fault> {
    serde_path_to_error::deserialize(json).map_err(|error| fault(&error))
}

fn fault(error: &serde_path_to_error::Error<serde_json::Error>) -> Fault {
    let path = error.path().iter().filter_map(|segment| match segment {
        Segment::Seq { index } => Some(Step::Index(*index)),
        Segment::Map { key } => Some(Step::Key(key.clone())),
        _ => None,
    });
    Fault { path: path.collect(), reason: error.inner().to_string() }
}

fn required(path: &[&str], value: &str) -> Result<(), Fault> {
    if value.is_empty() { Err(Fault::new(path, "must be set")) } else { Ok(()) }
}

fn check_slice(slice: &ResourceSlice) -> Result<(), Fault> {
    required(&["spec", "driver"], &slice.spec.driver)?;
    required(&["spec", "pool", "name"], &slice.spec.pool.name)
}

fn check_claim(claim: &ResourceClaim) -> Result<(), Fault> {
    AllocatedState::from_claims([claim], Component::new(Profile::V1_37, GateSet::all()))
        .map(|_| ())
        .map_err(|error| allocation_fault(&error))
}

fn check_node(node: &Node) -> Result<(), Fault> {
    let Some(status) = &node.status else { return Ok(()) };
    check_amounts(&[], "allocatable", status.allocatable.as_ref())
        .and_then(|()| check_amounts(&[], "capacity", status.capacity.as_ref()))
        .map_err(|fault| Fault { path: [vec!["status".into()], fault.path].concat(), ..fault })
}

fn check_pod(pod: &Pod) -> Result<(), Fault> {
    pod.spec.as_ref().map_or(Ok(()), check_pod_spec)
}

/// Checks the amounts of a pod or of a pod template.
pub(super) fn check_pod_spec(spec: &PodSpec) -> Result<(), Fault> {
    check_amounts(&["spec".into()], "overhead", spec.overhead.as_ref())?;
    let containers: [(&str, &[Container]); 2] =
        [("initContainers", spec.init_containers.as_deref().unwrap_or_default()), ("containers", &spec.containers)];
    for (list, containers) in containers {
        for (index, container) in containers.iter().enumerate() {
            let Some(resources) = &container.resources else { continue };
            let place: [Step; 4] = ["spec".into(), list.into(), Step::Index(index), "resources".into()];
            check_amounts(&place, "requests", resources.requests.as_ref())?;
            check_amounts(&place, "limits", resources.limits.as_ref())?;
        }
    }
    Ok(())
}

/// Checks the amounts of a field, which the API server would neither decode nor accept below zero.
fn check_amounts(place: &[Step], field: &str, amounts: Option<&BTreeMap<String, KubeQuantity>>) -> Result<(), Fault> {
    for (resource, amount) in amounts.into_iter().flatten() {
        let reason = match Quantity::from_kube(amount) {
            Ok(amount) if amount.nanos() >= 0 => continue,
            Ok(_) => format!("{}: must not be negative", amount.0),
            Err(error) => error.to_string(),
        };
        let path = [place, &[field.into(), resource.as_str().into()]].concat();
        return Err(Fault { path, reason });
    }
    Ok(())
}

/// Reads an object with either form of `skipNodeOperations`.
fn carrier<T: KubeObject + SkipField>(json: Value) -> Result<T, Fault> {
    let broken = broken_declaration(&json, T::PATH);
    match (T::normalize_to_list(json), broken) {
        (Ok(json), _) => traced(json),
        (Err(_), Some(path)) => Err(Fault { path, reason: "neither a bool nor a list of operation names".to_owned() }),
        (Err(error), None) => Err(Fault::new(&[], error.to_string())),
    }
}

/// Returns the path of an invalid `skipNodeOperations`, which [`normalize_to_list`] reports as a text only.
fn broken_declaration(json: &Value, carriers: &[&str]) -> Option<Vec<Step>> {
    let (step, path) = match carriers {
        [] => {
            let declaration = json.get(SKIP)?.clone();
            return serde_json::from_value::<SkipDeclaration>(declaration).err().map(|_| vec![SKIP.into()]);
        }
        ["*", rest @ ..] => {
            let mut elements = json.as_array()?.iter().enumerate();
            elements.find_map(|(index, json)| Some((Step::Index(index), broken_declaration(json, rest)?)))?
        }
        [key, rest @ ..] => ((*key).into(), broken_declaration(json.get(*key)?, rest)?),
    };
    Some([vec![step], path].concat())
}

fn allocation_fault(error: &StateError) -> Fault {
    let mut path: Vec<Step> = vec!["status".into(), "allocation".into()];
    match error {
        StateError::ConsumedCapacity { index, capacity, source, .. } => {
            path.extend(["devices".into(), "results".into(), Step::Index(usize::from(*index))]);
            path.extend(["consumedCapacity".into(), capacity.as_str().into()]);
            Fault { path, reason: source.to_string() }
        }
        _ => Fault { path, reason: error.to_string() },
    }
}
