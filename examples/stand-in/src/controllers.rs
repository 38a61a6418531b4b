//! Controllers of a cluster that programs around devices wait for: claims from templates, reservations that end, service accounts,
//! nodes that are ready, what belongs to something that is gone, what is in a namespace that goes.
//!
//! Claims are decided by `dra_alloc::claim_controller`, evictions by `dra_alloc::eviction`. Workloads are those of
//! `workloads`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use dra_alloc::claim_controller::{ClaimController, ControllerCall, ControllerResponse, QueueKey, SyncStep};
use dra_alloc::pods::PodOptions;
use dra_attrs::Component;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceClaimTemplate};
use object_patches::{Object, Patch};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::admission::NOT_READY;
use crate::api::{Answer, Api, Context};
use crate::door::{as_json, typed};
use crate::evictions::{WATCHED, evict_due};
use crate::kinds::{KINDS, Kind};
use crate::options::Options;
use crate::program::{now, say};
use crate::refusal::Refusal;
use crate::request::{Subresource, Target};
use crate::service::Service;
use crate::store::Change;
use crate::workloads;

/// Largest number of changes that are looked at before others have their turn.
const BATCH: usize = 64;

/// Largest number of calls of one look of a controller.
const MOST_CALLS: usize = 1000;

/// Pause after which what could not be done is tried again.
const PAUSE: Duration = Duration::from_secs(1);

/// Kinds whose objects go with their owners.
const OWNED: [&str; 5] = ["Job", "Pod", "ReplicaSet", "ResourceClaim", "ResourceSlice"];

/// Memory of the controllers.
struct Controllers {
    claims: ClaimController,
    /// Keys that are to be looked at, by their text.
    queue: BTreeMap<String, QueueKey>,
    /// Workloads that are to be looked at.
    workloads: BTreeSet<workloads::Key>,
    /// Version up to which changes are known.
    revision: u64,
    /// Pods may have to be evicted, now or later.
    evicts: bool,
}

/// Works for as long as the server.
pub(crate) async fn run(service: Arc<Service>) {
    let component = { service.api().door.component() };
    let mut controllers = Controllers::new(component);
    let mut changed = service.changes();
    loop {
        changed.mark_unchanged();
        let is_done = service.write(|api| controllers.step(api));
        if is_done {
            let _ = tokio::time::timeout(PAUSE, changed.changed()).await;
        } else {
            tokio::task::yield_now().await;
        }
    }
}

impl Controllers {
    fn new(component: Component) -> Self {
        Self {
            claims: ClaimController::new(PodOptions::new(component)),
            queue: BTreeMap::new(),
            workloads: BTreeSet::new(),
            revision: 0,
            evicts: true,
        }
    }

    /// Looks at some changes, and does what they ask for. Returns true if there is nothing left.
    fn step(&mut self, api: &mut Api) -> bool {
        let changes = match api.store.since(self.revision) {
            Ok(changes) => changes.take(BATCH).cloned().collect(),
            Err(_) => self.begin(api),
        };
        for change in &changes {
            self.revision = self.revision.max(change.revision);
            if let Err(refusal) = self.observe(api, change) {
                say(&format_args!("a controller can't go on: {}", refusal.body()));
            }
        }
        if self.evicts && changes.is_empty() {
            self.evicts = evict_due(api, now()).unwrap_or_else(|refusal| {
                say(&format_args!("a pod is not evicted: {}", refusal.body()));
                true
            });
        }
        for key in std::mem::take(&mut self.workloads) {
            if let Err(refusal) = workloads::sync(api, &key) {
                let (kind, namespace, name) = &key;
                say(&format_args!("{kind} {namespace}/{name}: {}", refusal.body()));
                self.workloads.insert(key);
            }
        }
        let mut failed = BTreeMap::new();
        for (text, key) in std::mem::take(&mut self.queue) {
            if let Err(error) = self.sync(api, &key) {
                say(&format_args!("{text}: {error}"));
                failed.insert(text, key);
            }
        }
        self.queue.extend(failed);
        changes.is_empty()
    }

    /// Takes all objects as if they had just been made.
    fn begin(&mut self, api: &Api) -> Vec<Change> {
        *self = Self::new(api.door.component());
        self.revision = api.store.revision();
        KINDS.iter().flat_map(|kind| api.store.list(kind, None).map(|object| Change::of(kind, object))).collect()
    }

