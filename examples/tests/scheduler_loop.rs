//! The loop of docs/embedding.md on the stand-in: shared claims, a gang, nominations, CPU and restarts, while the server misbehaves in
//! every way. `LIVE_SEEDS=50` plays so many seeds.
#![cfg(feature = "live")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use nnn::memory::PodStage;

include!("scheduler_loop/program.rs");

/// Rounds after which the scheduler is killed and started again, with bindings on their way.
const LIFE: u32 = 7;

/// Rounds after which a run hangs.
const PATIENCE: u32 = 20_000;

#[test]
fn the_page_has_the_program() {
    let page = include_str!("../../docs/embedding.md");
    let program = include_str!("scheduler_loop/program.rs");
    assert!(page.contains(&format!("```rust,ignore\n{program}```\n")), "docs/embedding.md has another program");
    let mut goes_on = false;
    let counted = program.lines().filter(|line| !line.is_empty()).filter(|line| {
        let is_import = goes_on || line.starts_with("use ");
        goes_on = is_import && !line.ends_with(';');
        !is_import
    });
    let lines = counted.count();
    assert!((100..=200).contains(&lines), "{lines} lines");
}

#[test]
fn every_pod_that_fits_is_bound_whatever_the_server_does() {
    let seeds = std::env::var("LIVE_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3_u32);
    for seed in 0..seeds {
        play(seed).unwrap();
    }
}

fn play(seed: u32) -> Result<(), Box<dyn Error>> {
    let seed = seed.to_string();
    let admission = ["--disable-admission-plugins", "ServiceAccount,TaintNodesByCondition"];
    let server = stand_in::Server::start_with(&[&["--misbehave", "all", "--seed", &seed][..], &admission].concat())?;
    let api = Api(server.url().to_owned());
    fill(&api);
    let mut scheduler = Scheduler::start(&api)?;
    let is_bound = |stage: PodStage<'_>| matches!(stage, PodStage::Bound { .. });
    for round in 1.. {
        scheduler.round()?;
        if scheduler.pods.pods().filter(|(_, stage)| is_bound(*stage)).count() == 7 && scheduler.bindings.is_empty() {
            break;
        }
        if round % LIFE == 0 {
            scheduler = Scheduler::start(&api)?;
        }
        assert!(round < PATIENCE, "seed {seed}: {:?}", scheduler.refused);
    }
    scheduler.round()?;
    let refusal = scheduler.refused.get("much").ok_or("it fits")?;
    assert_eq!(refusal, "pod default/much: 0/2 nodes are available: 2 Insufficient cpu");
    check(&api.list::<Pod>(PODS)?, &api.list::<ResourceClaim>(CLAIMS)?);
    Ok(())
}

/// Two nodes of eight CPUs and five devices, seven pods that find room, and one that doesn't.
fn fill(api: &Api) {
    let post = |path: &str, object: Value| drop(api.insist("POST", path, &object));
    for node in ["node-1", "node-2"] {
        let room = json!({"cpu": "8", "pods": "9"});
        post(
            "/api/v1/nodes",
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node},
            "status": {"allocatable": room, "capacity": room}}),
        );
        let devices = ["a", "b", "c", "d", "e"].map(|name| json!({"name": name}));
        post(
            &format!("{DEVICES}/resourceslices"),
            json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
            "metadata": {"name": node}, "spec": {"driver": "gpu.example.com", "nodeName": node, "devices": devices,
                "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}}}),
        );
    }
    post(
        &format!("{DEVICES}/deviceclasses"),
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass",
        "metadata": {"name": "gpu"}, "spec": {}}),
    );
    for (claim, count) in [("shared", 1), ("left", 3), ("right", 3), ("own", 1)] {
        post(
            CLAIMS,
            json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": claim},
            "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": count}}]}}}),
        );
    }
    let pods = [
        ("a", "shared", "1", ""),
        ("b", "shared", "1", ""),
        ("l", "left", "1", "g"),
        ("r", "right", "1", "g"),
        ("o", "own", "1", ""),
        ("p", "", "1", ""),
        ("q", "", "1", ""),
        ("much", "", "9", ""),
    ];
    for (name, claim, cpu, gang) in pods {
        let claims = if claim.is_empty() { json!([]) } else { json!([{"name": "gpu", "resourceClaimName": claim}]) };
        let labels = if gang.is_empty() { json!({}) } else { json!({"gang": gang}) };
        post(
            PODS,
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels},
            "spec": {"resourceClaims": claims, "containers":
                [{"name": "main", "image": "i", "resources": {"requests": {"cpu": cpu}}}]}}),
        );
    }
}

/// Checks what the server has in the end.
fn check(pods: &[Pod], claims: &[ResourceClaim]) {
    let bound = |pod: &&Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
    assert_eq!(pods.iter().filter(bound).count(), 7);
    let nominated = pods.iter().filter_map(|pod| pod.status.as_ref()?.nominated_node_name.as_ref());
    assert_eq!(nominated.count(), 0);
    let mut held = BTreeSet::new();
    for claim in claims {
        let status = claim.status.clone().unwrap_or_default();
        let devices = status.allocation.and_then(|allocation| allocation.devices?.results).unwrap_or_default();
        assert!(devices.iter().all(|result| held.insert((result.pool.clone(), result.device.clone()))));
        let users = pods.iter().filter(|pod| {
            pod.spec
                .iter()
                .flat_map(|spec| spec.resource_claims.iter().flatten())
                .any(|entry| entry.resource_claim_name == claim.metadata.name)
        });
        assert_eq!(status.reserved_for.map(|users| users.len()), Some(users.count()));
    }
    assert_eq!(held.len(), 8);
}
