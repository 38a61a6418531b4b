//! The memory of a scheduler: each claim counts once, in every order of events.

use dra_alloc::pods::{ClaimChange, ClaimDeletion, ClaimLookup, ClaimTracker};
use dra_alloc::{AllocatedState, ClaimId, DeviceId};
use dra_attrs::{Component, Profile};
use k8s_openapi::api::resource::v1::ResourceClaim;
use proptest::prelude::*;

use super::world::{World, allocated, claim, pod};

fn versioned(mut claim: ResourceClaim, version: u64) -> ResourceClaim {
    claim.metadata.resource_version = Some(version.to_string());
    claim
}

fn other_uid(mut claim: ResourceClaim) -> ResourceClaim {
    claim.metadata.uid = Some("other".to_owned());
    claim
}

/// The identity of the claim that [`claim`] makes.
fn id(name: &str) -> ClaimId {
    ClaimId::from(&claim(name, 1))
}

fn holds(tracker: &ClaimTracker, device: &str) -> bool {
    tracker.state().is_allocated(&DeviceId::new("d.example.com", "n1", device))
}

#[test]
fn older_objects_change_nothing_and_assumed_ones_win() {
    let mut tracker = ClaimTracker::new(Component::of(Profile::V1_37));
    tracker.observe(versioned(claim("c", 1), 4)).unwrap();
    assert_eq!(tracker.assume(versioned(allocated("c", "n1", "a", &[]), 3)), Ok(false));
    assert_eq!(tracker.assume(versioned(allocated("c", "n1", "a", &[]), 6)), Ok(true));
    tracker.observe(versioned(claim("c", 1), 5)).unwrap();
    assert!(holds(&tracker, "a"), "the watch is behind");
    tracker.observe(versioned(allocated("c", "n1", "b", &[]), 10)).unwrap();
    assert!(holds(&tracker, "b"), "versions are numbers, not texts");
}

#[test]
fn a_claim_of_the_same_name_with_another_uid_is_another_claim() {
    let mut tracker = ClaimTracker::new(Component::of(Profile::V1_37));
    tracker.observe(versioned(allocated("c", "n1", "a", &[]), 8)).unwrap();
    let other = other_uid(versioned(claim("c", 1), 2));
    assert_eq!(tracker.observe(other.clone()).unwrap().change, ClaimChange::Older, "a former claim, shown late");
    assert!(holds(&tracker, "a"));
    // Versions go back with a backup: a list without a version is taken as it is.
    tracker.replace([other.clone()], None).unwrap();
    assert!(!holds(&tracker, "a"));
    assert_eq!(tracker.claim("ns", "c").unwrap().metadata.uid, other.metadata.uid);
    assert_eq!(tracker.assume(allocated("c", "n1", "a", &[])), Ok(false));
}

#[test]
fn an_allocation_in_flight_and_written_is_counted_once() {
    let mut tracker = ClaimTracker::new(Component::of(Profile::V1_37));
    tracker.observe(versioned(claim("c", 1), 1)).unwrap();
    tracker.begin_allocation(allocated("c", "n1", "a", &[])).unwrap();
    let once = tracker.state().clone();
    tracker.observe(versioned(allocated("c", "n1", "a", &[]), 2)).unwrap();
    assert_eq!(*tracker.state(), once);
    assert_eq!(tracker.in_flight().count(), 0, "it is stored");
    tracker.begin_allocation(allocated("c", "n1", "a", &[])).unwrap();
    tracker.observe(versioned(allocated("c", "n1", "b", &[]), 3)).unwrap();
    assert!(holds(&tracker, "a") && holds(&tracker, "b"), "written by somebody else");
    tracker.end_allocation("c-uid");
    assert!(!holds(&tracker, "a") && holds(&tracker, "b"), "given back");
    tracker.begin_allocation(allocated("c", "n1", "a", &[])).unwrap();
    assert_eq!(tracker.observe_deleted(&id("c")), ClaimDeletion::Deleted);
    assert!(tracker.state().is_empty(), "nobody can write it any more");
}

#[test]
fn an_allocation_that_cannot_be_counted_is_an_error_and_holds_nothing() {
    let mut broken = allocated("c", "n1", "a", &[]);
    let devices = broken.status.as_mut().unwrap().allocation.as_mut().unwrap().devices.as_mut().unwrap();
    let result = &mut devices.results.as_mut().unwrap()[0];
    result.share_id = Some("1".to_owned());
    let amount = k8s_openapi::apimachinery::pkg::api::resource::Quantity("many".to_owned());
    result.consumed_capacity = Some([("memory".to_owned(), amount)].into());
    let mut tracker = ClaimTracker::new(Component::of(Profile::V1_37));
    assert!(tracker.observe(broken.clone()).is_err());
    assert!(tracker.claim("ns", "c").is_some() && !holds(&tracker, "a"));
    assert!(tracker.begin_allocation(broken).is_err());
    assert_eq!(tracker.in_flight().count(), 0);
}

