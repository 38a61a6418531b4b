//! The least moves after which pods fit, or why none exist.
//!
//! Units that hold devices in reach of a node are taken out in the order of what that costs, over all nodes; a set suffices if the
//! pods fit and each unit finds another place. If the pods fit and the units do not, further units are moved for these: a chain.
//! Every set of units comes up at one point, the cheaper one first, so that the first one that suffices costs the least.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use dra_device::claims::ClaimKey;
use dra_device::internal::{PodFields, extended_claim};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::AllocationResult;

use super::joint_places::{Guest, JointPlaces, Places};
use super::move_plan::{MovePlan, MoveProof, PodMove};
use super::move_rules::MoveRules;
use super::moves_answer::{MovesAnswer, NoMovesError};
use super::node_class::classes;
use super::order::{Going, in_order};
use super::subsets::{Queue, Subset};
use super::unit::{Unit, all_units, priority_of};
use super::work::{Ended, Work};
use crate::allocator::Allocator;
use crate::autoscaler::{
    ClusterSnapshot, Mover, PlacementError, Rehearsal, ScaleSimulator, claims_of, ends_with_its_node, name_of,
    takes_pods,
};
use crate::cluster::inventory::Inventory;
use crate::pods::{
    ClaimLookup, ClaimTracker, FitQuestion, GroupRound, KnownRefusals, Member, PodCycle, PodIdentity, is_reserved_for,
};
use crate::preemption::least_devices;
use crate::search::budget::{Budget, Meter};
use crate::search::outcome::Fit;

/// A unit that may leave, or one that may be evicted.
#[derive(Clone, Copy)]
struct Item {
    unit: usize,
    cost: u64,
    is_evicted: bool,
}

/// Items that matter for one node; for several pods one list for all nodes.
struct Stream {
    node: Option<usize>,
    items: Vec<Item>,
    /// Units in reach of the node, also those that must not move.
    in_reach: BTreeSet<usize>,
}

/// One question.
struct Question<'q> {
    simulator: &'q ScaleSimulator<'q>,
    allocator: &'q Allocator<'q>,
    inventory: &'q Inventory,
    base: Rehearsal,
    rules: &'q MoveRules<'q>,
    nodes: Vec<&'q Node>,
    index_of: BTreeMap<&'q str, usize>,
    classes: Vec<usize>,
    units: Vec<Unit<'q>>,
    /// All items, the cheapest first.
    items: Vec<Item>,
    targets: Vec<&'q Pod>,
    work: Work<'q>,
}

/// Verdict on a set of units.
enum Verdict {
    Plan(Box<MovePlan>),
    /// The pods fit, and the units do not.
    NoPlace,
    No,
}

