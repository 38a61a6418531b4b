use std::cell::{Cell, RefCell};

use nnn::reservation::Fit;
use nnn::scheduling::candidate::{CycleStart, Evaluation, Feasible, FirstTry, HintAfterNnn, PreFilter, filter_rounds};

use super::common::with;

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
fn a_write_during_a_cycle_changes_nothing_in_it() {
    // req: 5278-EVAL-3
    use super::common::{handle, pod, scheduler};
    use nnn::command::Command;
    use nnn::options::Options;
    use nnn::scheduler::Input;
    let waiting = pod("p", 0);
    let mut memory = scheduler(Options::default(), std::slice::from_ref(&waiting));
    let popped = memory.pod("p").unwrap().clone();
    let reaction = handle(&mut memory, Input::PodObserved(waiting.nominated_to("b")));
    let moves = |command: &Command| {
        matches!(command, Command::Requeue { .. } | Command::WakeAll { .. } | Command::WakeLowerOrEqual { .. })
    };
    assert!(!reaction.commands.iter().any(moves), "a hint moves no pod: {reaction:?}");
    // The cycle under way has its own copy; the next one sees the hint.
    let first = |nnn: Option<&str>| {
        let start = CycleStart::new(&NODES).nominated_to(nnn);
        start.evaluate(|_| true, |_| Fit::<()>::Fits).tried.len()
    };
    assert_eq!((first(popped.nnn.as_deref()), first(memory.pod("p").unwrap().nnn.as_deref())), (0, 1));
}
