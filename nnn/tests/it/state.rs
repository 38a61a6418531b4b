use nnn::{NominationEvent, NominationState, NominationTransition, PodPlacement, PodSnapshot};

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
        NominationEvent::DeletionStarted,
        NominationEvent::Deleted,
        NominationEvent::BoundByOther { node: other() },
        NominationEvent::StatusUpdated { memory: None },
        NominationEvent::Restarted { status: Some(node()) },
        NominationEvent::NodeDeleted,
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
        _ => "S5",
    };
    format!("{name}{}", state.node().unwrap_or_default())
}

/// Checks every pair of state and event: the state it leads to, or that it is illegal.
#[test]
fn the_ways_between_states_and_no_others() {
    // req: 5278-STATE-1
    let expected = "\
S0: t1 S1m, t2 S0, t3 S1xn, t4 S2m, t5 S3m, -, -, -, t9 S5, t10 S4m, t11 S0, -, -
S1n: t1 S1m, t2 S0, t3 S1n, t4 S2m, t5 S3m, -, -, -, t9 S5, t10 S4m, t11 S0, -, t13 S1n
S1xn: t1 S1m, t2 S0, t3 S1xn, t4 S2m, t5 S3m, -, -, -, t9 S5, t10 S4m, t11 S0, -, t13 S1xn
S2n: -, -, -, -, -, t6 S4n, t7 S0, t8 S2n, t8 S5, t10 S4m, -, -, -
S3n: -, -, -, -, -, t6 S4n, t7 S0, t8 S3n, t8 S5, t10 S4m, -, t12 S1xn, -
S4n: -, -, -, -, -, -, -, -, t9 S5, -, -, -, -
S5: -, -, -, -, -, -, -, -, -, -, -, -, -
";
    let name = |way: NominationTransition| match way {
        NominationTransition::Preempts => "t1",
        NominationTransition::FailsAndClears => "t2",
        NominationTransition::FailsAndKeeps => "t3",
        NominationTransition::AssumesQuietly => "t4",
        NominationTransition::AssumesAndAnnounces => "t5",
        NominationTransition::Binds => "t6",
        NominationTransition::BindingFails => "t7",
        NominationTransition::DeletedWhileAssumed => "t8",
        NominationTransition::Deleted => "t9",
        NominationTransition::BoundByOther => "t10",
        NominationTransition::StatusUpdated => "t11",
        NominationTransition::Restarted => "t12",
        NominationTransition::NodeDeleted => "t13",
        _ => "?",
    };
    let cell = |state: &NominationState, event: &NominationEvent| match state.next(event) {
        Ok((next, way)) => format!("{} {}", name(way), short(&next)),
        Err(illegal) => {
            assert_eq!((&illegal.state, &illegal.event), (state, event));
            "-".to_owned()
        }
    };
    let row = |state: &NominationState| events().iter().map(|event| cell(state, event)).collect::<Vec<_>>().join(", ");
    let table: String = states().iter().map(|state| format!("{}: {}\n", short(state), row(state))).collect();
    assert_eq!(table, expected);
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
    assert_eq!(preempting.placement(), PodPlacement::Nominated(N));
    assert_eq!(preempting.placement(), announced.placement());
    assert_eq!(hint.placement(), announced.placement());
    assert!(preempting != announced && !preempting.is_assumed() && announced.is_assumed());
}

#[test]
fn a_restart_finds_what_the_status_says() {
    let pod = PodSnapshot::pending("default", "p");
    for pod in [pod.clone(), pod.with_nomination("m")] {
        let restarted = NominationState::AssumedAnnounced { node: N.to_owned() }
            .next(&NominationEvent::Restarted { status: pod.nnn.clone() });
        assert_eq!(restarted.unwrap().0, NominationState::from_pod(&pod));
    }
}

#[test]
fn a_status_update_to_the_same_node_leaves_a_preemptor_what_it_is() {
    let [_, preempting, ..] = states();
    let to = |node: &str| preempting.next(&NominationEvent::StatusUpdated { memory: Some(node.to_owned()) }).unwrap().0;
    assert_eq!(to(N), preempting);
    assert_eq!(short(&to("m")), "S1xm");
}
