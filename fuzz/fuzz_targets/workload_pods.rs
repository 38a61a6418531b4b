//! Any workload with any pods: as many pods as it asks for are there in the end, and no pod is both made and deleted.
#![no_main]

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use workload_pods::{Demand, Idle, MOST_PODS, Pods, replica_set_of, server_rules, status};

fn check(demand: &Demand<'_>, pods: &[&Pod], nodes: &[&Node]) {
    let (lacking, surplus) = (demand.lacking(pods, nodes, MOST_PODS), demand.surplus(pods, nodes));
    assert!(lacking.len() <= MOST_PODS && surplus.len() <= pods.len());
    assert!(demand.lacking(pods, nodes, 1).len() <= 1);
    if let Pods::None(Idle::Deleted | Idle::Owned | Idle::Paused) = demand.pods {
        assert!(lacking.is_empty() && surplus.is_empty());
    }
    if let Pods::Alike(_) = demand.pods {
        assert!(lacking.is_empty() || surplus.is_empty());
    }
    let changes = demand.changes(pods, nodes, 10);
    assert!(changes.make.len() <= 10 && changes.delete.len() <= 10);
}

fn read<T: k8s_openapi::serde::de::DeserializeOwned>(value: &Value) -> Option<T> {
    serde_json::from_value(value.clone()).ok()
}

fuzz_target!(|text: &[u8]| {
    let Ok(Value::Array(objects)) = serde_json::from_slice::<Value>(text) else { return };
    let Some((first, rest)) = objects.split_first() else { return };
    let (pods, nodes): (Vec<Pod>, Vec<Node>) =
        (rest.iter().filter_map(read).collect(), rest.iter().filter_map(read).collect());
    let (pods, nodes): (Vec<&Pod>, Vec<&Node>) = (pods.iter().collect(), nodes.iter().collect());
    let mut object = first.clone();
    for kind in ["CronJob", "DaemonSet", "Deployment", "Job", "ReplicaSet", "StatefulSet"] {
        server_rules::fill(kind, &mut object);
        let _ = server_rules::problems(kind, Some(first), &object);
    }
    server_rules::select_pods(&mut object);
    if let Some(set) = read::<DaemonSet>(first) {
        check(&Demand::of_daemon_set(&set), &pods, &nodes);
        let _ = status::of_daemon_set(&set, &pods, &nodes);
    }
    if let Some(web) = read::<Deployment>(first) {
        check(&Demand::of_deployment(&web), &pods, &nodes);
        let set: ReplicaSet = replica_set_of(&web);
        check(&Demand::of_replica_set(&set, &[]), &pods, &nodes);
        let _ = (status::of_replica_set(&set, &pods), status::of_deployment(&web, &[&set], Timestamp::UNIX_EPOCH));
    }
    if let Some(set) = read::<StatefulSet>(first) {
        check(&Demand::of_stateful_set(&set), &pods, &nodes);
        let _ = status::of_stateful_set(&set, &pods);
    }
    if let Some(mut job) = read::<Job>(first) {
        job.status = Some(status::of_job(&job, &pods, Timestamp::UNIX_EPOCH));
        check(&Demand::of_job(&job), &pods, &nodes);
    }
    if let Some(cron) = read::<CronJob>(first) {
        check(&Demand::of_cron_job(&cron), &pods, &nodes);
    }
});
