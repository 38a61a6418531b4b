//! Attempts: one reading of the claims for many nodes, asked by one thread or several, as far as the caller wants to know.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use dra_alloc::explain::Detail;
use dra_alloc::{
    AllocateError, AllocatedState, Allocator, Budget, Classes, Fit, GateSet, Inventory, Limit, Outcome, Profile,
    Verdict,
};
use dra_attrs::Component;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{Device, ResourceClaim};
use serde_json::{Value, from_value, json};

use crate::cluster::{self, Cluster};
use crate::oracle::history::{Model, change, claim, classes, node};
use crate::oracle::random::Random;

/// Number of random clusters, lower without optimisation.
const CLUSTERS: u64 = if cfg!(debug_assertions) { 40 } else { 1_000 };
const THREADS: usize = 4;
/// Work of one search, few enough that some are stopped.
const WORK: u64 = 2_000;

type Answer = Result<Verdict, AllocateError>;

/// Lets several claims share a device.
fn share(device: &mut Device) {
    device.allow_multiple_allocations = Some(true);
    device.capacity = Some(from_value(json!({"memory": {"value": "8"}})).unwrap());
}

/// A cluster with claims that are pending.
struct World {
    model: Model,
    state: AllocatedState,
    classes: Classes,
    gates: GateSet,
    claims: Vec<ResourceClaim>,
    nodes: Vec<Node>,
}

impl World {
    /// Makes a random cluster of seven kinds of nodes, four of each, in which some claims are allocated.
    fn new(random: &mut Random) -> Self {
        let (mut model, mut inventory) = (Model::default(), Inventory::default());
        for _ in 0..25 {
            change(random, &mut model, &mut inventory);
        }
        if random.percent(40) {
            let slices = model.slices.iter_mut().map(Arc::make_mut);
            slices.flat_map(|slice| slice.spec.devices.iter_mut().flatten()).for_each(share);
        }
        let inventory = model.inventory();
        let gates = if random.percent(50) { GateSet::of(Profile::V1_37) } else { GateSet::all() };
        let claims = (0..random.pick(&[1, 1, 2])).map(|number| claim(random, &format!("claim-{number}"))).collect();
        let nodes = (0..28).map(|number| node(number % 7)).collect();
        let mut world = Self { model, state: AllocatedState::default(), classes: classes(), gates, claims, nodes };
        for number in 0..10 {
            let other = claim(random, &format!("other-{number}"));
            let verdict =
                world.allocator(&inventory).allocate(&world.state, &node(number % 7), [&other], Budget::work(WORK));
            if let Ok(Verdict { outcome: Outcome::Allocated(results), .. }) = verdict {
                world.state.assume(&other, &results[0]).unwrap();
            }
        }
        world
    }

    fn allocator<'w>(&'w self, inventory: &'w Inventory) -> Allocator<'w> {
        let scheduler = Component::new(Profile::V1_37, self.gates);
        Allocator::new(scheduler, inventory, &self.classes).with_explanation(Detail::Full)
    }

    /// Asks about each node in turn.
    fn ask(&self) -> Vec<Answer> {
        let inventory = self.model.inventory();
        let allocator = self.allocator(&inventory);
        self.nodes.iter().map(|node| allocator.allocate(&self.state, node, &self.claims, Budget::work(WORK))).collect()
    }

    /// Asks about each node in threads that take the nodes as they come, with an index of which nothing is known yet.
    fn ask_in_threads(&self) -> Vec<Answer> {
        let inventory = self.model.inventory();
        let allocator = self.allocator(&inventory);
        let attempt = allocator.attempt(&self.state, &self.claims);
        let (next, answers) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let work = || {
            while let Some((number, node)) = self.nodes.iter().enumerate().nth(next.fetch_add(1, Ordering::Relaxed)) {
                let answer = attempt.allocate(node, Budget::work(WORK));
                answers.lock().unwrap().push((number, answer));
            }
        };
        thread::scope(|scope| (0..THREADS).for_each(|_| drop(scope.spawn(work))));
        let mut answers = answers.into_inner().unwrap();
        answers.sort_by_key(|(number, _)| *number);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }
}

