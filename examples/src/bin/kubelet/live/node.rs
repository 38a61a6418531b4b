//! The node itself: its object, and its lease.

use std::collections::BTreeSet;
use std::time::Duration;

use dra_alloc::declared_features::DeclaredFeature;
use dra_attrs::Profile;
use dra_live::connect::Cluster;
use dra_live::failure::{LiveError, Trouble, text, trouble};
use dra_live::now;
use dra_live::retry::{answered, once};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{Node, NodeSpec, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Error};
use serde_json::{Map, Value, json};

use super::note;

/// Time between two renewals of the node's lease, and two looks at its object.
const BEAT: Duration = Duration::from_secs(10);

/// Namespace of the leases of nodes.
const LEASES: &str = "kube-node-lease";

/// Label and taint of a virtual node. The taint keeps pods away that would wait for ever to be run.
const VIRTUAL: &str = "dra-sdk.example.com/virtual-node";

/// Largest number of writes of the status that others have overtaken.
const MOST_CONFLICTS: usize = 10;

/// Reason that the node can't be registered.
#[derive(Debug, thiserror::Error)]
#[error("node {_0}: each time that its status was to be written somebody else had changed it")]
pub(crate) struct AlwaysChanging(String);

/// Reason that the node can't be used.
#[derive(Debug, thiserror::Error)]
#[error("node {_0} is there, and no virtual one: its own kubelet works for it; --node-name names another one")]
pub(crate) struct RealNode(String);

/// Object of the node, as this kubelet keeps it.
pub(super) struct OwnNode {
    cluster: Cluster,
    name: String,
    /// Feature that this kubelet declares, if its gate is on.
    feature: Option<&'static str>,
    /// UID of the object whose status has been written.
    uid: Option<String>,
}

impl OwnNode {
    /// Creates the node unless it is there, says that it is ready, and declares the kubelet's feature.
    ///
    /// # Errors
    /// The node can't be read or written, or is a real one.
    pub(super) async fn register(
        cluster: &Cluster,
        name: &str,
        feature: Option<&'static str>,
    ) -> Result<Self, super::LiveError> {
        let mut own = Self { cluster: cluster.clone(), name: name.to_owned(), feature, uid: None };
        let (nodes, post, new) = (own.nodes(), PostParams::default(), new_node(name));
        match answered(|| nodes.create(&post, &new)).await.outcome {
            Err(error) if trouble(&error) != Trouble::Exists => {
                return Err(LiveError::from_call("create", "nodes", &error).into());
            }
            _ => {}
        }
        for _ in 0..MOST_CONFLICTS {
            let node = answered(|| nodes.get(name)).await.outcome;
            let node = node.map_err(|error| LiveError::from_call("get", "nodes", &error))?;
            if !is_virtual(&node) {
                return Err(RealNode(name.to_owned()).into());
            }
            match own.write(&node).await {
                Err(error) if trouble(&error) == Trouble::Conflict => {}
                written => {
                    return written
                        .map(|()| own)
                        .map_err(|error| LiveError::from_call("patch", "nodes/status", &error).into());
                }
            }
        }
        Err(AlwaysChanging(name.to_owned()).into())
    }

    /// Renews the lease of the node for ever, and writes its status again where another object has taken its place or the
    /// feature has gone. A failed step is tried again with the next beat.
    pub(super) async fn beat(mut self) {
        let mut last = String::new();
        loop {
            renew(&self.cluster, &self.name).await;
            let failure = self.look().await.err().map(|error| text(&error)).unwrap_or_default();
            if !failure.is_empty() && failure != last {
                note(format_args!("node {}: {failure}", self.name));
            }
            last = failure;
            tokio::time::sleep(BEAT).await;
        }
    }

    /// Reads the node, and writes its status if that is due. A node that somebody has deleted, or made a real one, is left
    /// alone.
    async fn look(&mut self) -> Result<(), Error> {
        let nodes = self.nodes();
        match once(nodes.get_opt(&self.name)).await? {
            Some(node) if is_virtual(&node) => self.write(&node).await,
            _ => Ok(()),
        }
    }

