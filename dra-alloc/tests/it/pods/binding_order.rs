//! The binding of one pod: its writes in their order, answers of every kind, and what is taken back.

use dra_alloc::pods::{
    ApiResponse, Binding, BindingCall, BindingRequest, BindingStep, BindingWait, ClaimLookup, ClaimWrite, UnboundError,
};
use nnn::Command;
use nnn::memory::{AssumeError, PodStage, PodUsage};
use serde_json::json;

use super::api_server::{allocation, consumers};
use super::cluster::{Cluster, after, key, nomination_of};
use super::world::{allocated, claim, pod};

/// Names a request as the tests write it.
fn word(request: &BindingRequest) -> &'static str {
    match request {
        BindingRequest::Status(Command::PatchNnn { .. }) => "nominate",
        BindingRequest::Status(Command::ClearNnn { .. }) => "clear",
        BindingRequest::Claim(ClaimWrite::Update { .. }) => "finalizer",
        BindingRequest::Claim(ClaimWrite::UpdateStatus { .. }) => "status",
        BindingRequest::Claim(ClaimWrite::PatchReservation { .. }) => "unreserve",
        BindingRequest::Claim(ClaimWrite::Get { .. }) => "get",
        BindingRequest::Bind { .. } => "bind",
        BindingRequest::ReadPod => "read",
        other => panic!("{other:?}"),
    }
}

fn words(requests: &[BindingRequest]) -> Vec<&'static str> {
    requests.iter().map(word).collect()
}

fn lost() -> ApiResponse {
    ApiResponse::Lost("no answer".to_owned())
}

fn reason(step: BindingStep) -> UnboundError {
    match step {
        BindingStep::GaveUp { reason, .. } => reason,
        step => panic!("{step:?}"),
    }
}

/// A cluster whose pod `p` has made all its calls but the binding, which is returned.
fn before_the_binding() -> (Cluster, Binding, BindingCall) {
    let mut cluster = Cluster::new(1, [claim("c", 1)], &[pod("p", &["c"], None)]);
    let mut binding = cluster.begin("p", "n1");
    for expected in ["nominate", "finalizer", "status"] {
        let call = cluster.next_call(&mut binding, 0);
        assert_eq!(word(&call.request), expected);
        let answer = cluster.server.call(&call);
        cluster.answer(&mut binding, &call, answer, 0);
    }
    let call = cluster.next_call(&mut binding, 0);
    assert_eq!(call.request, BindingRequest::Bind { node: "n1".to_owned() });
    (cluster, binding, call)
}

#[test]
fn nomination_claims_and_binding_in_this_order() {
    let mut cluster = Cluster::new(1, [claim("c", 1)], &[pod("p", &["c"], None)]);
    let mut binding = cluster.begin("p", "n1");
    let (requests, step) = cluster.run(&mut binding, 0);
    assert_eq!((words(&requests), step), (vec!["nominate", "finalizer", "status", "bind"], BindingStep::Bound));
    assert_eq!(cluster.stored("p"), json!({"node": "n1", "nomination": null}));
    assert_eq!(cluster.pods.stage("p-uid"), Some(PodStage::Bound { node: "n1" }));
    assert_eq!(cluster.pods.nomination("p-uid"), None);
    assert_eq!(cluster.claims.in_flight().count(), 0);
}

#[test]
fn a_nomination_is_written_where_there_is_something_to_wait_for() {
    let nominated = |mut pod: k8s_openapi::api::core::v1::Pod| {
        pod.status.get_or_insert_default().nominated_node_name = Some("n1".to_owned());
        pod
    };
    let rows = [
        ("no claims", pod("p", &[], None), vec!["bind"]),
        ("a claim that is reserved already", pod("p", &["own"], None), vec!["bind"]),
        ("an allocated claim of another pod", pod("p", &["others"], None), vec!["nominate", "status", "bind"]),
        ("a nomination that stands there", nominated(pod("p", &["others"], None)), vec!["status", "bind"]),
    ];
    for (name, pod, expected) in rows {
        let claims = [allocated("own", "n1", "a", &["p"]), allocated("others", "n1", "b", &["q"])];
        let mut cluster = Cluster::new(1, claims, &[pod]);
        let mut binding = cluster.begin("p", "n1");
        let (requests, step) = cluster.run(&mut binding, 0);
        assert_eq!((words(&requests), step), (expected, BindingStep::Bound), "{name}");
    }
}

