//! Look-ups of inventory, state and allocator, and versions of nodes, compared with plain lists over random histories.

use dra_alloc::{
    AllocatedState, Allocator, Budget, Classes, DeviceId, Inventory, NodeVersion, Outcome, Profile, Verdict,
};
use k8s_openapi::api::resource::v1::{Device, ResourceClaim, ResourceSlice};

use crate::oracle::history::{DRIVERS, Model, change, claim, classes, node};
use crate::oracle::random::Random;

/// Number of random histories, lower without optimisation.
const HISTORIES: u64 = if cfg!(debug_assertions) { 15 } else { 300 };
const EVENTS: usize = 40;
const NODES: usize = 7;
/// Work of one search. A search that needs more is not compared.
const WORK: u64 = 20_000;

/// A cluster with what is kept of it.
#[derive(Default)]
struct World {
    model: Model,
    inventory: Inventory,
    state: AllocatedState,
    classes: Classes,
}

/// Name, generation and devices of slices, sorted.
fn listed<'s>(slices: impl Iterator<Item = &'s ResourceSlice>) -> Vec<String> {
    let mut listed: Vec<String> = slices.map(|slice| format!("{:?} {:?}", slice.metadata.name, slice.spec)).collect();
    listed.sort();
    listed
}

fn devices(slice: &ResourceSlice) -> &[Device] {
    slice.spec.devices.as_deref().unwrap_or_default()
}

impl World {
    fn allocator<'w>(&'w self, inventory: &'w Inventory) -> Allocator<'w> {
        Allocator::new(Profile::V1_37, inventory, &self.classes)
    }

    /// Changes slices or claims.
    fn step(&mut self, random: &mut Random, number: usize) {
        if random.percent(50) {
            return change(random, &mut self.model, &mut self.inventory);
        }
        let names: Vec<String> = self.model.claims.keys().cloned().collect();
        if !names.is_empty() && random.percent(40) {
            let (claim, _) = self.model.claims.remove(&random.pick(&names)).unwrap();
            self.state.forget(&claim);
            return;
        }
        let claim = claim(random, &format!("claim-{number}"));
        let node = node(random.below(NODES));
        let verdict = self.allocator(&self.inventory).allocate(&self.state, &node, [&claim], Budget::work(WORK));
        if let Ok(Verdict { outcome: Outcome::Allocated(results), .. }) = verdict {
            self.state.assume(&claim, &results[0]).unwrap();
            self.model.claims.insert(format!("claim-{number}"), (claim, results[0].clone()));
        }
    }

    /// Compares the look-ups of slices and devices with the list of slices.
    fn compare_slices(&self) {
        let all = || self.model.slices.iter().map(|slice| &**slice);
        for number in 0..NODES {
            let name = format!("node-{number}");
            let own = all().filter(|slice| slice.spec.node_name.as_deref() == Some(&name));
            assert_eq!(listed(self.inventory.slices_of_node(&name)), listed(own));
        }
        for slice in all() {
            let (driver, pool) = (&slice.spec.driver, &slice.spec.pool.name);
            let of_pool = || all().filter(|other| (&other.spec.driver, &other.spec.pool.name) == (driver, pool));
            assert_eq!(listed(self.inventory.slices_of_pool(driver, pool)), listed(of_pool()));
            for device in devices(slice) {
                let named = of_pool().filter(|other| devices(other).iter().any(|other| other.name == device.name));
                let found = self.inventory.device(&DeviceId::new(driver, pool, &device.name)).unwrap();
                assert_eq!(found.1.name, device.name);
                assert_eq!(Some(found.0.spec.pool.generation), named.map(|slice| slice.spec.pool.generation).max());
            }
        }
        assert!(self.inventory.device(&DeviceId::new(DRIVERS[0], "pool-0", "none")).is_none());
    }