    fn observe(&mut self, api: &mut Api, change: &Change) -> Result<(), Refusal> {
        let Change { kind, object, is_deletion, .. } = change;
        let (namespace, name) = (object.metadata("namespace"), object.metadata("name"));
        self.evicts |= WATCHED.contains(&kind.name);
        self.workloads.extend(workloads::concerned(api, change)?);
        let keys = match (kind.name, is_deletion) {
            ("Pod", false) => self.claims.observe_pod(typed::<Pod>(kind, object)?),
            ("Pod", true) => self.claims.observe_pod_deleted(&typed(kind, object)?),
            ("ResourceClaim", false) => self.claims.observe_claim(typed::<ResourceClaim>(kind, object)?),
            ("ResourceClaim", true) => self.claims.observe_claim_deleted(namespace, name),
            ("ResourceClaimTemplate", false) => {
                self.claims.observe_template(typed::<ResourceClaimTemplate>(kind, object)?)
            }
            _ => Vec::new(),
        };
        self.queue.extend(keys.into_iter().map(|key| (key.to_string(), key)));
        match (kind.name, is_deletion) {
            ("Namespace", false) if object.is_terminating() => empty(api, name)?,
            ("Namespace", false) => has_account(api, name)?,
            ("Node", false) => ready(api, object)?,
            _ => {}
        }
        if *is_deletion { collect(api, object.metadata("uid")) } else { Ok(()) }
    }

    fn sync(&mut self, api: &mut Api, key: &QueueKey) -> Result<(), String> {
        let mut sync = self.claims.sync(key);
        for _ in 0..MOST_CALLS {
            match sync.next_step() {
                SyncStep::Call(call) => {
                    let answer = carry_out(api, &call)
                        .unwrap_or_else(|refusal| ControllerResponse::Failed(refusal.body().to_string()));
                    if let ControllerResponse::Claim(claim) = &answer {
                        // What was just made is known before the watch tells it.
                        self.claims.observe_claim(ResourceClaim::clone(claim));
                    }
                    sync.answer(answer);
                }
                SyncStep::Failed(error) => return Err(error.to_string()),
                _ => return Ok(()),
            }
        }
        Err("too many calls".to_owned())
    }
}

/// Returns a kind in the version in which it is stored.
pub(crate) fn stored_kind(name: &str) -> Result<&'static Kind, Refusal> {
    let found = KINDS.iter().find(|kind| kind.name == name && kind.version == "v1");
    found.ok_or_else(Refusal::no_path)
}

