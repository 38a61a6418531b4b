//! Pods of a day: drawn from the rates of a description, or recorded.

use std::collections::BTreeMap;

use dra_alloc::{GateSet, Profile};
use k8s_openapi::api::resource::v1::ResourceClaim;

use super::description::{Description, DescriptionError, PodKind};
use super::recorded::Recorded;
use super::template::Templates;
use crate::random::Random;

/// Nanoseconds of an hour: arrivals are drawn more finely than they are told, so that rounding does not add up.
const NANOS_PER_HOUR: u64 = 3_600_000_000_000;

const NANOS_PER_MILLI: u64 = 1_000_000;

/// Devices that a request for all devices counts as when pods are put into an order: the most that a claim can get.
const ALL: u64 = 32;

/// Pods with equal claims.
#[derive(Clone, Debug)]
pub(super) struct Kind {
    pub(super) name: String,
    pub(super) claims: Vec<ResourceClaim>,
    /// Milliseconds after which a pod that waits gives up.
    pub(super) patience: Option<u64>,
    /// Number of devices that a pod asks for.
    pub(super) devices: u64,
    pub(super) priority: i32,
    /// True for pods that do not move.
    pub(super) is_fixed: bool,
}

/// Pod of a day.
#[derive(Clone, Debug)]
pub(super) struct Arrival {
    /// Milliseconds since the begin of the day.
    pub(super) at: u64,
    /// Position of the pod's kind.
    pub(super) kind: usize,
    pub(super) name: String,
    /// Milliseconds from placing to end; without it, the pod stays to the end of the day.
    pub(super) stay: Option<u64>,
}

/// All pods of a day, in the order in which they come.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    pub(super) kinds: Vec<Kind>,
    pub(super) pods: Vec<Arrival>,
}

/// Draws the pods of a description and adds the recorded ones. Each kind has random numbers of its own, so that another rate
/// of one kind leaves the others as they are.
pub(super) fn arrivals(
    description: &Description,
    recorded: &Recorded,
    profile: Profile,
    gates: GateSet,
) -> Result<Arrivals, DescriptionError> {
    let (templates, mut seeds) = (Templates::new(profile, gates), Random::new(description.seed));
    let mut arrivals = Arrivals::default();
    for (index, kind) in description.pods.iter().enumerate() {
        let claims = kind.claims.iter().enumerate().map(|(number, devices)| {
            templates.claim(&format!("{}-0", kind.name), devices, format!("pods[{index}].claims[{number}]"))
        });
        let patience = kind.patience.map(super::Span::millis);
        let new = Kind::new(&kind.name, claims.collect::<Result<_, _>>()?, patience, kind.priority);
        arrivals.kinds.push(Kind { is_fixed: kind.fixed, ..new });
        let random = Random::new(seeds.draw());
        arrivals.draw(index, kind, description.duration.millis(), random);
    }
    arrivals.add(recorded);
    arrivals.pods.sort_by_key(|pod| pod.at);
    Ok(arrivals)
}

impl Kind {
    fn new(name: &str, claims: Vec<ResourceClaim>, patience: Option<u64>, priority: i32) -> Self {
        let devices = claims.iter().map(devices_of).sum();
        Self { name: name.to_owned(), claims, patience, devices, priority, is_fixed: false }
    }
}

impl Arrivals {
    /// Draws the pods of a kind.
    fn draw(&mut self, index: usize, kind: &PodKind, duration: u64, mut random: Random) {
        let Some(between) = NANOS_PER_HOUR.checked_div(kind.per_hour.into()) else { return };
        let mut nanos: u64 = 0;
        for number in 0_u64.. {
            nanos = nanos.saturating_add(exponential(&mut random, between));
            let at = nanos / NANOS_PER_MILLI;
            if at >= duration {
                return;
            }
            let stay = kind.stay.map(|mean| exponential(&mut random, mean.millis()));
            self.pods.push(Arrival { at, kind: index, name: format!("{}-{number}", kind.name), stay });
        }
    }

    /// Adds recorded pods. Those with equal claims, patience, priority and leave to move are of one kind, named after the first of them.
    fn add(&mut self, recorded: &Recorded) {
        let mut kinds = BTreeMap::<String, usize>::new();
        for pod in &recorded.pods {
            let specs: Vec<_> = pod.claims.iter().map(|claim| &claim.spec).collect();
            let key = serde_json::to_string(&(specs, pod.patience, pod.priority, pod.is_fixed)).unwrap_or_default();
            let kind = *kinds.entry(key).or_insert_with(|| {
                let new = Kind::new(&pod.name, pod.claims.clone(), pod.patience, pod.priority);
                self.kinds.push(Kind { is_fixed: pod.is_fixed, ..new });
                self.kinds.len() - 1
            });
            self.pods.push(Arrival { at: pod.at, kind, name: pod.name.clone(), stay: pod.stay });
        }
    }
}

/// Returns the number of devices that a claim asks for, with the first alternative of each prioritized list.
fn devices_of(claim: &ResourceClaim) -> u64 {
    let requests =
        claim.spec.iter().flat_map(|spec| &spec.devices).flat_map(|devices| devices.requests.iter().flatten());
    let count = |mode: Option<&str>, count: Option<i64>| match mode {
        Some("All") => ALL,
        _ => count.and_then(|count| u64::try_from(count).ok()).unwrap_or(1),
    };
    let of_request = requests.map(|request| match (&request.exactly, request.first_available.as_deref()) {
        (Some(exactly), _) => count(exactly.allocation_mode.as_deref(), exactly.count),
        (None, Some([first, ..])) => count(first.allocation_mode.as_deref(), first.count),
        _ => 0,
    });
    of_request.sum()
}

/// Draws from the exponential distribution with comparisons of integers alone, so that all machines draw the same: a run of
/// falling numbers below `x` has an odd length with probability e^-x (von Neumann, 1951).
fn exponential(random: &mut Random, mean: u64) -> u64 {
    let mut whole: u64 = 0;
    loop {
        let first = random.draw() >> 32;
        let (mut last, mut is_odd) = (first, true);
        loop {
            let next = random.draw() >> 32;
            if next >= last {
                break;
            }
            (last, is_odd) = (next, !is_odd);
        }
        if is_odd {
            let units = (u128::from(whole) << 32) + u128::from(first);
            return u64::try_from((units * u128::from(mean)) >> 32).unwrap_or(u64::MAX);
        }
        whole += 1;
    }
}