    /// Compares the devices of claims with their allocations, and the free devices of local pools with a count.
    fn compare_use(&self) {
        let mut used = Vec::new();
        for (claim, allocation) in self.model.claims.values() {
            let results = allocation.devices.iter().flat_map(|devices| devices.results.iter().flatten());
            let counting = results.filter(|result| result.admin_access != Some(true));
            let ids: Vec<_> = counting.map(|it| DeviceId::new(&it.driver, &it.pool, &it.device)).collect();
            assert_eq!(self.state.devices_of_claim(&claim.into()), Some(ids.clone()));
            used.extend(ids);
        }
        used.sort();
        used.dedup();
        assert_eq!(self.state.devices().map(|(id, _)| id).collect::<Vec<_>>(), used);
        assert!(used.iter().all(|id| self.state.is_allocated(id)));
        let fresh = self.model.inventory();
        for number in 0..NODES {
            let pools = |inventory| self.allocator(inventory).node_pools(&self.state, &node(number));
            let kept = pools(&self.inventory);
            assert_eq!(kept, pools(&fresh));
            for pool in kept.unwrap_or_default() {
                let slices: Vec<_> = self.inventory.slices_of_pool(&pool.driver, &pool.pool).collect();
                let [slice] = slices[..] else { continue };
                if slice.spec.node_name.is_none() || !pool.is_usable {
                    continue;
                }
                let id = |device: &&Device| DeviceId::new(&pool.driver, &pool.pool, &device.name);
                let free = devices(slice).iter().filter(|device| !self.state.is_allocated(&id(device))).count();
                assert_eq!((pool.devices, pool.free), (devices(slice).len(), free));
            }
        }
    }

    fn versions(&self) -> Vec<Option<NodeVersion>> {
        let version = |number| self.allocator(&self.inventory).node_version(&self.state, &node(number)).ok();
        (0..NODES).map(version).collect()
    }

    /// Asks each node, in an index built anew. Errors of slices are everybody's, and so no node's.
    fn answers(&self, claims: &[ResourceClaim]) -> Vec<Vec<Option<Outcome>>> {
        let fresh = self.model.inventory();
        let allocator = self.allocator(&fresh);
        let ask = |number, claim| {
            allocator
                .allocate(&self.state, &node(number), [claim], Budget::work(WORK))
                .map(|verdict| verdict.outcome)
                .ok()
        };
        (0..NODES).map(|number| claims.iter().map(|claim| ask(number, claim)).collect()).collect()
    }
}

#[test]
fn look_ups_are_those_of_plain_lists() {
    for seed in 0..HISTORIES {
        let random = &mut Random::new(seed);
        let mut world = World { classes: classes(), ..World::default() };
        for number in 0..EVENTS {
            world.step(random, number);
            world.compare_slices();
            world.compare_use();
        }
    }
}

#[test]
fn a_node_of_the_same_version_has_the_same_verdicts() {
    let (mut same, mut changed, mut changed_answers) = (0, 0, 0);
    for seed in 0..HISTORIES {
        let random = &mut Random::new(seed);
        let mut world = World { classes: classes(), ..World::default() };
        let claims: Vec<ResourceClaim> = (0..3).map(|number| claim(random, &format!("asked-{number}"))).collect();
        let mut before = (world.versions(), world.answers(&claims));
        for number in 0..EVENTS {
            world.step(random, number);
            let after = (world.versions(), world.answers(&claims));
            for node in 0..NODES {
                let is_same = before.0[node].is_some() && before.0[node] == after.0[node];
                let is_same_answer = before.1[node] == after.1[node];
                assert!(!is_same || is_same_answer, "seed {seed}, event {number}, node {node}");
                same += usize::from(is_same);
                changed += usize::from(!is_same);
                changed_answers += usize::from(!is_same_answer);
            }
            before = after;
        }
    }
    assert!(same > changed && changed_answers * 20 > changed, "{same}, {changed}, {changed_answers}");
}
