use nnn::pod::{Placement, PodView};
use nnn::state::{Event, State, Transition};

const N: &str = "n";

fn states() -> [State; 7] {
    let node = || N.to_owned();
    [
        State::Pending,
        State::NominatedPreempting { node: node() },
        State::NominatedHint { node: node() },
        State::AssumedQuiet { node: node() },
        State::AssumedAnnounced { node: node() },
        State::Bound { node: node() },
        State::Gone,
    ]
}

fn events() -> Vec<Event> {
    let (node, other) = (|| N.to_owned(), || "m".to_owned());
    vec![
        Event::CycleNominated { node: other() },
        Event::CycleCleared,
        Event::CycleKept { status: Some(node()) },
        Event::AssumedQuietly { node: other() },
        Event::AssumedAndAnnounced { node: other() },
        Event::Bound,
        Event::BindingFailed,
        Event::BindingFailedKept,
        Event::DeletionStarted,
        Event::Deleted,
        Event::BoundByOther { node: other() },
        Event::StatusUpdated { memory: None },
        Event::Restarted { status: Some(node()) },
        Event::NodeDeleted,
    ]
}

/// Short names of states, with the node's first letter.
fn short(state: &State) -> String {
    let name = match state {
        State::Pending => "S0",
        State::NominatedPreempting { .. } => "S1",
        State::NominatedHint { .. } => "S1x",
        State::AssumedQuiet { .. } => "S2",
        State::AssumedAnnounced { .. } => "S3",
        State::Bound { .. } => "S4",
        _ => "S5",
    };
    format!("{name}{}", state.node().unwrap_or_default())
}

/// Every pair of state and event: where it leads, or that it can't happen.
#[test]
fn the_ways_between_states_and_no_others() {
    // req: 5278-STATE-1
    let expected = "\
S0: t1 S1m, t2 S0, t3 S1xn, t4 S2m, t5 S3m, -, -, -, -, t9 S5, t10 S4m, t11 S0, -, -
S1n: t1 S1m, t2 S0, t3 S1n, t4 S2m, t5 S3m, -, -, -, -, t9 S5, t10 S4m, t11 S0, -, t13 S1n
S1xn: t1 S1m, t2 S0, t3 S1xn, t4 S2m, t5 S3m, -, -, -, -, t9 S5, t10 S4m, t11 S0, -, t13 S1xn
S2n: -, -, -, -, -, t6 S4n, t7 S0, -, t8 S2n, t8 S5, t10 S4m, -, -, -
S3n: -, -, -, -, -, t6 S4n, t7 S0, t7' S1n, t8 S3n, t8 S5, t10 S4m, -, t12 S1xn, -
S4n: -, -, -, -, -, -, -, -, -, t9 S5, -, -, -, -
S5: -, -, -, -, -, -, -, -, -, -, -, -, -, -
";
    let name = |way: Transition| match way {
        Transition::Preempts => "t1",
        Transition::FailsAndClears => "t2",
        Transition::FailsAndKeeps => "t3",
        Transition::AssumesQuietly => "t4",
        Transition::AssumesAndAnnounces => "t5",
        Transition::Binds => "t6",
        Transition::BindingFails => "t7",
        Transition::BindingFailsAndKeeps => "t7'",
        Transition::DeletedWhileAssumed => "t8",
        Transition::Deleted => "t9",
        Transition::BoundByOther => "t10",
        Transition::StatusUpdated => "t11",
        Transition::Restarted => "t12",
        Transition::NodeDeleted => "t13",
        _ => "?",
    };
    let cell = |state: &State, event: &Event| match state.next(event) {
        Ok((next, way)) => format!("{} {}", name(way), short(&next)),
        Err(illegal) => {
            assert_eq!((&illegal.state, &illegal.event), (state, event));
            "-".to_owned()
        }
    };
    let row = |state: &State| events().iter().map(|event| cell(state, event)).collect::<Vec<_>>().join(", ");
    let table: String = states().iter().map(|state| format!("{}: {}\n", short(state), row(state))).collect();
    assert_eq!(table, expected);
}

#[test]
fn an_illegal_event_says_what_and_where() {
    let error = State::Bound { node: N.to_owned() }.next(&Event::CycleCleared).unwrap_err();
    assert_eq!(error.to_string(), "a cycle that clears the nomination is not possible for a pod that is bound (n)");
}

#[test]
fn readers_can_not_tell_waiting_for_victims_from_waiting_for_the_binding() {
    // req: 5278-STATE-2
    let [_, preempting, hint, _, announced, ..] = states();
    assert_eq!(preempting.placement(), Placement::Nominated(N));
    assert_eq!(preempting.placement(), announced.placement());
    assert_eq!(hint.placement(), announced.placement());
    assert!(preempting != announced && !preempting.is_assumed() && announced.is_assumed());
}

#[test]
fn a_restart_finds_what_the_status_says() {
    let pod = PodView::pending("default", "p");
    for pod in [pod.clone(), pod.nominated_to("m")] {
        let restarted =
            State::AssumedAnnounced { node: N.to_owned() }.next(&Event::Restarted { status: pod.nnn.clone() });
        assert_eq!(restarted.unwrap().0, State::of(&pod));
    }
}

#[test]
fn a_status_update_to_the_same_node_leaves_a_preemptor_what_it_is() {
    let [_, preempting, ..] = states();
    let to = |node: &str| preempting.next(&Event::StatusUpdated { memory: Some(node.to_owned()) }).unwrap().0;
    assert_eq!(to(N), preempting);
    assert_eq!(short(&to("m")), "S1xm");
}
