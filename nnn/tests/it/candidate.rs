use std::cell::{Cell, RefCell};

use nnn::scheduling::{CandidateResult, FeasibleNodes, FilterInput, NodeEvaluation};
use nnn::{Command, CycleOutcome, NodeFit, PreFlight, TrackerInput};

use super::common::{fails, handle, kube_scheduler, nominated, placed, pod, safe, tracker, version, with, written};

const NODES: [&str; 3] = ["a", "b", "c"];

/// Evaluates a cycle in a cluster of [`NODES`] and `elsewhere`, and returns the nodes in the order in which they were
/// filtered.
fn evaluate(start: FilterInput<'_>, fit: impl Fn(&str) -> NodeFit<()>) -> (NodeEvaluation<'_>, String) {
    let judged = RefCell::new(String::new());
    let exists = |node: &str| NODES.contains(&node) || node == "elsewhere";
    let found = start.evaluate(exists, |node| {
        judged.borrow_mut().push_str(node);
        fit(node)
    });
    assert_eq!(found.filter_runs, judged.borrow().len());
    (found, judged.into_inner())
}

fn fits(node: &str, fitting: &str) -> NodeFit<()> {
    if fitting.contains(node) { NodeFit::Fits } else { NodeFit::Rejected(()) }
}

fn start<'a>(nnn: &'a str, hint: &'a str) -> FilterInput<'a> {
    let mut start = FilterInput::new(&NODES).with_nomination(Some(nnn));
    start.hint = Some(hint).filter(|hint| !hint.is_empty());
    start
}

#[test]
fn the_nominated_node_is_tried_first_and_alone() {
    // req: 5278-EVAL-1
    let (found, judged) = evaluate(start("b", ""), |_| NodeFit::Fits);
    assert_eq!((found.feasible, judged.as_str()), (FeasibleNodes::First("b"), "b"));
    assert_eq!(found.tried, [("b", CandidateResult::Taken)]);
}

#[test]
fn a_fitting_hint_wins_over_better_nodes_since_nothing_is_scored() {
    // req: 5278-EVAL-4
    let (found, _) = evaluate(start("c", ""), |_| NodeFit::Fits);
    assert_eq!(found.feasible, FeasibleNodes::First("c"));
    let (found, _) = evaluate(start("", ""), |_| NodeFit::Fits);
    assert_eq!(found.feasible, FeasibleNodes::Nodes(NODES.to_vec()));
}

#[test]
fn a_nomination_that_does_not_fit_or_does_not_exist_is_ignored() {
    // req: 5278-EVAL-2
    let (found, judged) = evaluate(start("b", ""), |node| fits(node, "ac"));
    assert_eq!((found.feasible, judged.as_str()), (FeasibleNodes::Nodes(vec!["a", "c"]), "babc"));
    assert_eq!(found.tried, [("b", CandidateResult::Rejected)]);

    let (found, judged) = evaluate(start("not-there", ""), |_| NodeFit::Fits);
    assert_eq!((found.feasible, judged.as_str()), (FeasibleNodes::Nodes(NODES.to_vec()), "abc"));
    assert_eq!(found.tried, [("not-there", CandidateResult::NotInCluster)]);

    let (found, judged) = evaluate(start("elsewhere", ""), |_| NodeFit::Fits);
    assert_eq!((found.tried[0].1, judged.as_str()), (CandidateResult::NotInPlacement, "abc"));
}

#[test]
fn a_failure_on_the_nominated_node_is_fatal_only_if_it_happens_again() {
    let is_first = Cell::new(true);
    let flaky = |node: &str| if node == "b" && is_first.replace(false) { NodeFit::Failed(()) } else { NodeFit::Fits };
    let (found, _) = evaluate(start("b", ""), flaky);
    assert_eq!((found.tried[0].1, found.feasible), (CandidateResult::Failed, FeasibleNodes::Nodes(NODES.to_vec())));
    let (found, _) = evaluate(start("b", ""), |node| if node == "b" { NodeFit::Failed(()) } else { NodeFit::Fits });
    assert_eq!(found.feasible, FeasibleNodes::Failed("b"));
}

