//! The transitions between the states of a pod.

use super::{NominationEvent, NominationState};
use crate::pod::{PodPlacement, PodSnapshot};

const N: &str = "n";

fn states() -> [NominationState; 7] {
    let node = || N.to_owned();
    [
        NominationState::Pending,
        NominationState::NominatedPreempting { node: node() },
        NominationState::NominatedHint { node: node() },
        NominationState::AssumedQuiet { node: node() },
        NominationState::AssumedAnnounced { node: node() },
        NominationState::Bound { node: node() },
        NominationState::Gone,
    ]
}

fn events() -> Vec<NominationEvent> {
    let (node, other) = (|| N.to_owned(), || "m".to_owned());
    vec![
        NominationEvent::CycleNominated { node: other() },
        NominationEvent::CycleCleared,
        NominationEvent::CycleKept { status: Some(node()) },
        NominationEvent::AssumedQuietly { node: other() },
        NominationEvent::AssumedAndAnnounced { node: other() },
        NominationEvent::Bound,
        NominationEvent::BindingFailed,
        NominationEvent::Deleted,
        NominationEvent::BoundByOther { node: other() },
        NominationEvent::StatusUpdated { memory: None },
    ]
}

/// Returns a short name of a state, with the node's first letter.
fn short(state: &NominationState) -> String {
    let name = match state {
        NominationState::Pending => "S0",
        NominationState::NominatedPreempting { .. } => "S1",
        NominationState::NominatedHint { .. } => "S1x",
        NominationState::AssumedQuiet { .. } => "S2",
        NominationState::AssumedAnnounced { .. } => "S3",
        NominationState::Bound { .. } => "S4",
        NominationState::Gone => "S5",
    };
    format!("{name}{}", state.node().unwrap_or_default())
}

/// Checks every pair of state and event: the state it leads to, or that it is illegal.
#[test]
fn the_ways_between_states_and_no_others() {
    // req: 5278-STATE-1
    let expected = "\
S0: S1m, S0, S1xn, S2m, S3m, -, -, S5, S4m, S0
S1n: S1m, S0, S1n, S2m, S3m, -, -, S5, S4m, S0
S1xn: S1m, S0, S1xn, S2m, S3m, -, -, S5, S4m, S0
S2n: -, -, -, -, -, S4n, S0, S5, S4m, -
S3n: -, -, -, -, -, S4n, S0, S5, S4m, -
S4n: -, -, -, -, -, -, -, S5, -, -
S5: -, -, -, -, -, -, -, -, -, -
";
    let cell = |state: &NominationState, event: &NominationEvent| match state.next(event) {
        Ok(next) => short(&next),
        Err(illegal) => {
            assert_eq!((&illegal.state, &illegal.event), (state, event));
            "-".to_owned()
        }
    };
    let row = |state: &NominationState| events().iter().map(|event| cell(state, event)).collect::<Vec<_>>().join(", ");
    let table: Vec<String> = states().iter().map(|state| format!("{}: {}", short(state), row(state))).collect();
    assert_eq!(table, expected.lines().collect::<Vec<_>>());
}

#[test]
fn an_illegal_event_says_what_and_where() {
    let error = NominationState::Bound { node: N.to_owned() }.next(&NominationEvent::CycleCleared).unwrap_err();
    assert_eq!(error.to_string(), "a cycle that clears the nomination is not possible for a pod that is bound (n)");
}

#[test]
fn readers_can_not_tell_waiting_for_victims_from_waiting_for_the_binding() {
    // req: 5278-STATE-2
    let [_, preempting, hint, _, announced, ..] = states();
    // What the status shows of each is the nomination alone.
    let read = PodSnapshot::pending("default", "p").with_nomination(N);
    assert_eq!(read.placement(), PodPlacement::Nominated(N));
    assert_eq!(NominationState::from_pod(&read), hint);
    assert!([&preempting, &hint, &announced].iter().all(|state| state.node() == Some(N)));
    assert!(preempting != announced && !preempting.is_assumed() && announced.is_assumed());
}

#[test]
fn a_status_update_to_the_same_node_leaves_a_preemptor_what_it_is() {
    let [_, preempting, ..] = states();
    let to = |node: &str| preempting.next(&NominationEvent::StatusUpdated { memory: Some(node.to_owned()) }).unwrap();
    assert_eq!(to(N), preempting);
    assert_eq!(short(&to("m")), "S1xm");
}
