use std::cell::{Cell, RefCell};

use nnn::binding::start::PreFlight;
use nnn::command::Command;
use nnn::options::Options;
use nnn::reservation::Fit;
use nnn::scheduler::Input;
use nnn::scheduling::candidate::{CycleStart, Evaluation, Feasible, FirstTry, HintAfterNnn, PreFilter, filter_rounds};
use nnn::scheduling::cycle::CycleOutcome;

use super::common::{fails, handle, nominated, placed, pod, scheduler, version, with, written};

const NODES: [&str; 3] = ["a", "b", "c"];

/// Evaluates a cycle in a cluster of [`NODES`] and `elsewhere`, and says which nodes were judged in which order.
fn evaluate(start: CycleStart<'_>, fit: impl Fn(&str) -> Fit<()>) -> (Evaluation<'_>, String) {
    let judged = RefCell::new(String::new());
    let exists = |node: &str| NODES.contains(&node) || node == "elsewhere";
    let found = start.evaluate(exists, |node| {
        judged.borrow_mut().push_str(node);
        fit(node)
    });
    assert_eq!(found.filter_runs, judged.borrow().len());
    (found, judged.into_inner())
}

fn fits(node: &str, fitting: &str) -> Fit<()> {
    if fitting.contains(node) { Fit::Fits } else { Fit::Rejected(()) }
}

fn start<'a>(nnn: &'a str, hint: &'a str) -> CycleStart<'a> {
    let mut start = CycleStart::new(&NODES).nominated_to(Some(nnn));
    start.hint = Some(hint).filter(|hint| !hint.is_empty());
    start
}

#[test]
fn the_nominated_node_is_tried_first_and_alone() {
    // req: 5278-EVAL-1
    let (found, judged) = evaluate(start("b", ""), |_| Fit::Fits);
    assert_eq!((found.feasible, judged.as_str()), (Feasible::First("b"), "b"));
    assert_eq!(found.tried, [("b", FirstTry::Taken)]);
}

#[test]
fn a_fitting_hint_wins_over_better_nodes_since_nothing_is_scored() {
    // req: 5278-EVAL-4
    let (found, _) = evaluate(start("c", ""), |_| Fit::Fits);
    assert_eq!(found.feasible, Feasible::First("c"));
    let (found, _) = evaluate(start("", ""), |_| Fit::Fits);
    assert_eq!(found.feasible, Feasible::Nodes(NODES.to_vec()));
}

#[test]
fn a_nomination_that_does_not_fit_or_does_not_exist_is_ignored() {
    // req: 5278-EVAL-2
    let (found, judged) = evaluate(start("b", ""), |node| fits(node, "ac"));
    assert_eq!((found.feasible, judged.as_str()), (Feasible::Nodes(vec!["a", "c"]), "babc"));
    assert_eq!(found.tried, [("b", FirstTry::Rejected)]);

    let (found, judged) = evaluate(start("not-there", ""), |_| Fit::Fits);
    assert_eq!((found.feasible, judged.as_str()), (Feasible::Nodes(NODES.to_vec()), "abc"));
    assert_eq!(found.tried, [("not-there", FirstTry::NotInCluster)]);

    let (found, judged) = evaluate(start("elsewhere", ""), |_| Fit::Fits);
    assert_eq!((found.tried[0].1, judged.as_str()), (FirstTry::NotInPlacement, "abc"));
}

#[test]
fn a_failure_on_the_nominated_node_is_fatal_only_if_it_happens_again() {
    let is_first = Cell::new(true);
    let flaky = |node: &str| if node == "b" && is_first.replace(false) { Fit::Failed(()) } else { Fit::Fits };
    let (found, _) = evaluate(start("b", ""), flaky);
    assert_eq!((found.tried[0].1, found.feasible), (FirstTry::Failed, Feasible::Nodes(NODES.to_vec())));
    let (found, _) = evaluate(start("b", ""), |node| if node == "b" { Fit::Failed(()) } else { Fit::Fits });
    assert_eq!(found.feasible, Feasible::Failed("b"));
}