impl ScaleSimulator<'_> {
    /// Finds the least moves after which pods fit, all of them at once: which pods have to move, where, and in which order.
    ///
    /// The pods wait for a node; a claim alone is asked for with a pod that names it. Chains count, too: a pod moves to make room for
    /// another one that moves. Pods that share a claim move together, to one node. Moves cost what [`MoveRules`] says; of plans that cost
    /// the same, one with fewer waves is taken, then with fewer moves, then of the first node. Pods with extended resources do not move.
    ///
    /// [`MoveProof::Least`] says that no other plan costs less. It needs that no two nodes see the devices that were chosen, and that
    /// the budget suffices.
    ///
    /// ```
    /// use dra_alloc::autoscaler::{ClusterSnapshot, ScaleSimulator};
    /// use dra_alloc::consolidation::{MoveRules, MovesAnswer, NoMovesError};
    /// use dra_alloc::pods::{ClaimTracker, PodOptions};
    /// use dra_alloc::selector::SelectorCache;
    /// use dra_alloc::{Budget, Classes, Inventory, Profile};
    /// use k8s_openapi::api::core::v1::Pod;
    /// use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim};
    /// use k8s_openapi::jiff::Timestamp;
    /// use serde_json::{from_value, json};
    ///
    /// let class: DeviceClass = from_value(json!({"metadata": {"name": "gpu"}, "spec": {}}))?;
    /// let claim: ResourceClaim = from_value(json!({"metadata": {"name": "c", "uid": "c"}, "spec": {
    ///     "devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}}))?;
    /// let pod: Pod = from_value(json!({"metadata": {"name": "p", "uid": "p"}, "spec": {"containers": [],
    ///     "resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]}}))?;
    /// let options = PodOptions::new(Profile::V1_37);
    /// let (classes, selectors) = (Classes::new([class]), SelectorCache::default());
    /// let mut tracker = ClaimTracker::new(Profile::V1_37);
    /// tracker.observe(claim)?;
    ///
    /// let simulator = ScaleSimulator::new(&classes, &selectors, options, Timestamp::UNIX_EPOCH);
    /// let (inventory, snapshot, rules) = (Inventory::default(), ClusterSnapshot::default(), MoveRules::default());
    /// let answer = simulator.make_moves(&inventory, &tracker, &snapshot, &[&pod], &rules, Budget::default());
    /// assert_eq!(answer, MovesAnswer::NoMoves(NoMovesError::NotEnough { free: 0, wanted: 1 }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Complexity
    /// At most the work of the budget's limit for the call. Sets of units are as many as two to the power of the units in reach of a
    /// node, for each node, until one suffices; with chains, of all units.
    pub fn make_moves(
        &self,
        inventory: &Inventory,
        tracker: &ClaimTracker,
        snapshot: &ClusterSnapshot<'_>,
        pods: &[&Pod],
        rules: &MoveRules<'_>,
        budget: Budget<'_>,
    ) -> MovesAnswer {
        if let Some(blocked) = pods.iter().find_map(|pod| self.blocked(tracker, pod)) {
            return MovesAnswer::NoMoves(blocked);
        }
        let allocator = self.allocator(inventory);
        let nodes: Vec<&Node> = snapshot.nodes().collect();
        let uids: BTreeSet<&str> = pods.iter().map(|pod| pod.uid()).collect();
        let movers = snapshot.nodes().flat_map(|node| {
            let on_node = snapshot.pods_on(name_of(node)).unwrap_or_default().iter();
            on_node.map(|pod| Mover { from: name_of(node), pod })
        });
        // A pod that ends with its node is in the way as long as it holds claims.
        let options = self.options();
        let holds = |pod: &Pod| {
            let claims =
                claims_of(pod).filter_map(|named| tracker.claim(&named.claim.namespace, &named.claim.name).cloned());
            { claims }.any(|claim| is_reserved_for(pod, &claim, options))
        };
        let counts = |pod: &Pod| !uids.contains(pod.uid()) && (!ends_with_its_node(pod) || holds(pod));
        let mut units = all_units(movers.filter(|mover| counts(mover.pod)), tracker, rules);
        for unit in &mut units {
            let has_extended = unit.pods.iter().any(|mover| extended_claim(mover.pod).is_some());
            unit.is_movable &= !has_extended;
        }
        let items = items(&units, pods.iter().map(|pod| priority_of(pod)).min().unwrap_or_default());
        let question = Question {
            simulator: self,
            allocator: &allocator,
            inventory,
            base: Rehearsal::new(tracker.clone()),
            rules,
            index_of: nodes.iter().zip(0..).map(|(node, index)| (name_of(node), index)).collect(),
            classes: classes(self, inventory, tracker, &nodes),
            nodes,
            units,
            items,
            targets: pods.to_vec(),
            work: Work::new(budget),
        };
        match question.answer() {
            MovesAnswer::Moves(plan) => MovesAnswer::Moves(Box::new(plan.knowing(snapshot))),
            none @ MovesAnswer::NoMoves(_) => none,
        }
    }

    /// Returns the reason that keeps a pod from all nodes, whoever moves.
    fn blocked(&self, tracker: &ClaimTracker, pod: &Pod) -> Option<NoMovesError> {
        let identity = || PodIdentity::new(pod, self.options());
        let round = GroupRound::of_group();
        match PodCycle::pre_filter(pod, self.group_of(pod), tracker, self.classes, &round, self.options()) {
            Err(blocked) => {
                let reason = PlacementError::from(crate::pods::MemberError::from(blocked));
                Some(NoMovesError::Blocked { pod: identity(), reason: Box::new(reason) })
            }
            Ok(Some(cycle)) if cycle.extended_resource_names().next().is_some() => {
                Some(NoMovesError::ExtendedResources { pod: identity() })
            }
            Ok(_) => None,
        }
    }
}