#[test]
fn a_refused_nomination_stops_nothing() {
    let mut cluster = Cluster::new(1, [claim("c", 1)], &[pod("p", &["c"], None)]);
    let mut binding = cluster.begin("p", "n1");
    let call = cluster.next_call(&mut binding, 0);
    cluster.answer(&mut binding, &call, ApiResponse::Failed("forbidden".to_owned()), 0);
    assert_eq!(cluster.pods.nomination("p-uid"), None);
    let (requests, step) = cluster.run(&mut binding, 0);
    assert_eq!((words(&requests), step), (vec!["finalizer", "status", "bind"], BindingStep::Bound));
}

#[test]
fn of_two_bindings_one_writes_a_claim_at_a_time() {
    let pods = [pod("p", &["c"], None), pod("q", &["c"], None)];
    let mut cluster = Cluster::new(1, [allocated("c", "n1", "a", &["o"])], &pods);
    let (mut first, mut second) = (cluster.begin("p", "n1"), cluster.begin("q", "n1"));
    for binding in [&mut first, &mut second] {
        let call = cluster.next_call(binding, 0);
        assert_eq!(word(&call.request), "nominate");
        let answer = cluster.server.call(&call);
        cluster.answer(binding, &call, answer, 0);
    }
    let open = cluster.next_call(&mut first, 0);
    assert_eq!(word(&open.request), "status");
    let waits = cluster.next(&mut second, 0);
    assert!(matches!(&waits, BindingStep::Wait { reason: BindingWait::Turn(claim), .. } if claim.name == "c"));
    let answer = cluster.server.call(&open);
    cluster.answer(&mut first, &open, answer, 0);
    // The turn comes with the answer, and the write begins with what the first one has stored.
    let (requests, step) = cluster.run(&mut second, 0);
    assert_eq!((words(&requests), step), (vec!["status", "bind"], BindingStep::Bound));
    assert_eq!(cluster.run(&mut first, 0).1, BindingStep::Bound);
    let stored = cluster.server.claims.list().next().unwrap();
    assert_eq!(consumers(&stored), ["o", "p", "q"]);
}

#[test]
fn a_turn_ends_with_a_binding_that_is_dropped() {
    let pods = [pod("p", &["c"], None), pod("q", &["c"], None)];
    let mut cluster = Cluster::new(1, [allocated("c", "n1", "a", &["o"])], &pods);
    let (mut first, mut second) = (cluster.begin("p", "n1"), cluster.begin("q", "n1"));
    let call = cluster.next_call(&mut first, 0);
    let answer = cluster.server.call(&call);
    cluster.answer(&mut first, &call, answer, 0);
    assert_eq!(word(&cluster.next_call(&mut first, 0).request), "status");
    drop(first);
    assert_eq!(cluster.run(&mut second, 0).1, BindingStep::Bound);
}

#[test]
fn a_lost_answer_is_settled_by_reading_the_pod() {
    for is_stored in [true, false] {
        let (mut cluster, mut binding, bind) = before_the_binding();
        if is_stored {
            cluster.server.call(&bind);
        }
        cluster.answer(&mut binding, &bind, lost(), 0);
        assert_eq!(cluster.pods.stage("p-uid"), Some(PodStage::InDoubt { node: "n1" }));
        assert!(!binding.cancel("preempted"), "it may be bound");
        let (requests, step) = cluster.run(&mut binding, 1);
        let expected = if is_stored { vec!["read"] } else { vec!["read", "bind"] };
        assert_eq!((words(&requests), step), (expected, BindingStep::Bound));
        assert_eq!(cluster.stored("p"), json!({"node": "n1", "nomination": null}));
    }
}

