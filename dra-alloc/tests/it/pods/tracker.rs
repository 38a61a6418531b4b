//! The memory of a scheduler: each claim counts once, in every order of events.

use dra_alloc::pods::{ClaimLookup, ClaimTracker};
use dra_alloc::{AllocatedState, DeviceId, GateSet};
use k8s_openapi::api::resource::v1::ResourceClaim;
use proptest::prelude::*;

use super::world::{allocated, claim};

fn versioned(mut claim: ResourceClaim, version: u64) -> ResourceClaim {
    claim.metadata.resource_version = Some(version.to_string());
    claim
}

fn holds(tracker: &ClaimTracker, device: &str) -> bool {
    tracker.state().is_allocated(&DeviceId::new("d.example.com", "n1", device))
}

#[test]
fn older_objects_change_nothing_and_assumed_ones_win() {
    let mut tracker = ClaimTracker::new(GateSet::default());
    tracker.observe(versioned(claim("c", 1), 4)).unwrap();
    assert_eq!(tracker.assume(versioned(allocated("c", "n1", "a", &[]), 3)), Ok(false));
    assert_eq!(tracker.assume(versioned(allocated("c", "n1", "a", &[]), 6)), Ok(true));
    tracker.observe(versioned(claim("c", 1), 5)).unwrap();
    assert!(holds(&tracker, "a"), "the watch is behind");
    tracker.restore("ns", "c");
    assert!(!holds(&tracker, "a"));
    tracker.observe(versioned(allocated("c", "n1", "b", &[]), 10)).unwrap();
    assert!(holds(&tracker, "b"), "versions are numbers, not texts");
}

#[test]
fn a_claim_of_the_same_name_with_another_uid_is_another_claim() {
    let mut tracker = ClaimTracker::new(GateSet::default());
    tracker.observe(versioned(allocated("c", "n1", "a", &[]), 8)).unwrap();
    let mut other = versioned(claim("c", 1), 2);
    other.metadata.uid = Some("other".to_owned());
    tracker.observe(other.clone()).unwrap();
    assert!(!holds(&tracker, "a"));
    assert_eq!(tracker.claim("ns", "c").unwrap().metadata.uid, other.metadata.uid);
    assert_eq!(tracker.assume(allocated("c", "n1", "a", &[])), Ok(false));
}

#[test]
fn an_allocation_in_flight_and_written_is_counted_once() {
    let mut tracker = ClaimTracker::new(GateSet::default());
    tracker.observe(versioned(claim("c", 1), 1)).unwrap();
    tracker.begin_allocation(allocated("c", "n1", "a", &[])).unwrap();
    let once = tracker.state().clone();
    tracker.observe(versioned(allocated("c", "n1", "a", &[]), 2)).unwrap();
    assert_eq!(*tracker.state(), once);
    tracker.observe(versioned(allocated("c", "n1", "b", &[]), 3)).unwrap();
    assert!(holds(&tracker, "a") && holds(&tracker, "b"), "written by somebody else");
    tracker.observe_deleted("ns", "c");
    assert_eq!(*tracker.state(), once, "the attempt has not ended");
}

#[test]
fn an_allocation_that_cannot_be_counted_is_an_error_and_holds_nothing() {
    let mut broken = allocated("c", "n1", "a", &[]);
    let devices = broken.status.as_mut().unwrap().allocation.as_mut().unwrap().devices.as_mut().unwrap();
    let result = &mut devices.results.as_mut().unwrap()[0];
    result.share_id = Some("1".to_owned());
    let amount = k8s_openapi::apimachinery::pkg::api::resource::Quantity("many".to_owned());
    result.consumed_capacity = Some([("memory".to_owned(), amount)].into());
    let mut tracker = ClaimTracker::new(GateSet::default());
    assert!(tracker.observe(broken.clone()).is_err());
    assert!(tracker.claim("ns", "c").is_some() && !holds(&tracker, "a"));
    assert!(tracker.begin_allocation(broken).is_err());
    assert_eq!(tracker.in_flight().count(), 0);
}

/// An event of a watch or of the scheduler, over three claims and two devices.
#[derive(Clone, Debug)]
enum Event {
    Seen(usize, Option<usize>),
    Deleted(usize),
    Assumed(usize, Option<usize>),
    Restored(usize),
}

fn event() -> impl Strategy<Value = Event> {
    let device = prop::option::of(0_usize..2);
    prop_oneof![
        (0_usize..3, device.clone()).prop_map(|(claim, device)| Event::Seen(claim, device)),
        (0_usize..3).prop_map(Event::Deleted),
        (0_usize..3, device).prop_map(|(claim, device)| Event::Assumed(claim, device)),
        (0_usize..3).prop_map(Event::Restored),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// After any events the tracker counts what the cache shows.
    #[test]
    fn the_state_is_that_of_the_claims_in_the_cache(events in prop::collection::vec(event(), 0..24)) {
        let names = ["a", "b", "c"];
        let made = |claim_index: usize, device: Option<usize>, version: u64| {
            let name = names[claim_index];
            versioned(device.map_or_else(|| claim(name, 1), |device| allocated(name, "n1", names[device], &[])), version)
        };
        let mut tracker = ClaimTracker::new(GateSet::default());
        for (version, event) in (1_u64..).zip(&events) {
            match event {
                Event::Seen(claim, device) => tracker.observe(made(*claim, *device, version)).unwrap(),
                Event::Deleted(claim) => tracker.observe_deleted("ns", names[*claim]),
                Event::Assumed(claim, device) => drop(tracker.assume(made(*claim, *device, version)).unwrap()),
                Event::Restored(claim) => tracker.restore("ns", names[*claim]),
            }
        }
        let cached: Vec<ResourceClaim> =
            names.iter().filter_map(|name| tracker.claim("ns", name)).map(|claim| (**claim).clone()).collect();
        let expected = AllocatedState::from_claims(&cached, GateSet::default()).unwrap();
        prop_assert_eq!(tracker.state(), &expected);
    }
}
