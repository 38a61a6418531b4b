//! A cluster with two drivers, and pods of seven shapes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use futures_util::{StreamExt, stream};
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value, json};

use super::stand_in::{StandIn, listed};

pub(crate) const POST: PostParams = PostParams { dry_run: false, field_manager: None };

/// Devices of a slice.
pub(crate) const DEVICES: usize = 8;

const DRIVERS: [&str; 2] = ["gpu", "nic"];

/// Calls that are made at a time.
const AT_A_TIME: usize = 32;

/// Devices that a pod asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    /// No claim.
    None,
    /// A device of a class.
    One(&'static str),
    /// Two devices of a class.
    Two(&'static str),
    /// A device with a selector of its own.
    Selected,
    /// A large device, or else a small one.
    Alternatives,
    /// A GPU and a network card.
    Both,
    /// A GPU and a network card at the same root.
    Near,
}

const SHAPES: [Shape; 7] =
    [Shape::None, Shape::One("gpu"), Shape::Two("nic"), Shape::Selected, Shape::Alternatives, Shape::Both, Shape::Near];

impl Shape {
    /// Returns the wish for devices; `None` without a claim.
    fn devices(self) -> Option<Value> {
        let exactly = |class: &str, count: usize| json!({"deviceClassName": class, "count": count});
        let requests = |wishes: &[Value]| -> Vec<Value> {
            let named = wishes.iter().enumerate();
            named.map(|(number, wish)| json!({"name": format!("r{number}"), "exactly": wish})).collect()
        };
        let selected = |size: usize| {
            let expression = format!("device.attributes['gpu.example.com'].size >= {size}");
            json!({"deviceClassName": "gpu", "selectors": [{"cel": {"expression": expression}}]})
        };
        Some(match self {
            Self::None => return None,
            Self::One(class) => json!({"requests": requests(&[exactly(class, 1)])}),
            Self::Two(class) => json!({"requests": requests(&[exactly(class, 2)])}),
            Self::Selected => json!({"requests": requests(&[selected(2)])}),
            Self::Alternatives => {
                let (mut large, mut small) = (selected(8), exactly("gpu", 1));
                (large["name"], small["name"]) = (json!("large"), json!("small"));
                json!({"requests": [{"name": "r0", "firstAvailable": [large, small]}]})
            }
            Self::Both => json!({"requests": requests(&[exactly("gpu", 1), exactly("nic", 1)])}),
            Self::Near => json!({"requests": requests(&[exactly("gpu", 1), exactly("nic", 1)]),
                "constraints": [{"matchAttribute": "resource.kubernetes.io/pcieRoot"}]}),
        })
    }
}

/// Cluster on a stand-in.
pub(crate) struct Cluster {
    client: Client,
    pods: Api<Pod>,
    claims: Api<ResourceClaim>,
}

pub(crate) fn node(number: usize) -> String {
    format!("node-{number:03}")
}

async fn create<K>(api: &Api<K>, object: Value)
where
    K: Clone + DeserializeOwned + Serialize + Debug,
{
    api.create(&POST, &from_value::<K>(object).unwrap()).await.unwrap();
}

fn slice(driver: &str, node: &str) -> Value {
    let device = |number: usize| {
        let root = json!({"string": format!("pci{}", number / 4)});
        json!({"name": format!("{driver}-{number}"),
            "attributes": {"size": {"int": number + 1}, "resource.kubernetes.io/pcieRoot": root}})
    };
    let devices: Vec<Value> = (0..DEVICES).map(device).collect();
    let pool = json!({"name": format!("{driver}-{node}"), "generation": 1, "resourceSliceCount": 1});
    let spec = json!({"driver": format!("{driver}.example.com"), "nodeName": node, "pool": pool, "devices": devices});
    json!({"metadata": {"name": format!("{driver}-{node}")}, "spec": spec})
}

impl Cluster {
    pub(crate) async fn fill(server: &StandIn, nodes: usize) -> Self {
        let client = server.client();
        let classes = Api::<DeviceClass>::all(client.clone());
        create(&classes, json!({"metadata": {"name": "any"}, "spec": {}})).await;
        for driver in DRIVERS {
            let expression = format!("device.driver == '{driver}.example.com'");
            let spec = json!({"selectors": [{"cel": {"expression": expression}}]});
            create(&classes, json!({"metadata": {"name": driver}, "spec": spec})).await;
        }
        let (all_nodes, slices): (Api<Node>, Api<ResourceSlice>) = (Api::all(client.clone()), Api::all(client.clone()));
        let fill = async |number: usize| {
            let node = node(number);
            let amounts = json!({"cpu": "64", "memory": "256Gi", "pods": "110"});
            let status = json!({"capacity": amounts, "allocatable": amounts});
            create(&all_nodes, json!({"metadata": {"name": node}, "status": status})).await;
            for driver in DRIVERS {
                create(&slices, slice(driver, &node)).await;
            }
        };
        stream::iter(0..nodes).for_each_concurrent(AT_A_TIME, fill).await;
        let (pods, claims) = (Api::default_namespaced(client.clone()), Api::default_namespaced(client.clone()));
        Self { client, pods, claims }
    }

    /// Creates pods of all shapes.
    pub(crate) async fn want(&self, pods: usize, prefix: &str, scheduler: &str, has_requests: bool) {
        let want = async |number: usize| {
            let shape = SHAPES[number % SHAPES.len()];
            self.pod(&format!("{prefix}{number}"), scheduler, shape, has_requests).await;
        };
        stream::iter(0..pods).for_each_concurrent(AT_A_TIME, want).await;
    }

    pub(crate) async fn claim(&self, name: &str, shape: Shape) {
        let spec = json!({"devices": shape.devices().unwrap()});
        create(&self.claims, json!({"metadata": {"name": name}, "spec": spec})).await;
    }

    pub(crate) async fn pod(&self, name: &str, scheduler: &str, shape: Shape, has_requests: bool) {
        let claims: Vec<Value> = match shape.devices() {
            Some(_) => {
                self.claim(name, shape).await;
                vec![json!({"name": "r", "resourceClaimName": name})]
            }
            None => Vec::new(),
        };
        let requests = json!({"requests": {"cpu": "100m", "memory": "64Mi"}});
        let resources = if has_requests { requests } else { json!({}) };
        let spec = json!({"schedulerName": scheduler, "resourceClaims": claims,
            "containers": [{"name": "c", "image": "none", "resources": resources}]});
        create(&self.pods, json!({"metadata": {"name": name}, "spec": spec})).await;
    }

    /// Creates a pod with a claim that need not be there.
    pub(crate) async fn pod_of_claim(&self, name: &str, claim: &str) {
        let spec = json!({"schedulerName": "dra-sdk", "containers": [{"name": "c", "image": "none"}],
            "resourceClaims": [{"name": "r", "resourceClaimName": claim}]});
        create(&self.pods, json!({"metadata": {"name": name}, "spec": spec})).await;
    }

    /// Returns the messages of a pod's events.
    pub(crate) async fn reasons(&self, pod: &str) -> Vec<String> {
        let events: Api<Event> = Api::default_namespaced(self.client.clone());
        let events = listed(&events, &ListParams::default()).await.unwrap();
        let of_pod = events.into_iter().filter(|event| event.involved_object.name.as_deref() == Some(pod));
        of_pod.filter_map(|event| event.message).collect()
    }

    /// Returns the names of the pods that are bound.
    pub(crate) async fn bound(&self) -> BTreeSet<String> {
        let pods = listed(&self.pods, &ListParams::default()).await.unwrap();
        let is_bound = |pod: &&Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
        pods.iter().filter(is_bound).map(|pod| pod.metadata.name.clone().unwrap()).collect()
    }

    /// Returns the claims of the devices in use, by driver, pool and device. Fails if a device is in use twice.
    pub(crate) async fn check_devices(&self) -> BTreeMap<(String, String, String), String> {
        let claims: Api<ResourceClaim> = Api::default_namespaced(self.client.clone());
        let mut holders = BTreeMap::new();
        for claim in listed(&claims, &ListParams::default()).await.unwrap() {
            let name = claim.metadata.name.clone().unwrap();
            for device in dra_alloc::allocated_devices(&claim) {
                let key = (device.driver.clone(), device.pool.clone(), device.device.clone());
                let before = holders.insert(key, name.clone());
                assert_eq!(before, None, "{} of {} is used by {name} as well", device.device, device.pool);
            }
        }
        holders
    }
}