#[test]
fn a_call_without_an_answer_counts_as_lost_after_a_minute() {
    let (mut cluster, mut binding, bind) = before_the_binding();
    cluster.server.call(&bind);
    let waits = BindingStep::Wait { reason: BindingWait::Answer, until: after(60) };
    assert_eq!(cluster.next(&mut binding, 59), waits);
    assert_eq!(word(&cluster.next_call(&mut binding, 60).request), "read");
    // The watch says it before the answer.
    cluster.watch();
    assert_eq!(cluster.next(&mut binding, 61), BindingStep::Bound);
}

#[test]
fn a_refusal_after_a_lost_answer_says_nothing_for_a_minute() {
    let (mut cluster, mut binding, bind) = before_the_binding();
    cluster.answer(&mut binding, &bind, lost(), 0);
    let read = cluster.next_call(&mut binding, 0);
    let unbound = cluster.server.call(&read);
    cluster.answer(&mut binding, &read, unbound, 0);
    let again = cluster.next_call(&mut binding, 0);
    assert_eq!(word(&again.request), "bind");
    cluster.answer(&mut binding, &again, ApiResponse::Failed("no".to_owned()), 10);
    let (requests, step) = cluster.run(&mut binding, 10);
    assert_eq!(words(&requests), ["read"]);
    assert_eq!(step, BindingStep::Wait { reason: BindingWait::Repetition, until: after(60) });
    assert_eq!(cluster.claims.state().len(), 1, "its device is in use until then");
    let (requests, step) = cluster.run(&mut binding, 60);
    assert_eq!(words(&requests), ["read", "unreserve", "clear"]);
    assert_eq!(reason(step), UnboundError::Refused { answer: "no".to_owned() });
    assert_eq!(cluster.pods.stage("p-uid"), Some(PodStage::Waiting));
}

#[test]
fn a_server_that_never_answers_is_asked_less_and_less() {
    let (mut cluster, mut binding, bind) = before_the_binding();
    cluster.answer(&mut binding, &bind, lost(), 0);
    let (mut now, mut waits) = (0, Vec::new());
    while waits.len() < 7 {
        match cluster.next(&mut binding, now) {
            BindingStep::Call(call) => cluster.answer(&mut binding, &call, lost(), now),
            BindingStep::Wait { until, .. } => {
                waits.push(until.as_second() - now);
                now = until.as_second();
            }
            step => panic!("{step:?}"),
        }
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30]);
    assert_eq!(cluster.run(&mut binding, now).1, BindingStep::Bound);
}

#[test]
fn a_pod_is_not_free_for_a_minute_after_the_removal_of_its_reservation_was_lost() {
    let (mut cluster, mut binding, bind) = before_the_binding();
    cluster.answer(&mut binding, &bind, ApiResponse::Failed("no".to_owned()), 0);
    let removal = cluster.next_call(&mut binding, 0);
    assert_eq!(word(&removal.request), "unreserve");
    cluster.answer(&mut binding, &removal, lost(), 5);
    let (requests, step) = cluster.run(&mut binding, 5);
    assert_eq!(words(&requests), ["unreserve", "clear"]);
    assert_eq!(step, BindingStep::Wait { reason: BindingWait::Repetition, until: after(65) });
    // The first removal is carried out as late as the server may.
    cluster.server.call(&removal);
    assert_eq!(cluster.next(&mut binding, 64), step);
    let BindingStep::GaveUp { problems, .. } = cluster.next(&mut binding, 65) else { panic!("no end") };
    assert!(problems.is_empty(), "{problems:?}");
}

#[test]
fn a_claim_whose_removal_has_no_answer_is_read_before_the_pod_is_free() {
    let (mut cluster, mut binding, bind) = before_the_binding();
    cluster.answer(&mut binding, &bind, ApiResponse::Failed("no".to_owned()), 0);
    let (mut asked, mut now) = (Vec::new(), 0);
    let problems = loop {
        match cluster.next(&mut binding, now) {
            BindingStep::Call(call) => {
                // Carried out, but for the first reading nobody hears of it; the watch is far behind.
                let answer = cluster.server.call(&call);
                asked.push((now, word(&call.request)));
                let is_heard = word(&call.request) == "clear" || asked.len() == 8;
                cluster.answer(&mut binding, &call, if is_heard { answer } else { lost() }, now);
            }
            BindingStep::Wait { until, .. } => now = until.as_second() - after(0).as_second(),
            BindingStep::GaveUp { problems, .. } => break problems,
            step => panic!("{step:?}"),
        }
    };
    let removals = ["unreserve"; 5].map(|word| (0, word));
    assert_eq!(asked, [&removals[..], &[(0, "clear"), (60, "get"), (60, "get")]].concat());
    assert_eq!(problems.len(), 1, "{problems:?}");
    let known = ClaimLookup::claim(&cluster.claims, "ns", "c").unwrap();
    assert!(consumers(known).is_empty(), "memory has what was read");
}

