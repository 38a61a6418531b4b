//! Preemption on a cluster: pods of three priorities, a scheduler that is killed at random, and devices for the most important.
#![cfg(feature = "live")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod stand_in;

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fmt::Debug;
use std::time::{Duration, Instant};

use dra_alloc::claim_controller::ClaimController;
use dra_alloc::pods::PodOptions;
use dra_attrs::Profile;
use dra_live::controller_calls::finish;
use examples::random::Random;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value, json};

use stand_in::background::{Background, until};
use stand_in::{StandIn, listed};

const POST: PostParams = PostParams { dry_run: false, field_manager: None };
const SCHEDULER: &str = env!("CARGO_BIN_EXE_scheduler");
const NODES: usize = 20;
const DEVICES: usize = 8;

/// Longest time in which a cluster comes to rest.
const PATIENCE: Duration = Duration::from_secs(240);

async fn create<K>(api: &Api<K>, object: Value)
where
    K: Clone + DeserializeOwned + Serialize + Debug,
{
    api.create(&POST, &from_value::<K>(object).unwrap()).await.unwrap();
}

async fn all<K>(api: &Api<K>) -> Vec<K>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    listed(api, &ListParams::default()).await.unwrap()
}

struct Cluster {
    server: StandIn,
    client: Client,
    pods: Api<Pod>,
    claims: Api<ResourceClaim>,
}

impl Cluster {
    async fn start(nodes: usize) -> Self {
        let server = StandIn::start(&[]);
        let client = server.client();
        let (all_nodes, slices): (Api<Node>, Api<ResourceSlice>) = (Api::all(client.clone()), Api::all(client.clone()));
        create(&Api::<DeviceClass>::all(client.clone()), json!({"metadata": {"name": "gpu"}, "spec": {}})).await;
        for value in [0, 10, 50, 100] {
            let class = json!({"metadata": {"name": format!("p{value}")}, "value": value});
            create(&Api::<PriorityClass>::all(client.clone()), class).await;
        }
        for number in 0..nodes {
            let node = format!("node-{number:02}");
            create(&all_nodes, json!({"metadata": {"name": node}})).await;
            let devices: Vec<Value> = (0..DEVICES).map(|number| json!({"name": format!("gpu-{number}")})).collect();
            let pool = json!({"name": node, "generation": 1, "resourceSliceCount": 1});
            let spec = json!({"driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": devices});
            create(&slices, json!({"metadata": {"name": node}, "spec": spec})).await;
        }
        let (pods, claims) = (Api::default_namespaced(client.clone()), Api::default_namespaced(client.clone()));
        Self { server, client, pods, claims }
    }

    async fn want(&self, name: &str, priority: i32, count: usize) {
        self.want_by("dra-sdk", name, priority, count).await;
    }