    /// Writes the part of the status that is not as it should be.
    async fn write(&mut self, node: &Node) -> Result<(), Error> {
        let mut status = Map::new();
        if node.metadata.uid != self.uid {
            status.extend(ready());
        }
        let mut metadata = Map::from_iter([("uid".to_owned(), json!(node.metadata.uid))]);
        if let Some(features) = features_to_write(node, self.feature) {
            status.insert("declaredFeatures".to_owned(), json!(features));
            // The list is replaced as a whole: one that somebody has changed meanwhile is read first.
            metadata.insert("resourceVersion".to_owned(), json!(node.metadata.resource_version));
        }
        if status.is_empty() {
            return Ok(());
        }
        let patch = Patch::Strategic(json!({"metadata": metadata, "status": status}));
        let (nodes, params) = (self.nodes(), PatchParams::default());
        let stored = answered(|| nodes.patch_status(&self.name, &params, &patch)).await.outcome?;
        if self.uid != node.metadata.uid && features_to_write(&stored, self.feature).is_some() {
            note("the API server does not keep declaredFeatures: its feature gate NodeDeclaredFeatures is off");
        }
        self.uid.clone_from(&node.metadata.uid);
        Ok(())
    }

    fn nodes(&self) -> Api<Node> {
        Api::all(self.cluster.client.clone())
    }
}

fn new_node(name: &str) -> Node {
    let labels = [("kubernetes.io/hostname".to_owned(), name.to_owned()), (VIRTUAL.to_owned(), "true".to_owned())];
    let metadata = ObjectMeta { name: Some(name.to_owned()), labels: Some(labels.into()), ..ObjectMeta::default() };
    let taint = Taint { key: VIRTUAL.to_owned(), effect: "NoSchedule".to_owned(), ..Taint::default() };
    let spec = NodeSpec { taints: Some(vec![taint]), ..NodeSpec::default() };
    Node { metadata, spec: Some(spec), status: None }
}

fn is_virtual(node: &Node) -> bool {
    node.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(VIRTUAL))
}

/// Returns the status of a node that takes pods.
fn ready() -> Map<String, Value> {
    let time = now().to_string();
    let condition = json!({
        "type": "Ready", "status": "True", "reason": "AgentReady", "message": "the agent prepares claims",
        "lastHeartbeatTime": time, "lastTransitionTime": time,
    });
    let amounts = json!({"pods": "110"});
    Map::from_iter([
        ("conditions".to_owned(), json!([condition])),
        ("capacity".to_owned(), amounts.clone()),
        ("allocatable".to_owned(), amounts),
    ])
}

/// Returns the list of declared features to write, sorted and each once as the API has it; `None` if the node's list is
/// right. Features of others stay; those of this kubelet are its own in each profile.
fn features_to_write(node: &Node, own: Option<&'static str>) -> Option<BTreeSet<String>> {
    let declared = node.status.as_ref().and_then(|status| status.declared_features.as_deref()).unwrap_or_default();
    let declared: BTreeSet<String> = declared.iter().cloned().collect();
    let own_names = Profile::ALL.map(|profile| DeclaredFeature::new(profile).name());
    let mut wanted = declared.clone();
    wanted.retain(|name| !own_names.contains(&name.as_str()));
    wanted.extend(own.map(str::to_owned));
    (wanted != declared).then_some(wanted)
}

/// Renews the lease of the node, or creates it. A renewal that fails is followed by the next one.
async fn renew(cluster: &Cluster, name: &str) {
    let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), LEASES);
    let spec = LeaseSpec {
        holder_identity: Some(name.to_owned()),
        lease_duration_seconds: Some(40),
        renew_time: Some(MicroTime(now())),
        ..LeaseSpec::default()
    };
    let post = PostParams::default();
    match once(leases.get_opt(name)).await {
        Ok(Some(mut lease)) => {
            lease.spec = Some(spec);
            let _ = once(leases.replace(name, &post, &lease)).await;
        }
        Ok(None) => {
            let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
            let _ = once(leases.create(&post, &Lease { metadata, spec: Some(spec) })).await;
        }
        Err(_) => {}
    }
}