#[test]
fn a_refusal_does_not_tell_what_a_lost_removal_has_done() {
    let (mut cluster, mut binding, bind) = before_the_binding();
    cluster.answer(&mut binding, &bind, ApiResponse::Failed("no".to_owned()), 0);
    let removal = cluster.next_call(&mut binding, 0);
    cluster.server.call(&removal);
    cluster.answer(&mut binding, &removal, lost(), 0);
    let again = cluster.next_call(&mut binding, 0);
    cluster.answer(&mut binding, &again, ApiResponse::Failed("no".to_owned()), 0);
    let (requests, step) = cluster.run(&mut binding, 0);
    assert_eq!(words(&requests), ["clear"]);
    assert_eq!(step, BindingStep::Wait { reason: BindingWait::Repetition, until: after(60) });
    // Nor does a refusal of the reading, which is told in the end.
    for seconds in [60, 60, 61] {
        let reading = cluster.next_call(&mut binding, seconds);
        assert_eq!(word(&reading.request), "get");
        cluster.answer(&mut binding, &reading, ApiResponse::Failed("not now".to_owned()), seconds);
    }
    assert!(matches!(cluster.next(&mut binding, 61), BindingStep::Wait { until, .. } if until == after(63)));
    let (requests, step) = cluster.run(&mut binding, 63);
    assert_eq!(words(&requests), ["get"]);
    let BindingStep::GaveUp { problems, .. } = step else { panic!("{step:?}") };
    assert_eq!(problems.last().map(String::as_str), Some("get resourceclaim ns/c: not now"));
    assert!(consumers(ClaimLookup::claim(&cluster.claims, "ns", "c").unwrap()).is_empty());
}

#[test]
fn a_nomination_whose_clearing_is_lost_five_times_is_left_in_doubt() {
    let (mut cluster, mut binding, bind) = before_the_binding();
    cluster.answer(&mut binding, &bind, ApiResponse::Failed("no".to_owned()), 0);
    let mut cleared = Vec::new();
    let problems = loop {
        match cluster.next(&mut binding, 0) {
            BindingStep::Call(call) if word(&call.request) == "clear" => {
                cluster.answer(&mut binding, &call, lost(), 0);
                cleared.push(call);
            }
            BindingStep::Call(call) => {
                let answer = cluster.server.call(&call);
                cluster.answer(&mut binding, &call, answer, 0);
            }
            BindingStep::GaveUp { problems, .. } => break problems,
            step => panic!("{step:?}"),
        }
    };
    assert_eq!((cleared.len(), problems.len()), (5, 1), "{problems:?}");
    assert_eq!(cluster.pods.in_doubt().collect::<Vec<_>>(), [&key("p")]);
    assert_eq!(cluster.pods.nomination("p-uid"), None);
    assert!(nomination_of(&cluster.server.pods["p"]).is_some());
    // What the memory says is written once more.
    let ApiResponse::Pod(shown) = cluster.server.request(&key("p"), &cleared[0].request) else { panic!("no pod") };
    cluster.pods.observe_answer(*shown).unwrap();
    assert_eq!(cluster.pods.in_doubt().count(), 0);
}

#[test]
fn an_answer_does_not_bring_back_a_pod_that_is_gone() {
    let (mut cluster, mut binding, bind) = before_the_binding();
    cluster.answer(&mut binding, &bind, lost(), 0);
    let read = cluster.next_call(&mut binding, 0);
    let shown = cluster.server.call(&read);
    cluster.server.pods.remove("p");
    cluster.watch();
    cluster.answer(&mut binding, &read, shown, 0);
    assert_eq!(reason(cluster.run(&mut binding, 0).1), UnboundError::Gone);
    assert_eq!((cluster.pods.stage("p-uid"), cluster.claims.state().len()), (None, 1), "the claim is the controller's");
}