#[test]
fn what_is_observed_is_told() {
    let mut tracker = ClaimTracker::new(Component::of(Profile::V1_37));
    let mut change = |claim| tracker.observe(claim).unwrap().change;
    assert_eq!(change(versioned(claim("c", 1), 4)), ClaimChange::Added);
    assert_eq!(change(versioned(claim("c", 1), 5)), ClaimChange::Changed);
    assert_eq!(change(versioned(allocated("c", "n1", "a", &[]), 4)), ClaimChange::Older);
    assert_eq!(change(versioned(allocated("c", "n1", "a", &[]), 6)), ClaimChange::Changed);
    assert_eq!(change(other_uid(versioned(claim("c", 1), 7))), ClaimChange::Replaced);
    let other = id("c");
    assert_eq!(tracker.observe_deleted(&other), ClaimDeletion::OtherUid);
    assert!(tracker.claim("ns", "c").is_some(), "the deletion of the former claim is late");
    assert_eq!(tracker.observe_deleted(&id("d")), ClaimDeletion::Unknown);
    let without_uid = ClaimId { uid: String::new(), ..id("c") };
    assert_eq!(tracker.observe_deleted(&without_uid), ClaimDeletion::OtherUid);
}

#[test]
fn a_device_that_two_claims_hold_is_told() {
    let mut tracker = ClaimTracker::new(Component::of(Profile::V1_37));
    assert_eq!(tracker.observe(allocated("c", "n1", "a", &[])).unwrap().held_twice, []);
    let observed = tracker.observe(allocated("d", "n1", "a", &[])).unwrap();
    assert_eq!(observed.held_twice, [DeviceId::new("d.example.com", "n1", "a")]);
    tracker.observe_deleted(&id("c"));
    assert!(holds(&tracker, "a"), "one holder is left");
}

#[test]
fn an_older_list_takes_nothing_away() {
    let mut tracker = ClaimTracker::new(Component::of(Profile::V1_37));
    tracker.observe(versioned(allocated("c", "n1", "a", &[]), 5)).unwrap();
    tracker.observe(versioned(allocated("d", "n1", "b", &[]), 8)).unwrap();
    tracker.replace(Vec::<ResourceClaim>::new(), Some("6")).unwrap();
    assert!(!holds(&tracker, "a") && holds(&tracker, "b"), "one is newer than the list");
    tracker.replace([other_uid(versioned(claim("d", 1), 6))], Some("7")).unwrap();
    assert!(holds(&tracker, "b"), "the former claim of the name");
    tracker.replace(Vec::<ResourceClaim>::new(), None).unwrap();
    assert!(tracker.state().is_empty());
}

#[test]
fn an_answer_shows_that_a_claim_is_gone_before_the_watch_does() {
    let mut tracker = ClaimTracker::new(Component::of(Profile::V1_37));
    tracker.observe(versioned(claim("c", 1), 1)).unwrap();
    let made_anew = other_uid(versioned(allocated("c", "n1", "a", &[]), 5));
    assert_eq!(tracker.assume(made_anew.clone()), Ok(true));
    // The watch is late.
    assert_eq!(tracker.observe(versioned(allocated("c", "n1", "b", &[]), 2)).unwrap().change, ClaimChange::Older);
    assert_eq!(tracker.observe_deleted(&id("c")), ClaimDeletion::OtherUid);
    assert!(holds(&tracker, "a") && !holds(&tracker, "b"));
    assert_eq!(tracker.observe(made_anew).unwrap().change, ClaimChange::Changed);
}

#[test]
fn a_dropped_cycle_gives_back_what_it_had_in_flight() {
    let mut world = World::new(1, [claim("c", 1), claim("d", 1)]);
    let [first, second] = ["c", "d"].map(|name| world.reserve(&pod(name, &[name], None), None, "n1"));
    let snapshot = world.tracker.clone();
    let copy = first.clone();
    drop(first);
    assert_eq!(world.tracker.state().len(), 2, "a copy has the same share");
    drop(copy);
    assert_eq!((world.tracker.state().len(), world.tracker.in_flight().count()), (1, 1));
    assert_eq!(snapshot.state().len(), 1);
    drop(second);
    assert!(world.tracker.state().is_empty());
    // The next change forgets them.
    world.tracker.observe(claim("e", 1)).unwrap();
    assert!(world.tracker.state().is_empty());
    let again = world.reserve(&pod("p", &["c"], None), None, "n1");
    assert_eq!(world.tracker.state().len(), 1);
    assert_eq!(world.tracker.observe_deleted(&id("c")), ClaimDeletion::Deleted);
    assert!(world.tracker.state().is_empty(), "the claim is deleted");
    drop(again);
}

/// An event of a watch or of the scheduler, over three claims and two devices.
#[derive(Clone, Debug)]
enum Event {
    Seen(usize, Option<usize>),
    Deleted(usize),
    Assumed(usize, Option<usize>),
}

fn event() -> impl Strategy<Value = Event> {
    let device = prop::option::of(0_usize..2);
    prop_oneof![
        (0_usize..3, device.clone()).prop_map(|(claim, device)| Event::Seen(claim, device)),
        (0_usize..3).prop_map(Event::Deleted),
        (0_usize..3, device).prop_map(|(claim, device)| Event::Assumed(claim, device)),
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
        let mut tracker = ClaimTracker::new(Component::of(Profile::V1_37));
        for (version, event) in (1_u64..).zip(&events) {
            match event {
                Event::Seen(claim, device) => drop(tracker.observe(made(*claim, *device, version)).unwrap()),
                Event::Deleted(claim) => drop(tracker.observe_deleted(&id(names[*claim]))),
                Event::Assumed(claim, device) => drop(tracker.assume(made(*claim, *device, version)).unwrap()),
            }
        }
        let cached: Vec<ResourceClaim> =
            names.iter().filter_map(|name| tracker.claim("ns", name)).map(|claim| (**claim).clone()).collect();
        let expected = AllocatedState::from_claims(&cached, Component::of(Profile::V1_37)).unwrap();
        prop_assert_eq!(tracker.state(), &expected);
    }
}