/// Does something to objects of a kind in a namespace, as a controller.
pub(crate) fn with<T>(
    kind: &str,
    namespace: &str,
    subresource: Subresource,
    act: impl FnOnce(Context<'_>) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    let kind = stored_kind(kind)?;
    let namespace = Some(namespace.to_owned()).filter(|namespace| !namespace.is_empty());
    let target = Target { kind, namespace, name: None, subresource };
    let manager = "kube-controller-manager";
    act(Context { target: &target, options: &Options::forced(), manager, user: None, verb: "update", now: now() })
}

fn carry_out(api: &mut Api, call: &ControllerCall) -> Result<ControllerResponse, Refusal> {
    let namespace = |claim: &ResourceClaim| claim.metadata.namespace.clone().unwrap_or_default();
    let name = |claim: &ResourceClaim| claim.metadata.name.clone().unwrap_or_default();
    match call {
        ControllerCall::CreateClaim { claim } => {
            with("ResourceClaim", &namespace(claim), Subresource::None, |context| {
                claim_of(&api.create(context, as_json(claim)?)?)
            })
        }
        ControllerCall::Update { claim } => with("ResourceClaim", &namespace(claim), Subresource::None, |context| {
            claim_of(&api.update(context, &name(claim), as_json(claim)?)?)
        }),
        ControllerCall::UpdateStatus { claim } => {
            with("ResourceClaim", &namespace(claim), Subresource::Status, |context| {
                claim_of(&api.update(context, &name(claim), as_json(claim)?)?)
            })
        }
        ControllerCall::DeleteClaim { claim, uid } => {
            with("ResourceClaim", &claim.namespace, Subresource::None, |context| {
                let found = api.store.get(&("resourceclaims", claim.namespace.clone(), claim.name.clone()));
                if found.is_some_and(|found| found.metadata("uid") == uid) {
                    delete(api, context, &claim.name)?;
                }
                Ok(ControllerResponse::Done)
            })
        }
        ControllerCall::RecordClaims { owner, body } => with("Pod", &owner.namespace, Subresource::Status, |context| {
            let context = Context { manager: ControllerCall::FIELD_MANAGER, ..context };
            api.patch(context, &owner.name, Patch::Apply(body.clone()))?;
            Ok(ControllerResponse::Done)
        }),
        ControllerCall::GetConsumer { namespace, consumer } if consumer.resource == "pods" => {
            let found = api.store.get(&("pods", namespace.clone(), consumer.name.clone()));
            Ok(ControllerResponse::Consumer(found.map(|pod| pod.metadata("uid").to_owned())))
        }
        other => Ok(ControllerResponse::Failed(format!("no such call: {other:?}"))),
    }
}

fn claim_of(answer: &Answer) -> Result<ControllerResponse, Refusal> {
    Ok(ControllerResponse::Claim(Box::new(of_answer(answer)?)))
}

fn of_answer<T: DeserializeOwned>(answer: &Answer) -> Result<T, Refusal> {
    let kind = KINDS.iter().find(|kind| kind.name == answer.object.text("/kind")).ok_or_else(Refusal::no_path)?;
    typed(kind, &answer.object)
}

/// Deletes an object, which may be gone already.
fn delete(api: &mut Api, context: Context<'_>, name: &str) -> Result<(), Refusal> {
    match api.delete(context, name, &json!({})) {
        Err(refusal) if refusal.code != 404 => Err(refusal),
        _ => Ok(()),
    }
}

/// Makes the service account that pods of a namespace have if they name none.
fn has_account(api: &mut Api, namespace: &str) -> Result<(), Refusal> {
    if api.store.get(&("serviceaccounts", namespace.to_owned(), "default".to_owned())).is_some() {
        return Ok(());
    }
    with("ServiceAccount", namespace, Subresource::None, |context| {
        api.create(context, json!({"metadata": {"name": "default"}})).map(drop)
    })
}

/// Takes the taint from a node that says it is ready.
fn ready(api: &mut Api, node: &Value) -> Result<(), Refusal> {
    let list = |pointer: &str| node.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let is_ready =
        list("/status/conditions").iter().any(|it| (it.text("/type"), it.text("/status")) == ("Ready", "True"));
    let kept: Vec<&Value> = list("/spec/taints").iter().filter(|taint| taint.text("/key") != NOT_READY).collect();
    if !is_ready || kept.len() == list("/spec/taints").len() {
        return Ok(());
    }
    let patch = json!({"spec": {"taints": kept}});
    with("Node", "", Subresource::None, |context| {
        api.patch(context, node.metadata("name"), Patch::Merge(patch)).map(drop)
    })
}

/// Deletes what is in a namespace that goes.
fn empty(api: &mut Api, namespace: &str) -> Result<(), Refusal> {
    for kind in
        KINDS.iter().filter(|kind| kind.is_namespaced() && (kind.group != "resource.k8s.io" || kind.version == "v1"))
    {
        let names: Vec<String> =
            api.store.list(kind, Some(namespace)).map(|object| object.metadata("name").to_owned()).collect();
        for name in names {
            with(kind.name, namespace, Subresource::None, |context| delete(api, context, &name))?;
        }
    }
    Ok(())
}

/// Deletes what belonged to something that is gone, and to nothing else.
fn collect(api: &mut Api, uid: &str) -> Result<(), Refusal> {
    let is_orphan = |object: &Value| {
        let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        owners.is_some_and(|owners| !owners.is_empty() && owners.iter().all(|owner| owner.text("/uid") == uid))
    };
    for kind in KINDS.iter().filter(|kind| OWNED.contains(&kind.name) && kind.version == "v1") {
        let orphans: Vec<Arc<Value>> = api.store.list(kind, None).filter(|it| is_orphan(it)).cloned().collect();
        for object in orphans {
            with(kind.name, object.metadata("namespace"), Subresource::None, |context| {
                delete(api, context, object.metadata("name"))
            })?;
        }
    }
    Ok(())
}