    /// Creates a pod with a claim, for a scheduler.
    async fn want_by(&self, scheduler: &str, name: &str, priority: i32, count: usize) {
        let request = json!({"name": "r", "exactly": {"deviceClassName": "gpu", "count": count}});
        let claim = json!({"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}});
        create(&self.claims, claim).await;
        let spec = json!({"schedulerName": scheduler, "priorityClassName": format!("p{priority}"),
            "containers": [{"name": "c", "image": "none"}],
            "resourceClaims": [{"name": "r", "resourceClaimName": name}]});
        create(&self.pods, json!({"metadata": {"name": name, "labels": {"name": name}}, "spec": spec})).await;
    }

    fn scheduler(&self, more: &[&str]) -> Background {
        let args = ["--live", "--bind", "--lease-seconds", "1", "--server", &self.server.url];
        Background::start(SCHEDULER, &[&args[..], more].concat())
    }

    /// Stands for the kubelet and the claim controller: pods end that are being deleted, and their claims become free. Returns the
    /// UIDs of pods that end because they are preempted.
    async fn clean_up(&self) -> Vec<String> {
        let mut preempted = Vec::new();
        let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        let mut controller = ClaimController::new(PodOptions::new(Profile::V1_37));
        let claims = all(&self.claims).await;
        for pod in all(&self.pods).await {
            if pod.metadata.deletion_timestamp.is_some() {
                let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
                if conditions.into_iter().any(|one| one.reason.as_deref() == Some("PreemptionByScheduler")) {
                    preempted.extend(pod.metadata.uid.clone());
                }
                let _ = self.pods.delete(pod.metadata.name.as_deref().unwrap(), &now).await;
            } else {
                controller.observe_pod(pod);
            }
        }
        let keys: Vec<_> = claims.into_iter().flat_map(|claim| controller.observe_claim(claim)).collect();
        for key in keys {
            finish(&self.client, &mut controller.sync(&key)).await;
        }
        preempted
    }

    /// Fails if two claims have one device.
    async fn check_devices(&self) {
        let mut holders: BTreeMap<(String, String), String> = BTreeMap::new();
        for claim in all(&self.claims).await {
            for device in dra_alloc::allocated_devices(&claim) {
                let name = claim.metadata.name.clone().unwrap();
                let before = holders.insert((device.pool.clone(), device.device.clone()), name.clone());
                assert_eq!(before, None, "{}/{} is used by {name} too", device.pool, device.device);
            }
        }
    }

    /// Returns the victims with the UIDs of the pods that they were preempted for.
    async fn victims(&self) -> BTreeMap<String, String> {
        let events: Api<Event> = Api::default_namespaced(self.client.clone());
        let preempted = all(&events).await.into_iter().filter(|event| event.reason.as_deref() == Some("Preempted"));
        let victim = |event: Event| {
            let message = event.message.unwrap();
            let by = message.strip_prefix("Preempted by pod ").unwrap().split(' ').next().unwrap().to_owned();
            (event.involved_object.uid.unwrap(), by)
        };
        preempted.map(victim).collect()
    }
}

fn is_bound(pod: &Pod) -> bool {
    pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some())
}

fn priority(pod: &Pod) -> i32 {
    pod.spec.as_ref().and_then(|spec| spec.priority).unwrap_or_default()
}

/// Seeds, from `PREEMPT_SEEDS` if it is set.
fn seeds() -> Vec<u64> {
    let given = env::var("PREEMPT_SEEDS").ok().map(|list| list.split(',').map(|seed| seed.parse().unwrap()).collect());
    given.unwrap_or_else(|| vec![1])
}

/// 200 pods, whose devices suffice for those above the lowest priority. Each victim dies for a pod that runs in the end, or that
/// was preempted itself.
#[tokio::test]
async fn the_most_important_pods_run_in_the_end() {
    for seed in seeds() {
        let (cluster, mut random) = (Cluster::start(NODES).await, Random::new(seed));
        let rule = if seed % 2 == 0 { "--preempt=least" } else { "--preempt" };
        let mut scheduler = cluster.scheduler(&[rule]);
        for number in 0..140 {
            cluster.want(&format!("low-{number}"), 0, 1).await;
        }
        until("the first pods run", async || all(&cluster.pods).await.iter().all(is_bound)).await;
        let mut later: Vec<(String, i32, usize)> = (0..40).map(|number| (format!("mid-{number}"), 10, 2)).collect();
        later.extend((0..20).map(|number| (format!("high-{number}"), 100, 4)));
        let (mut uids, mut preempted): (BTreeSet<String>, BTreeSet<String>) = Default::default();
        let begin = Instant::now();
        loop {
            for _ in 0..random.below(6) {
                if later.is_empty() {
                    break;
                }
                let (name, priority, count) =
                    later.swap_remove(usize::try_from(random.below(later.len() as u64)).unwrap());
                cluster.want(&name, priority, count).await;
            }
            if random.below(12) == 0 {
                drop(scheduler);
                scheduler = cluster.scheduler(&[rule]);
            }
            preempted.extend(cluster.clean_up().await);
            cluster.check_devices().await;
            let pods = all(&cluster.pods).await;
            uids.extend(pods.iter().filter_map(|pod| pod.metadata.uid.clone()));
            if later.is_empty() && pods.iter().filter(|pod| priority(pod) > 0).all(is_bound) {
                break;
            }
            let waiting: Vec<&String> =
                pods.iter().filter(|pod| !is_bound(pod)).map(|pod| pod.metadata.name.as_ref().unwrap()).collect();
            assert!(begin.elapsed() < PATIENCE, "seed {seed}: not at rest; waiting: {waiting:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let pods = all(&cluster.pods).await;
        let high = pods.iter().filter(|pod| priority(pod) == 100).count();
        assert_eq!(high, 20, "seed {seed}: nobody is preempted for a pod that is less important");
        let running: BTreeSet<String> = pods.iter().map(|pod| pod.metadata.uid.clone().unwrap()).collect();
        let victims = cluster.victims().await;
        // A scheduler that is killed between a deletion and its event leaves a victim without one.
        let in_vain: Vec<&String> =
            victims.values().filter(|by| !running.contains(*by) && !preempted.contains(*by)).collect();
        assert!(in_vain.is_empty(), "seed {seed}: {in_vain:?}");
        let gone: Vec<&String> =
            uids.iter().filter(|uid| !running.contains(*uid) && !preempted.contains(*uid)).collect();
        assert!(gone.is_empty(), "seed {seed}: {gone:?} are gone, and nobody has preempted them");
        assert!(
            victims.keys().all(|victim| preempted.contains(victim)),
            "seed {seed}: an event about a pod that stays"
        );
        println!("seed {seed}: {} victims, {} pods run, {:?}", victims.len(), running.len(), begin.elapsed());
    }
}

#[tokio::test]
async fn a_budget_is_kept_where_another_pod_can_go() {
    let cluster = Cluster::start(1).await;
    let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(cluster.client.clone());
    let selector = json!({"matchLabels": {"name": "guarded"}});
    create(&budgets, json!({"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": selector}})).await;
    cluster.want("guarded", 0, 4).await;
    cluster.want("dear", 50, 4).await;
    let mut scheduler = cluster.scheduler(&["--preempt"]);
    until("both run", async || all(&cluster.pods).await.iter().all(is_bound)).await;
    cluster.want("first", 100, 4).await;
    let line = scheduler.says("default/first: nominated");
    assert_eq!(line.trim(), "default/first: nominated for node-00; preempted: default/dear");
    until("the pod runs", async || {
        cluster.clean_up().await;
        is_bound(&cluster.pods.get("first").await.unwrap())
    })
    .await;
    assert!(cluster.pods.get("dear").await.is_err() && is_bound(&cluster.pods.get("guarded").await.unwrap()));
}

#[tokio::test]
async fn devices_wait_for_a_pod_that_somebody_else_has_nominated() {
    let cluster = Cluster::start(1).await;
    cluster.want_by("another", "theirs", 50, 5).await;
    let nomination = Patch::Merge(json!({"status": {"nominatedNodeName": "node-00"}}));
    cluster.pods.patch_status("theirs", &PatchParams::default(), &nomination).await.unwrap();
    cluster.want("equal", 50, 4).await;
    let mut scheduler = cluster.scheduler(&[]);
    scheduler.warns("default/equal: 0/1 nodes are available");
    // Three devices are free beside those that wait, and a pod that is more important sees all eight.
    cluster.want("small", 50, 2).await;
    cluster.want("above", 100, 1).await;
    let is_bound = async |name: &str| is_bound(&cluster.pods.get(name).await.unwrap());
    until("both run", async || is_bound("small").await && is_bound("above").await).await;
    assert!(!is_bound("equal").await);
    let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    cluster.pods.delete("theirs", &now).await.unwrap();
    until("the pod runs", async || is_bound("equal").await).await;
    cluster.check_devices().await;
}

#[tokio::test]
async fn it_can_say_alone_who_would_have_to_go() {
    let cluster = Cluster::start(1).await;
    cluster.want("notebook", 0, 8).await;
    let mut scheduler = cluster.scheduler(&["--preempt=say"]);
    until("it runs", async || all(&cluster.pods).await.iter().all(is_bound)).await;
    cluster.want("train", 100, 1).await;
    scheduler.warns("default/train: would fit on node-00 if default/notebook went");
    assert!(cluster.pods.get("notebook").await.unwrap().metadata.deletion_timestamp.is_none());
}
