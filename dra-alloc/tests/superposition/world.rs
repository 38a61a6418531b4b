//! Clusters with devices of zones, and shapes of nodes.

use dra_alloc::autoscaler::{NodeTemplate, ScaleSimulator};
use dra_alloc::pods::{ClaimTracker, PodOptions};
use dra_alloc::selector::SelectorCache;
use dra_alloc::superposition::{LostShapeError, NodeShape, ShapeError, Superposed};
use dra_alloc::{Classes, Inventory, Profile};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, from_value, json};

pub(crate) const DRIVER: &str = "gpu.example.com";
pub(crate) const ROOT: &str = "gpu.example.com/pcieRoot";

/// Objects of a cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct World {
    pub(crate) slices: Vec<ResourceSlice>,
    pub(crate) claims: Vec<ResourceClaim>,
    pub(crate) pods: Vec<Pod>,
}

/// Shape under a name, with its devices and the values of its labels.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) template: NodeTemplate,
    pub(crate) price: u64,
    pub(crate) labels: Vec<(&'static str, Vec<&'static str>)>,
}

pub(crate) fn shape(name: &str, devices: &[Value], zones: &[&'static str]) -> Shape {
    let node: Node = from_value(json!({"metadata": {"name": name}})).unwrap();
    let own = json!({"nodeName": name});
    let slices = if devices.is_empty() { Vec::new() } else { vec![slice(name, devices, &own)] };
    let labels = if zones.is_empty() { Vec::new() } else { vec![("zone", zones.to_vec())] };
    Shape { template: NodeTemplate::new(node, slices).unwrap(), price: 1, labels }
}

impl Shape {
    pub(crate) fn unknown(mut self, attribute: &str) -> Self {
        self.template = self.template.with_unknown_attributes([attribute]);
        self
    }

    pub(crate) fn priced(self, price: u64) -> Self {
        Self { price, ..self }
    }

    pub(crate) fn label(mut self, key: &'static str, values: &[&'static str]) -> Self {
        self.labels.push((key, values.to_vec()));
        self
    }

    pub(crate) fn as_shape(&self) -> NodeShape<'_> {
        let begin = NodeShape::new(&self.template, self.price);
        self.labels.iter().fold(begin, |shape, (key, values)| shape.with_label(*key, values.iter().copied()))
    }
}