#[test]
fn the_hint_of_a_batch_counts_without_a_nomination() {
    let (found, judged) = evaluate(start("", "c"), |_| NodeFit::Fits);
    assert_eq!((found.feasible, judged.as_str()), (FeasibleNodes::First("c"), "c"));
    // Not after a nomination that failed, unless asked for.
    let (found, judged) = evaluate(start("b", "c"), |node| fits(node, "c"));
    assert_eq!((found.feasible, judged.as_str()), (FeasibleNodes::Nodes(vec!["c"]), "babc"));
    let wish = with(start("b", "c"), |start| start.tries_hint_after_nomination = true);
    let (found, judged) = evaluate(wish, |node| fits(node, "c"));
    assert_eq!((found.feasible, judged.as_str()), (FeasibleNodes::First("c"), "bc"));
    let same = with(start("b", "b"), |start| start.tries_hint_after_nomination = true);
    assert_eq!(evaluate(same, |node| fits(node, "")).1, "babc");
}

#[test]
fn nothing_is_judged_without_nodes_or_when_pre_filter_says_no() {
    let stopped = |start: FilterInput<'static>| {
        let (found, judged) = evaluate(start, |_| NodeFit::Fits);
        assert_eq!(judged, "");
        found.feasible
    };
    assert_eq!(stopped(FilterInput::new(&[]).with_nomination(Some("b"))), FeasibleNodes::NoNodes);
    assert_eq!(
        stopped(with(start("b", ""), |start| start.pre_filter = NodeFit::Rejected(()))),
        FeasibleNodes::PreFilterRejected
    );
    assert_eq!(
        stopped(with(start("b", ""), |start| start.pre_filter = NodeFit::Failed(()))),
        FeasibleNodes::PreFilterFailed
    );
}

#[test]
fn a_useless_hint_costs_one_more_run_of_the_filters() {
    // req: 5278-COST-2
    let names: Vec<String> = (0..1000).map(|number| format!("node-{number}")).collect();
    let nodes: Vec<&str> = names.iter().map(String::as_str).collect();
    let runs = |nnn| {
        let start = FilterInput::new(&nodes).with_nomination(nnn);
        let found = start.evaluate(|_| true, |_| NodeFit::Rejected(()));
        (found.filter_runs, found.rounds(16))
    };
    assert_eq!((runs(None), runs(Some("node-7"))), ((1000, 63), (1001, 64)));
    assert_eq!(runs(Some("not-yet-there")), (1000, 63));
}

#[test]
fn a_write_during_a_cycle_leaves_its_decision() {
    // req: 5278-EVAL-3
    let queued_pod = version(pod("p", 0), 1);
    let during = || {
        let mut it = tracker(safe(), std::slice::from_ref(&queued_pod));
        handle(&mut it, TrackerInput::PodObserved(version(pod("p", 0).with_nomination("b"), 2)));
        it
    };
    let mut it = during();
    let chosen = placed(&queued_pod, "a").with_pre_flights(vec![PreFlight::Success]);
    let output = handle(&mut it, TrackerInput::CycleSucceeded(chosen));
    assert_eq!(written(&output), [("p", Some("a"))]);
    assert!(matches!(output.commands.last(), Some(Command::Bind { node, .. }) if node == "a"));
    for (outcome, expected) in [(CycleOutcome::NoCandidates, None), (nominated("c"), Some("c"))] {
        let mut it = during();
        assert_eq!(written(&handle(&mut it, fails(&queued_pod, outcome))), [("p", expected)]);
    }
}

#[test]
fn a_hint_moves_no_pod_and_the_end_of_one_wakes_those_it_kept_away() {
    // req: 5278-EVAL-3
    let hints = [None, Some("a"), Some("b"), None];
    for options in [safe(), kube_scheduler()] {
        let mut it = tracker(options, &[version(pod("p", 0), 1)]);
        let mut moved = Vec::new();
        for (number, hint) in (2..).zip(hints).skip(1) {
            let hinted = with(pod("p", 0), |pod| pod.nnn = hint.map(str::to_owned));
            let commands = handle(&mut it, TrackerInput::PodObserved(version(hinted, number))).commands;
            moved.extend(commands.into_iter().filter(|command| {
                matches!(
                    command,
                    Command::Requeue { .. } | Command::RequeueAll { .. } | Command::RequeueLowerOrEqual { .. }
                )
            }));
            assert_eq!(it.pod("p").unwrap().nnn.as_deref(), hint, "the next cycle sees it");
        }
        let wake = Command::RequeueLowerOrEqual { priority: 0, except: None };
        assert_eq!(moved, [wake.clone(), wake], "none for the first hint, one for its change and one for its end");
    }
}
