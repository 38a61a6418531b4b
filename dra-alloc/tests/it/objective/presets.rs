//! The presets: each with its case, by first fit and with the objective. docs/presets.md has the same cases.

use dra_alloc::objective::{Objective, PairCost, PairScope, Pairs, Proof, Term};
use serde_json::json;

use super::cluster::{Cluster, GPU, NIC, at_root, on_card, request};

/// Asserts the devices by first fit and with an objective, and the sentence that tells the difference.
fn assert_better(
    cluster: &Cluster,
    requests: serde_json::Value,
    objective: &Objective,
    names: [&[&str]; 2],
    reason: &str,
) {
    let [first, best] = names;
    assert_eq!(cluster.ask(&requests, &Objective::default()), (first.iter().map(ToString::to_string).collect(), None));
    let (devices, score) = cluster.ask(&requests, objective);
    let score = score.unwrap();
    assert_eq!(devices, best);
    assert_eq!((score.to_string().as_str(), &score.proof), (reason, &Proof::Least));
    assert!(score.value < score.first_fit);
}

#[test]
fn partitions_are_packed() {
    let devices = [("0", 0), ("0", 1), ("1", 0), ("1", 1)];
    let devices = devices.map(|(card, number)| on_card(&format!("card-{card}-{number}"), &format!("card-{card}")));
    let cluster = Cluster::new(&[(GPU, "p", devices.into())]).hold("gpu.example.com/p/card-1-0");
    assert_better(
        &cluster,
        json!([request("r", "gpu", 1)]),
        &Objective::pack_partitions(),
        [&["p/card-0-0"], &["p/card-1-1"]],
        "p/card-1-1 rather than p/card-0-0: counter set card-1 is in use already (opened by counter set 0 instead of 1)",
    );
}

#[test]
fn whole_pools_and_cards_stay_free() {
    let pool = |name: &'static str| {
        (GPU, name, ["x", "y"].map(|card| [0, 1].map(|number| on_card(&format!("{card}-{number}"), card))).concat())
    };
    let cluster = Cluster::new(&[pool("a"), pool("b")]).hold("gpu.example.com/b/y-0");
    assert_better(
        &cluster,
        json!([request("r", "gpu", 1)]),
        &Objective::keep_whole(),
        [&["a/x-0"], &["b/y-1"]],
        "b/y-1 rather than a/x-0: pool b is in use already (opened by pool 0 instead of 1)",
    );
}

#[test]
fn gpus_are_close_together() {
    let gpus = [("g0", 0), ("g1", 1), ("g2", 2), ("g3", 2)].map(|(name, root)| at_root(name, root));
    let near = "distance by resource.kubernetes.io/pcieRoot, resource.kubernetes.io/numaNode";
    assert_better(
        &Cluster::new(&[(GPU, "p", gpus.into())]),
        json!([request("r", "gpu", 2)]),
        &Objective::close_together(),
        [&["p/g0", "p/g1"], &["p/g2", "p/g3"]],
        &format!("p/g2, p/g3 rather than p/g0, p/g1: they are closer together ({near} 0 instead of 2)"),
    );
}

#[test]
fn each_gpu_has_a_nic() {
    let gpus = [0, 1].map(|number| at_root(&format!("g{number}"), number));
    let nics = [("n0", 0), ("n1", 0), ("n2", 1)].map(|(name, root)| at_root(name, root));
    assert_better(
        &Cluster::new(&[(GPU, "p", gpus.into()), (NIC, "q", nics.into())]),
        json!([request("gpus", "gpu", 2), request("nics", "nic", 2)]),
        &Objective::pair_requests("gpus", "nics"),
        [&["p/g0", "p/g1", "q/n0", "q/n1"], &["p/g0", "p/g1", "q/n0", "q/n2"]],
        "q/n2 rather than q/n1: more devices of gpus have a partner of nics \
         (pairing of gpus with nics by resource.kubernetes.io/pcieRoot 0 instead of 1)",
    );
}

#[test]
fn little_is_wasted() {
    let gpus = [("big", "80Gi"), ("small", "4Gi")];
    let gpus = gpus.map(|(name, memory)| json!({"name": name, "capacity": {"memory": {"value": memory}}}));
    assert_better(
        &Cluster::new(&[(GPU, "p", gpus.into())]),
        json!([request("r", "gpu", 1)]),
        &Objective::least_waste("gpu.example.com/memory").unwrap(),
        [&["p/big"], &["p/small"]],
        "p/small rather than p/big: less of gpu.example.com/memory is wasted \
         (waste of gpu.example.com/memory 50 instead of 1000)",
    );
}

#[test]
fn functions_are_spread() {
    let functions = [("a0", "a"), ("a1", "a"), ("b0", "b"), ("b1", "b")];
    let functions = functions.map(|(name, pf)| json!({"name": name, "attributes": {"pf": {"string": pf}}}));
    assert_better(
        &Cluster::new(&[(NIC, "p", functions.into())]).hold("nic.example.com/p/a0"),
        json!([request("r", "nic", 1)]),
        &Objective::spread_over("nic.example.com/pf").unwrap(),
        [&["p/a1"], &["p/b0"]],
        "p/b0 rather than p/a1: fewer devices are in use there (spread by nic.example.com/pf 1 instead of 3)",
    );
}

#[test]
fn sets_that_a_driver_prefers_are_taken() {
    let sets = [("g0", &["a"][..], "0"), ("g1", &["b"], "0"), ("g2", &["a", "c"], "1"), ("g3", &["c"], "1")];
    let gpus = sets.map(|(name, nvlink, board)| {
        json!({"name": name, "attributes": {"nvlink": {"strings": nvlink}, "board": {"string": board}}})
    });
    let attributes = ["gpu.example.com/nvlink", "gpu.example.com/board"].map(str::to_owned).to_vec();
    let near = Pairs { cost: PairCost::Distance { attributes }, within: PairScope::Claim };
    let near = Objective::new([vec![Term::Pairs(near).into()]]).unwrap();
    let cluster = Cluster::new(&[(GPU, "p", gpus.into())]);
    assert_better(
        &cluster,
        json!([request("r", "gpu", 2)]),
        &near,
        [&["p/g0", "p/g1"], &["p/g0", "p/g2"]],
        &format!("p/g2 rather than p/g1: they are closer together ({near} 0 instead of 1)"),
    );
    // Without a whole set, two of one board.
    let (devices, _) = cluster.hold("gpu.example.com/p/g2").ask(&json!([request("r", "gpu", 2)]), &near);
    assert_eq!(devices, ["p/g0", "p/g1"]);
}