#[test]
fn a_late_or_second_answer_changes_no_step() {
    let (mut cluster, mut binding, bind) = before_the_binding();
    cluster.answer(&mut binding, &bind, lost(), 0);
    let read = cluster.next_call(&mut binding, 0);
    // The first binding was refused after all, and its answer is late: the open call is another one.
    cluster.answer(&mut binding, &bind, ApiResponse::Failed("late".to_owned()), 1);
    assert!(matches!(cluster.next(&mut binding, 1), BindingStep::Wait { reason: BindingWait::Answer, .. }));
    let unbound = cluster.server.call(&read);
    cluster.answer(&mut binding, &read, unbound.clone(), 1);
    cluster.answer(&mut binding, &read, unbound, 1);
    let again = cluster.next_call(&mut binding, 1);
    cluster.server.call(&again);
    // That the first one was stored is news.
    cluster.answer(&mut binding, &bind, ApiResponse::Done, 2);
    assert_eq!(cluster.next(&mut binding, 2), BindingStep::Bound);
    cluster.answer(&mut binding, &again, lost(), 3);
    assert_eq!(cluster.next(&mut binding, 3), BindingStep::Bound);
    assert_eq!(cluster.pods.stage("p-uid"), Some(PodStage::Bound { node: "n1" }));
}

#[test]
fn a_conflict_of_the_binding_is_told_by_the_pod() {
    let rows: [(&str, Option<&str>, UnboundError); 2] = [
        ("another node", Some("n9"), UnboundError::BoundAlready { node: "n9".to_owned() }),
        ("no node", None, UnboundError::Refused { answer: "conflict".to_owned() }),
    ];
    for (name, node, expected) in rows {
        let (mut cluster, mut binding, bind) = before_the_binding();
        cluster.server.change("p", |pod| pod.spec.get_or_insert_default().node_name = node.map(str::to_owned));
        cluster.answer(&mut binding, &bind, ApiResponse::Conflict("conflict".to_owned()), 0);
        let (requests, step) = cluster.run(&mut binding, 0);
        assert_eq!(words(&requests)[..2], ["read", "unreserve"], "{name}");
        assert_eq!(words(&requests).contains(&"clear"), node.is_none(), "{name}");
        assert_eq!(reason(step), expected, "{name}");
    }
}

#[test]
fn a_pod_that_is_bound_here_by_somebody_else_keeps_its_claims() {
    let mut cluster = Cluster::new(1, [claim("c", 1)], &[pod("p", &["c"], None)]);
    let mut binding = cluster.begin("p", "n1");
    let call = cluster.next_call(&mut binding, 0);
    let answer = cluster.server.call(&call);
    cluster.answer(&mut binding, &call, answer, 0);
    cluster.server.change("p", |pod| pod.spec.get_or_insert_default().node_name = Some("n1".to_owned()));
    cluster.watch();
    let (requests, step) = cluster.run(&mut binding, 0);
    assert_eq!((words(&requests), reason(step)), (vec![], UnboundError::BoundAlready { node: "n1".to_owned() }));
    assert_eq!(cluster.claims.in_flight().count(), 0);
}

#[test]
fn a_pod_that_goes_takes_everything_back() {
    for is_gone in [true, false] {
        let (mut cluster, mut binding, bind) = before_the_binding();
        cluster.answer(&mut binding, &bind, ApiResponse::Conflict("being deleted".to_owned()), 0);
        if is_gone {
            cluster.server.pods.clear();
        } else {
            let now = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(after(0)));
            cluster.server.change("p", |pod| pod.metadata.deletion_timestamp = now);
        }
        let (requests, step) = cluster.run(&mut binding, 0);
        assert_eq!(words(&requests)[..2], ["read", "unreserve"]);
        assert!(matches!(reason(step), UnboundError::Gone | UnboundError::Refused { .. }));
        assert_eq!(cluster.claims.in_flight().count(), 0);
        let stored = cluster.server.claims.list().next().unwrap();
        assert_eq!(consumers(&stored), Vec::<&str>::new());
    }
}