/// Returns a slice with some fields for its nodes.
pub(crate) fn slice(pool: &str, devices: &[Value], nodes: &Value) -> ResourceSlice {
    let mut spec = json!({"driver": DRIVER, "devices": devices,
        "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1}});
    nodes.as_object().unwrap().iter().for_each(|(key, value)| spec[key] = value.clone());
    from_value(json!({"metadata": {"name": pool}, "spec": spec})).unwrap()
}

pub(crate) fn nodes_with(labels: &[(&str, &[&str])]) -> Value {
    let expressions: Vec<Value> =
        labels.iter().map(|(key, values)| json!({"key": key, "operator": "In", "values": values})).collect();
    json!({"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}})
}

pub(crate) fn plain(names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| json!({"name": name})).collect()
}

/// Device with a `pcieRoot`, of a kind.
pub(crate) fn rooted(name: &str, kind: &str, root: &str) -> Value {
    json!({"name": name, "attributes": {"kind": {"string": kind}, "pcieRoot": {"string": root}}})
}

impl World {
    /// Adds a slice with devices that nodes of some zones see.
    pub(crate) fn zonal(mut self, pool: &str, devices: &[&str], zones: &[&str]) -> Self {
        self.slices.push(slice(pool, &plain(devices), &nodes_with(&[("zone", zones)])));
        self
    }

    /// Adds a pod with a claim for a number of devices.
    pub(crate) fn pod(self, name: &str, count: usize) -> Self {
        let requests = json!([{"name": "r", "exactly": {"deviceClassName": "gpu", "count": count}}]);
        self.pod_with(name, &json!({"requests": requests}))
    }

    /// Adds a pod with a claim of its own.
    pub(crate) fn pod_with(mut self, name: &str, devices: &Value) -> Self {
        let claim = json!({"metadata": {"namespace": "ns", "name": name, "uid": format!("claim-{name}")}, "spec": {"devices": devices}});
        self.claims.push(from_value(claim).unwrap());
        self.pods.push(pod(name, name));
        self
    }

    pub(crate) fn ask(&self, shapes: &[Shape], beside: &[&Superposed], pods: &[&str]) -> Superposed {
        self.try_ask(shapes, beside, pods).unwrap()
    }

    pub(crate) fn try_ask(
        &self,
        shapes: &[Shape],
        beside: &[&Superposed],
        pods: &[&str],
    ) -> Result<Superposed, ShapeError> {
        let pods: Vec<&Pod> =
            self.pods.iter().filter(|pod| pods.contains(&pod.metadata.name.as_deref().unwrap())).collect();
        with_simulator(|simulator| {
            let (mut inventory, tracker) = (Inventory::new(self.slices.iter().cloned()), self.tracker());
            let shapes: Vec<NodeShape<'_>> = shapes.iter().map(Shape::as_shape).collect();
            let answer = simulator.superposed(&mut inventory, &tracker, &shapes, beside, &pods);
            assert!(inventory.slices().eq(&self.slices), "the question leaves nothing behind");
            answer
        })
    }

    pub(crate) fn tracker(&self) -> ClaimTracker {
        let mut tracker = ClaimTracker::new(Profile::V1_37);
        tracker.replace(self.claims.iter().cloned(), None).unwrap();
        tracker
    }
}

pub(crate) fn pod(name: &str, claim: &str) -> Pod {
    from_value(json!({"metadata": {"namespace": "ns", "name": name, "uid": name}, "spec": {"containers": [],
        "resourceClaims": [{"name": "r", "resourceClaimName": claim}]}}))
    .unwrap()
}

/// Asks a simulator of release 1.37 with classes `gpu`, for each device, and by kind: `g` and `n`.
pub(crate) fn with_simulator<R>(ask: impl FnOnce(&ScaleSimulator<'_>) -> R) -> R {
    let class = |name: &str, expression: &str| -> DeviceClass {
        from_value(json!({"metadata": {"name": name}, "spec": {"selectors": [{"cel": {"expression": expression}}]}}))
            .unwrap()
    };
    let kind = |kind: &str| format!("device.attributes['{DRIVER}'].kind == '{kind}'");
    let classes = Classes::new([class("gpu", "true"), class("g", &kind("g")), class("n", &kind("n"))]);
    let selectors = SelectorCache::default();
    ask(&ScaleSimulator::new(&classes, &selectors, PodOptions::new(Profile::V1_37), Timestamp::UNIX_EPOCH))
}

/// Returns the choices as `zone=a|b: 0 1`.
pub(crate) fn together(node: &Superposed) -> Vec<String> {
    let text = |choice: &dra_alloc::superposition::Choice| {
        let labels = choice.labels.iter().map(|(key, values)| {
            let values: Vec<&str> = values.iter().map(String::as_str).collect();
            format!("{key}={}", values.join("|"))
        });
        let shapes = choice.shapes.iter().map(|shape| usize::from(*shape).to_string());
        format!("{}: {}", labels.collect::<Vec<_>>().join(" "), shapes.collect::<Vec<_>>().join(" "))
    };
    node.together.iter().map(text).collect()
}

/// Returns the positions of the shapes that serve the pods.
pub(crate) fn survivors(node: &Superposed) -> Vec<usize> {
    node.survivors.iter().map(|survivor| usize::from(survivor.shape)).collect()
}

/// Returns the reason that a shape is lost for.
pub(crate) fn lost(node: &Superposed, shape: usize) -> &LostShapeError {
    &node.lost.iter().find(|lost| usize::from(lost.shape) == shape).unwrap().reason
}