#[test]
fn threads_get_the_answers_of_one_thread() {
    let (mut allocated, mut explained, mut shares) = (0, 0, 0);
    for seed in 0..CLUSTERS {
        let world = World::new(&mut Random::new(seed));
        let alone = world.ask();
        assert_eq!(format!("{:?}", world.ask_in_threads()), format!("{alone:?}"), "seed {seed}");
        for verdict in alone.iter().flatten() {
            explained += usize::from(verdict.explanation.is_some());
            allocated += usize::from(matches!(verdict.outcome, Outcome::Allocated(_)));
            shares += usize::from(format!("{:?}", verdict.outcome).contains("share_id: Some"));
        }
    }
    assert!(allocated > 80 && explained > 200 && shares > 20, "{allocated}, {explained}, {shares}");
}

#[test]
fn nodes_are_searched_from_any_on_until_the_caller_has_enough() {
    let (mut found, mut later) = (0, 0);
    for seed in 0..CLUSTERS {
        let random = &mut Random::new(seed);
        let world = World::new(random);
        let inventory = world.model.inventory();
        let allocator = world.allocator(&inventory);
        let attempt = allocator.attempt(&world.state, &world.claims);
        let from = random.below(world.nodes.len());
        let (asked, budget) = (Cell::new(0), Budget::work(WORK));
        let rotated = world.nodes[from..].iter().chain(&world.nodes[..from]);
        let first = attempt.feasible(rotated.clone().inspect(|_| asked.set(asked.get() + 1)), budget).next();
        // A loop of calls stops at the same node: the first that can be allocated, that is stopped, or that is an error.
        let is_no = |node: &&Node| {
            let outcome = attempt.allocate(node, budget).map(|verdict| verdict.outcome);
            matches!(outcome, Ok(Outcome::Unsatisfied | Outcome::FailedOnNode(_)))
        };
        let noes = rotated.clone().take_while(is_no).count();
        assert_eq!(asked.get(), (noes + 1).min(world.nodes.len()), "seed {seed}");
        let expected = rotated.clone().nth(noes).map(|node| attempt.fits(node, budget).map(|fit| (node, fit)));
        assert_eq!(first, expected, "seed {seed}");
        found += usize::from(first.is_some());
        later += usize::from(first.is_some() && noes > 0);
    }
    assert!(found > 10 && later > 5, "{found}, {later}");
}

#[test]
fn a_node_whose_search_is_stopped_is_neither_fit_nor_unfit() {
    let name = |number: usize| format!("node-{number}");
    let gpus: Vec<Value> = (0..8).map(|number| json!({"name": format!("gpu-{number}")})).collect();
    let cluster = Cluster::new((0..4).map(|number| cluster::pool("gpu.example.com", &name(number), json!(gpus))));
    let nodes: Vec<Node> = (0..4).map(|number| cluster::node(&name(number))).collect();
    let ask = |selector: &str| {
        let selectors = json!({"selectors": [{"cel": {"expression": selector}}]});
        [cluster::claim("claim", json!([cluster::request("r", "gpu", selectors)]), json!([]))]
    };
    let (inventory, classes) = (cluster.inventory(), Classes::new(cluster.classes.iter().cloned()));
    let allocator = Allocator::new(Profile::V1_37, &inventory, &classes);
    let (refused, easy) = (ask("device.driver.size() < 0"), ask("true"));
    let attempt = allocator.attempt(&cluster.state, &refused);
    let limit = |budget| match attempt.fits(&nodes[0], budget).unwrap() {
        Fit::Stopped(stopped) => Some(stopped.limit),
        fit => {
            assert_eq!(fit, Fit::No);
            None
        }
    };
    assert_eq!(limit(Budget::work(0)), Some(Limit::Node));
    assert_eq!(limit(Budget::work(3)), Some(Limit::Node));
    assert_eq!(limit(Budget::work(9).with_work_per_call(3)), Some(Limit::Call));
    assert_eq!(limit(Budget::default().with_stop(&|| true)), Some(Limit::Caller));
    assert_eq!(limit(Budget::default()), None);

    let stopped: Vec<_> = attempt.feasible(&nodes, Budget::work(3)).map(Result::unwrap).collect();
    assert!(stopped.iter().map(|(node, _)| *node).eq(&nodes));
    assert!(stopped.iter().all(|(_, fit)| matches!(fit, Fit::Stopped(_))));
    assert_eq!(attempt.feasible(&nodes, Budget::default()).count(), 0);
    let attempt = allocator.attempt(&cluster.state, &easy);
    let fitting = attempt.feasible(&nodes, Budget::default()).map(Result::unwrap);
    assert!(fitting.eq(nodes.iter().map(|node| (node, Fit::Yes))));
}