#[test]
fn a_cancelled_binding_waits_for_its_open_call_and_takes_all_back() {
    let mut cluster = Cluster::new(1, [claim("c", 1)], &[pod("p", &["c"], None)]);
    let mut binding = cluster.begin("p", "n1");
    for _ in 0..2 {
        let call = cluster.next_call(&mut binding, 0);
        let answer = cluster.server.call(&call);
        cluster.answer(&mut binding, &call, answer, 0);
    }
    let open = cluster.next_call(&mut binding, 0);
    assert!(binding.cancel("preempted"));
    assert!(matches!(cluster.next(&mut binding, 0), BindingStep::Wait { reason: BindingWait::Answer, .. }));
    let answer = cluster.server.call(&open);
    cluster.answer(&mut binding, &open, answer, 0);
    let (requests, step) = cluster.run(&mut binding, 0);
    assert_eq!(words(&requests), ["unreserve", "clear"]);
    assert_eq!(reason(step).to_string(), "preempted");
    assert!(!binding.cancel("again"), "it has ended");
    assert_eq!(cluster.stored("p"), json!({"node": null, "nomination": null}));
}

#[test]
fn a_rival_gets_the_devices() {
    let (mut cluster, mut binding) = {
        let claims = [claim("c", 1), claim("d", 1)];
        let mut cluster = Cluster::new(1, claims, &[pod("p", &["c"], None)]);
        let binding = cluster.begin("p", "n1");
        (cluster, binding)
    };
    for _ in 0..3 {
        let call = cluster.next_call(&mut binding, 0);
        let answer = cluster.server.call(&call);
        cluster.answer(&mut binding, &call, answer, 0);
    }
    // Another scheduler has allocated the same device to another claim.
    cluster.server.claims.store(allocated("d", "n1", "a", &["q"]));
    cluster.watch();
    let (requests, step) = cluster.run(&mut binding, 0);
    assert_eq!(words(&requests), ["status", "clear"]);
    assert!(matches!(reason(step), UnboundError::Rival { holder, .. } if holder.name == "d"));
    let stored = cluster.server.claims.list().find(|claim| claim.metadata.name.as_deref() == Some("c")).unwrap();
    assert_eq!((allocation(&stored), consumers(&stored)), (None, vec![]));
}

#[test]
fn a_claim_that_moves_to_another_node_ends_the_binding() {
    // The last consumer is gone, and the claim is allocated anew for another pod; the watch shows it or is behind.
    for is_shown in [true, false] {
        let mut cluster = Cluster::new(2, [allocated("c", "n1", "a", &["o"])], &[pod("p", &["c"], None)]);
        let mut binding = cluster.begin("p", "n1");
        cluster.server.claims.store(allocated("c", "n2", "a", &["q"]));
        if is_shown {
            cluster.watch();
        }
        let (requests, step) = cluster.run(&mut binding, 0);
        assert_eq!(words(&requests), ["nominate", "status", "get", "clear"]);
        assert_eq!(reason(step).to_string(), "claim ns/c got allocated elsewhere in the meantime");
        assert_eq!(consumers(&cluster.server.claims.list().next().unwrap()), ["q"]);
    }
}

#[test]
fn a_pod_that_can_not_be_assumed_gives_its_devices_back() {
    let mut cluster = Cluster::new(1, [claim("c", 1)], &[pod("p", &["c"], None)]);
    let cycle = cluster.reserve("p", "n1");
    cluster.pods.assume("p-uid", "n2", PodUsage::default()).unwrap();
    let error = Binding::begin(&key("p"), "n1", PodUsage::default(), cycle, &mut cluster.memory()).unwrap_err();
    assert_eq!(error, AssumeError::Placed { node: "n2".to_owned() });
    assert_eq!((cluster.claims.in_flight().count(), cluster.claims.state().len()), (0, 0));
}

#[test]
fn calls_and_bindings_go_to_other_threads() {
    const fn is_sent<T: Send + 'static>() {}
    is_sent::<BindingCall>();
    is_sent::<ApiResponse>();
    is_sent::<Binding>();
}