#[test]
fn the_hint_of_a_batch_counts_without_a_nomination() {
    let (found, judged) = evaluate(start("", "c"), |_| Fit::Fits);
    assert_eq!((found.feasible, judged.as_str()), (Feasible::First("c"), "c"));
    // Not after a nomination that failed, unless asked for.
    let (found, judged) = evaluate(start("b", "c"), |node| fits(node, "c"));
    assert_eq!((found.feasible, judged.as_str()), (Feasible::Nodes(vec!["c"]), "babc"));
    let wish = with(start("b", "c"), |start| start.hint_after_nnn = HintAfterNnn::Tried);
    let (found, judged) = evaluate(wish, |node| fits(node, "c"));
    assert_eq!((found.feasible, judged.as_str()), (Feasible::First("c"), "bc"));
    let same = with(start("b", "b"), |start| start.hint_after_nnn = HintAfterNnn::Tried);
    assert_eq!(evaluate(same, |node| fits(node, "")).1, "babc");
}

#[test]
fn nothing_is_judged_without_nodes_or_when_pre_filter_says_no() {
    let stopped = |start: CycleStart<'static>| {
        let (found, judged) = evaluate(start, |_| Fit::Fits);
        assert_eq!(judged, "");
        found.feasible
    };
    assert_eq!(stopped(CycleStart::new(&[]).nominated_to(Some("b"))), Feasible::NoNodes);
    assert_eq!(
        stopped(with(start("b", ""), |start| start.pre_filter = PreFilter::Rejected)),
        Feasible::PreFilterRejected
    );
    assert_eq!(stopped(with(start("b", ""), |start| start.pre_filter = PreFilter::Failed)), Feasible::PreFilterFailed);
}

#[test]
fn a_useless_hint_costs_one_more_run_of_the_filters() {
    // req: 5278-COST-2
    let names: Vec<String> = (0..1000).map(|number| format!("node-{number}")).collect();
    let nodes: Vec<&str> = names.iter().map(String::as_str).collect();
    let runs = |nnn| {
        let start = CycleStart::new(&nodes).nominated_to(nnn);
        start.evaluate(|_| true, |_| Fit::Rejected(())).filter_runs
    };
    assert_eq!((runs(None), runs(Some("node-7"))), (1000, 1001));
    assert_eq!(filter_rounds(1000, 16), 63, "62 full rounds and one of 8");
    assert_eq!((filter_rounds(0, 16), filter_rounds(1, 0)), (0, 1));
}

#[test]
fn a_write_during_a_cycle_leaves_its_decision() {
    // req: 5278-EVAL-3
    let popped = version(pod("p", 0), 1);
    let during = || {
        let mut it = scheduler(Options::default(), std::slice::from_ref(&popped));
        handle(&mut it, Input::PodObserved(version(pod("p", 0).nominated_to("b"), 2)));
        it
    };
    let mut it = during();
    let chosen = placed(&popped, "a").pre_flights(vec![PreFlight::Success]);
    let reaction = handle(&mut it, Input::CycleSucceeded(chosen));
    assert_eq!(written(&reaction), [("p", Some("a"))]);
    assert!(matches!(reaction.commands.last(), Some(Command::Bind { node, .. }) if node == "a"));
    for (outcome, expected) in [(CycleOutcome::NoCandidates, None), (nominated("c"), Some("c"))] {
        let mut it = during();
        assert_eq!(written(&handle(&mut it, fails(&popped, outcome))), [("p", expected)]);
    }
}

#[test]
fn a_hint_moves_no_pod_and_the_end_of_one_wakes_those_it_kept_away() {
    // req: 5278-EVAL-3
    let hints = [None, Some("a"), Some("b"), None];
    for options in [Options::default(), Options::upstream()] {
        let mut it = scheduler(options, &[version(pod("p", 0), 1)]);
        let mut moved = Vec::new();
        for (number, hint) in (2..).zip(hints).skip(1) {
            let hinted = with(pod("p", 0), |pod| pod.nnn = hint.map(str::to_owned));
            let commands = handle(&mut it, Input::PodObserved(version(hinted, number))).commands;
            moved.extend(commands.into_iter().filter(|command| {
                matches!(command, Command::Requeue { .. } | Command::WakeAll { .. } | Command::WakeLowerOrEqual { .. })
            }));
            assert_eq!(it.pod("p").unwrap().nnn.as_deref(), hint, "the next cycle sees it");
        }
        let wake = Command::WakeLowerOrEqual { priority: 0, except: None };
        assert_eq!(moved, [wake.clone(), wake], "none for the first hint, one for its change and one for its end");
    }
}