/// Returns what may be done to units, the cheapest first.
fn items(units: &[Unit<'_>], priority: i32) -> Vec<Item> {
    let movable = units.iter().enumerate().filter(|(_, unit)| unit.is_movable);
    let mut items: Vec<Item> = movable
        .flat_map(|(position, unit)| {
            let evicted = unit.eviction_cost.filter(|_| unit.highest_priority < priority);
            let moved = Item { unit: position, cost: unit.cost, is_evicted: false };
            evicted.map(|cost| Item { unit: position, cost, is_evicted: true }).into_iter().chain([moved])
        })
        .collect();
    items.sort_by_key(|item| item.cost);
    items
}

impl<'q> Question<'q> {
    fn answer(&self) -> MovesAnswer {
        let (wanted, free) = (self.wanted(), self.free());
        let may_evict = self.items.iter().any(|item| item.is_evicted);
        if wanted > free && !may_evict {
            return MovesAnswer::NoMoves(NoMovesError::NotEnough { free, wanted });
        }
        let streams = self.streams();
        match self.search(&streams) {
            Ok(Some(plan)) => MovesAnswer::Moves(plan),
            Ok(None) => MovesAnswer::NoMoves(self.reason(&streams).unwrap_or(NoMovesError::Stopped)),
            Err(_) => MovesAnswer::NoMoves(NoMovesError::Stopped),
        }
    }

    /// Returns the number of devices that the pods need at least.
    fn wanted(&self) -> usize {
        let tracker = &self.base.tracker;
        let keys: BTreeSet<_> = self.targets.iter().flat_map(|pod| claims_of(pod)).map(|named| named.claim).collect();
        let claims = keys.iter().filter_map(|key| tracker.claim(&key.namespace, &key.name));
        claims.map(|claim| least_devices(claim)).fold(0, usize::saturating_add)
    }

    /// Returns the number of free devices that nodes see. One that can be shared counts as many as nobody can count.
    fn free(&self) -> usize {
        let state = self.base.tracker.state();
        let mut pools = BTreeMap::new();
        for node in self.nodes.iter().filter(|node| takes_pods(node)) {
            let Ok(view) = self.allocator.view(node) else { return usize::MAX };
            for pool in view.pools() {
                if !pool.is_plain() {
                    return usize::MAX;
                }
                let used = state.pool_hashed(pool.hash(), pool.driver(), pool.name());
                let used = used.map_or(0, |used| used.occupancy(pool.devices()).used_count());
                pools.insert([pool.driver().to_owned(), pool.name().to_owned()], pool.len().saturating_sub(used));
            }
        }
        pools.into_values().fold(0, usize::saturating_add)
    }

    /// Returns the items in reach of each node; for several pods all items at once.
    fn streams(&self) -> Vec<Stream> {
        if self.targets.len() != 1 {
            let in_reach = (0..self.units.len()).collect();
            return vec![Stream { node: None, items: self.items.clone(), in_reach }];
        }
        let mut holding: BTreeMap<[&str; 2], BTreeSet<usize>> = BTreeMap::new();
        for (position, unit) in self.units.iter().enumerate() {
            for device in &unit.devices {
                holding.entry([&device.driver, &device.pool]).or_default().insert(position);
            }
        }
        let mut streams = Vec::new();
        for (index, node) in self.nodes.iter().enumerate().filter(|(_, node)| takes_pods(node)) {
            let Ok(view) = self.allocator.view(node) else { continue };
            let pools = view.pools().map(|pool| [pool.driver(), pool.name()]);
            let mut in_reach: BTreeSet<usize> =
                pools.filter_map(|pool| holding.get(&pool)).flatten().copied().collect();
            if self.simulator.is_checked() {
                let is_here = |unit: &Unit<'_>| unit.pods.iter().any(|mover| mover.from == name_of(node));
                in_reach.extend(self.units.iter().enumerate().filter(|(_, unit)| is_here(unit)).map(|(unit, _)| unit));
            }
            let items = self.items.iter().filter(|item| in_reach.contains(&item.unit)).copied().collect();
            streams.push(Stream { node: Some(index), items, in_reach });
        }
        streams
    }

    fn search(&self, streams: &[Stream]) -> Result<Option<Box<MovePlan>>, Ended> {
        let begins = streams.iter().zip(0..).flat_map(|(stream, position)| {
            let with = |base| Subset { base, stream: position, ..Subset::default() };
            [Some(with(Vec::new())), (!stream.items.is_empty()).then(|| with(vec![0]))].into_iter().flatten()
        });
        let mut queue: Queue = begins.filter_map(|subset| self.priced(subset, streams)).collect();
        let (mut chains, mut best) = (Queue::new(), None);
        while let Some(subset) = queue.pop_first() {
            self.work.count(1)?;
            self.add_children(&mut queue, &subset, streams);
            match self.try_set(&subset, streams)? {
                Verdict::Plan(plan) => {
                    best = Some(plan);
                    break;
                }
                Verdict::NoPlace if streams.len() > 1 || self.targets.len() == 1 => {
                    chains.extend(self.priced(subset.chained(), streams));
                }
                Verdict::NoPlace | Verdict::No => {}
            }
        }
        self.search_chains(chains, best, streams)
    }

    /// Searches chains that cost less than a plan without any.
    fn search_chains(
        &self,
        mut queue: Queue,
        mut best: Option<Box<MovePlan>>,
        streams: &[Stream],
    ) -> Result<Option<Box<MovePlan>>, Ended> {
        let mut least = None;
        while let Some(subset) = queue.pop_first() {
            if best.as_ref().is_some_and(|best| subset.cost >= best.cost) {
                break;
            }
            least = Some(subset.cost);
            let tried = self.work.count(1).and_then(|()| {
                self.add_children(&mut queue, &subset, streams);
                self.try_set(&subset, streams)
            });
            match (tried, &mut best) {
                (Ok(Verdict::Plan(plan)), _) => {
                    best = Some(plan);
                    least = None;
                    break;
                }
                (Ok(_), _) => least = None,
                (Err(_), Some(_)) => break,
                (Err(ended), None) => return Err(ended),
            }
        }
        if let Some(plan) = &mut best {
            plan.proof = match least {
                None if !self.work.is_open.get() => MoveProof::Least,
                bound => MoveProof::AtLeast { cost: bound.unwrap_or(0).min(plan.cost) },
            };
        }
        Ok(best)
    }

    fn add_children(&self, queue: &mut Queue, subset: &Subset, streams: &[Stream]) {
        let items = if subset.chain.is_empty() {
            streams.get(subset.stream).map_or(0, |stream| stream.items.len())
        } else {
            self.items.len()
        };
        queue.extend(subset.children(items).into_iter().filter_map(|child| self.priced(child, streams)));
    }

    /// Returns a subset with its price; `None` if it has more units than a plan may move.
    fn priced(&self, subset: Subset, streams: &[Stream]) -> Option<Subset> {
        let chosen = self.chosen(&subset, streams);
        let cost = chosen.iter().map(|item| item.cost).fold(0, u64::saturating_add);
        (chosen.len() <= self.rules.most_moves()).then(|| {
            let units = chosen.iter().filter_map(|item| self.units.get(item.unit)).collect();
            let waves = self.rules.waves(units, |unit: &&Unit<'_>| unit.pods.iter().map(|mover| mover.pod).collect());
            Subset { cost, waves: waves.map_or(usize::MAX, |waves| waves.len()), len: chosen.len(), ..subset }
        })
    }

    fn chosen(&self, subset: &Subset, streams: &[Stream]) -> Vec<Item> {
        let of_stream = streams.get(subset.stream).map(|stream| stream.items.as_slice()).unwrap_or_default();
        let base = subset.base.iter().filter_map(|position| of_stream.get(*position));
        base.chain(subset.chain.iter().filter_map(|position| self.items.get(*position))).copied().collect()
    }

    /// Tries to let units leave, and finds places for the pods and for them.
    fn try_set(&self, subset: &Subset, streams: &[Stream]) -> Result<Verdict, Ended> {
        let Some(stream) = streams.get(subset.stream) else { return Ok(Verdict::No) };
        let chosen = self.chosen(subset, streams);
        let distinct: BTreeSet<usize> = chosen.iter().map(|item| item.unit).collect();
        let is_chain_in_reach = subset.chain.iter().filter_map(|position| self.items.get(*position));
        if distinct.len() < chosen.len() || subset.waves == usize::MAX || { is_chain_in_reach }
            .any(|item| stream.in_reach.contains(&item.unit))
        {
            return Ok(Verdict::No);
        }
        let Some(left) = self.without(distinct.iter().copied()) else { return Ok(Verdict::No) };
        let gone: Vec<&Pod> = self.pods_of(distinct.iter().copied()).collect();
        if let Some(node) = stream.node
            && !self.target_fits(node, &left, &gone)?
        {
            return Ok(Verdict::No);
        }
        let mut moved: Vec<&Unit<'_>> =
            chosen.iter().filter(|item| !item.is_evicted).filter_map(|item| self.units.get(item.unit)).collect();
        moved.sort_by_key(|unit| Reverse(unit.devices.len()));
        let places = self.places(stream.node, &moved, &left, &gone)?;
        let evicted: Vec<&Unit<'_>> =
            chosen.iter().filter(|item| item.is_evicted).filter_map(|item| self.units.get(item.unit)).collect();
        let plan = places.and_then(|places| self.plan(&moved, &evicted, places, subset.cost));
        Ok(plan.map_or(Verdict::NoPlace, |plan| Verdict::Plan(Box::new(plan))))
    }

    fn pods_of(&self, units: impl Iterator<Item = usize>) -> impl Iterator<Item = &'q Pod> {
        units.filter_map(|unit| self.units.get(unit)).flat_map(|unit| unit.pods.iter().map(|mover| mover.pod))
    }

    /// Returns the claims once units have left; `None` if they can't leave.
    fn without(&self, units: impl Iterator<Item = usize>) -> Option<Rehearsal> {
        let mut left = self.base.clone();
        let pods: Vec<&Pod> = self.pods_of(units).collect();
        left.leave(&pods).is_ok().then_some(left)
    }

    /// Tells if the one pod fits on a node.
    fn target_fits(&self, node: usize, left: &Rehearsal, gone: &[&Pod]) -> Result<bool, Ended> {
        let (Some(object), [pod]) = (self.nodes.get(node), self.targets.as_slice()) else { return Ok(false) };
        if self.simulator.check(&FitQuestion::new(pod, object).with_gone(gone)).is_err() {
            return Ok(false);
        }
        let tracker = &left.tracker;
        let named: Vec<_> = claims_of(pod).map(|named| named.claim).collect();
        let claims = named.iter().filter_map(|key| tracker.claim(&key.namespace, &key.name));
        let meter = Meter::new(self.work.rest());
        let attempt = self.allocator.attempt(tracker.state(), claims);
        let fit = attempt.fits_beside(tracker.state(), object, &meter).map_err(|_| Ended::Invalid)?;
        self.work.count(usize::try_from(meter.spent()).unwrap_or(usize::MAX))?;
        if let Fit::Stopped(_) = fit {
            self.work.is_open.set(true);
        }
        Ok(fit == Fit::Yes)
    }

    fn places(
        &self,
        node: Option<usize>,
        moved: &[&Unit<'_>],
        left: &Rehearsal,
        gone: &[&Pod],
    ) -> Result<Option<Places>, Ended> {
        let (tracker, simulator) = (&left.tracker, self.simulator);
        let targets = self.targets.iter().map(|pod| Guest::new([*pod], tracker, simulator, node));
        let guests: Option<Vec<Guest<'_>>> =
            targets.chain(moved.iter().map(|unit| Guest::of_unit(unit, tracker, simulator))).collect();
        let Some(guests) = guests else { return Ok(None) };
        let hosts = moved.iter().flat_map(|unit| &unit.pods).filter_map(|mover| self.index_of.get(mover.from).copied());
        let joint = JointPlaces {
            simulator,
            allocator: self.allocator,
            nodes: &self.nodes,
            classes: &self.classes,
            special: hosts.chain(node).chain(self.hosts_of(gone)).collect(),
            state: tracker.state(),
            gone,
            work: &self.work,
        };
        joint.search(&guests)
    }

    /// Returns the nodes that pods leave.
    fn hosts_of(&self, gone: &[&Pod]) -> Vec<usize> {
        let node = |pod: &&Pod| self.index_of.get(pod.spec.as_ref()?.node_name.as_deref()?).copied();
        gone.iter().filter_map(node).collect()
    }

    /// Builds the plan of moves; `None` if the budgets do not allow the order that the devices ask for.
    fn plan(&self, movers: &[&Unit<'q>], evicted: &[&Unit<'q>], places: Places, cost: u64) -> Option<MovePlan> {
        let mut places = places.into_iter();
        let mut plan = MovePlan { cost, ..MovePlan::new() };
        for (pod, (node, results)) in self.targets.iter().zip(&mut places) {
            plan.placed.push(self.pod_move(pod, None, Some(node), &results));
        }
        let mut going: Vec<Going<'_>> = evicted
            .iter()
            .map(|unit| {
                let leaving = unit.pods.iter().map(|mover| self.pod_move(mover.pod, Some(mover.from), None, &[]));
                Going { unit: (*unit).clone(), moves: leaving.collect() }
            })
            .collect();
        for (unit, (node, results)) in movers.iter().zip(places) {
            let of_pod = |mover: &Mover<'_>| self.pod_move(mover.pod, Some(mover.from), Some(node), &results);
            going.push(Going { unit: (*unit).clone(), moves: unit.pods.iter().map(of_pod).collect() });
        }
        let together = in_order(self.inventory, self.base.tracker.state(), going);
        let pods = |group: &Vec<Going<'q>>| -> Vec<&'q Pod> {
            group.iter().flat_map(|going| going.unit.pods.iter().map(|mover| mover.pod)).collect()
        };
        let waves = self.rules.waves(together, pods)?;
        let of_wave = |wave: Vec<Vec<Going<'_>>>| wave.into_iter().flatten().flat_map(|going| going.moves).collect();
        plan.waves = waves.into_iter().map(of_wave).collect();
        Some(plan)
    }

    fn pod_move(
        &self,
        pod: &Pod,
        from: Option<&str>,
        to: Option<usize>,
        results: &[(ClaimKey, AllocationResult)],
    ) -> PodMove {
        let own: BTreeSet<_> = claims_of(pod).map(|named| named.claim).collect();
        let to = to.and_then(|node| self.nodes.get(node)).map(|node| name_of(node));
        PodMove {
            results: results.iter().filter(|(key, _)| own.contains(key)).cloned().collect(),
            ..PodMove::new(pod, self.simulator.options(), from, to)
        }
    }

    /// Returns the reason why no moves help, once all sets were tried.
    fn reason(&self, streams: &[Stream]) -> Result<NoMovesError, Ended> {
        let (mut pinned, mut stuck): (Vec<PodIdentity>, Option<usize>) = (Vec::new(), None);
        let options = self.simulator.options();
        let (mut fits_somewhere, all) = (false, |stream: &Stream| stream.in_reach.iter().copied().collect::<Vec<_>>());
        for stream in streams {
            let (movable, fixed): (Vec<usize>, Vec<usize>) =
                all(stream).into_iter().partition(|unit| self.units.get(*unit).is_some_and(|unit| unit.is_movable));
            let everybody: Vec<usize> = movable.iter().chain(&fixed).copied().collect();
            if !self.fits_without(stream, &everybody)? {
                continue;
            }
            fits_somewhere = true;
            if self.fits_without(stream, &movable)? {
                let largest = movable
                    .iter()
                    .copied()
                    .max_by_key(|unit| (self.units.get(*unit).map(|unit| unit.devices.len()), Reverse(*unit)));
                stuck = stuck.or(largest);
            } else {
                pinned.extend(self.pods_of(fixed.into_iter()).map(|pod| PodIdentity::new(pod, options)));
            }
        }
        if self.work.is_open.get() {
            return Ok(NoMovesError::Stopped);
        }
        if let Some(mover) = stuck.and_then(|unit| self.units.get(unit)).and_then(|unit| unit.pods.first()) {
            let pod = PodIdentity::new(mover.pod, options);
            return Ok(NoMovesError::NoPlace { pod, reason: self.no_place(mover.pod).map(Box::new) });
        }
        pinned.sort();
        pinned.dedup();
        Ok(if fits_somewhere { NoMovesError::Pinned { by: pinned } } else { NoMovesError::Hopeless })
    }

    /// Tells if the pods fit once units are gone for good.
    fn fits_without(&self, stream: &Stream, units: &[usize]) -> Result<bool, Ended> {
        let Some(left) = self.without(units.iter().copied()) else { return Ok(false) };
        let gone: Vec<&Pod> = self.pods_of(units.iter().copied()).collect();
        Ok(self.places(stream.node, &[], &left, &gone)?.is_some())
    }

    /// Returns the reason why a pod has no other place as it is.
    fn no_place(&self, pod: &Pod) -> Option<PlacementError> {
        let mut left = self.base.clone();
        let own = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default();
        let others: Vec<usize> = self
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| takes_pods(node) && name_of(node) != own)
            .map(|(index, _)| index)
            .collect();
        left.leave(&[pod]).ok()?;
        self.simulator.search(self.inventory, &self.nodes, |search| {
            let group = self.simulator.group_of(pod);
            let member = Member { pod, group, placed: &[], gone: &[pod], among: Some(&others) };
            left.come(search, &member, &mut KnownRefusals::new(self.nodes.len())).err()
        })
    }
}
