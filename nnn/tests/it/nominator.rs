use nnn::{Behavior, NominatingInfo, Nomination, Nominator};
use proptest::prelude::*;

use super::common::{OnNode, cpu, pod, with};

fn on(nominator: &Nominator, node: &str) -> Vec<String> {
    nominator.on_node(node).map(|nomination| nomination.pod.name.clone()).collect()
}

#[test]
fn a_node_that_does_not_exist_is_as_good_a_key_as_any() {
    // req: 5278-CACHE-1
    let mut nominator = Nominator::new(Behavior::Safe);
    let waiting = pod("p", 0).with_requests(cpu(2));
    nominator.add(&waiting, &NominatingInfo::nominate("not-there"), Some(&waiting));
    assert_eq!(on(&nominator, "not-there"), ["p"]);
    let [nomination] = nominator.on_node("not-there").collect::<Vec<_>>()[..] else { panic!() };
    assert_eq!((nomination.priority, &nomination.requests), (0, &cpu(2)));
}

#[test]
fn a_nomination_ends_with_its_pod() {
    // req: 5278-CACHE-2
    let mut nominator = Nominator::new(Behavior::Safe);
    for name in ["deleted", "bound"] {
        nominator.insert(Nomination::new(&pod(name, 0), "n"));
        nominator.write_issued(name, Some("n"));
    }
    assert!(!nominator.is_empty());
    assert!(nominator.forget("deleted").is_some() && nominator.forget("bound").is_some());
    assert!(nominator.forget("bound").is_none(), "twice does no harm");
    assert!(nominator.is_empty() && nominator.nodes().next().is_none());
    assert_eq!(nominator.unseen_write("bound"), None);
}

#[test]
fn an_update_moves_the_only_nomination() {
    // req: 5278-CACHE-3
    let mut nominator = Nominator::new(Behavior::Safe);
    let old = pod("p", 0).with_nomination("a");
    nominator.add(&old, &NominatingInfo::Noop, Some(&old));
    nominator.insert(Nomination::new(&pod("other", 0), "b"));
    let new = pod("p", 3).with_nomination("b");
    nominator.update(&old, &new, Some(&new));
    assert_eq!((on(&nominator, "a"), on(&nominator, "b")), (vec![], vec!["other".to_owned(), "p".to_owned()]));
    assert_eq!(nominator.on_node("b").last().map(|nomination| nomination.priority), Some(3));
    assert_eq!((nominator.len(), nominator.nodes().count()), (2, 1));
}

#[test]
fn a_clear_is_no_node_of_the_empty_name() {
    let mut nominator = Nominator::new(Behavior::Safe);
    let waiting = pod("p", 0).with_nomination("a");
    for info in [NominatingInfo::clear(), NominatingInfo::nominate("")] {
        nominator.add(&waiting, &info, Some(&waiting));
        assert!(nominator.is_empty() && nominator.nodes().next().is_none(), "{info:?}");
    }
    nominator.insert(Nomination::new(&waiting, ""));
    assert!(nominator.is_empty());
}

#[test]
fn pods_that_are_not_pending_get_no_nomination() {
    let waiting = pod("p", 0);
    let bound = pod("p", 0).with_node("n");
    for live in [None, Some(&bound)] {
        let mut nominator = Nominator::new(Behavior::Safe);
        nominator.insert(Nomination::new(&waiting, "a"));
        nominator.add(&waiting, &NominatingInfo::nominate("b"), live);
        assert!(nominator.is_empty(), "what it had is gone as well: {live:?}");
    }
}

#[test]
fn an_entry_that_is_renewed_goes_to_the_end() {
    let mut nominator = Nominator::new(Behavior::Safe);
    let first = pod("first", 0).with_nomination("n");
    for waiting in [&first, &pod("second", 0).with_nomination("n")] {
        nominator.add(waiting, &NominatingInfo::Noop, Some(waiting));
    }
    nominator.update(&first, &first, Some(&first));
    assert_eq!(on(&nominator, "n"), ["second", "first"]);
}

#[test]
fn a_repeated_event_changes_nothing_more() {
    let mut nominator = Nominator::new(Behavior::Safe);
    let (old, new) = (pod("p", 0).with_nomination("a"), pod("p", 0).with_nomination("b"));
    let state = |nominator: &Nominator| nominator.iter().cloned().collect::<Vec<_>>();
    nominator.add(&old, &NominatingInfo::Noop, Some(&old));
    let once = state(&nominator);
    nominator.add(&old, &NominatingInfo::Noop, Some(&old));
    assert_eq!(state(&nominator), once);
    nominator.update(&old, &new, Some(&new));
    let once = state(&nominator);
    nominator.update(&old, &new, Some(&new));
    assert_eq!(state(&nominator), once);
}

#[test]
fn identity_by_name_is_upstreams() {
    let (old, new) = (pod("p", 0), pod("p", 0).with_uid("another"));
    for (behavior, nominated) in [(Behavior::KubeScheduler, Some("n")), (Behavior::Safe, None)] {
        let mut nominator = Nominator::new(behavior);
        nominator.add(&old, &NominatingInfo::nominate("n"), Some(&new));
        assert_eq!(nominator.nominated_node("p"), nominated, "{behavior:?}");
    }
}

/// Obviously correct nominator: a list of pods and nodes in the order of nomination.
#[derive(Default)]
struct Model(Vec<(String, String)>);

impl Model {
    fn set(&mut self, uid: &str, node: Option<&str>) {
        self.0.retain(|(known, _)| known != uid);
        self.0.extend(node.map(|node| (uid.to_owned(), node.to_owned())));
    }

    fn node_of(&self, uid: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == uid).map(|(_, node)| node.as_str())
    }

    fn on(&self, node: &str) -> Vec<String> {
        self.0.iter().filter(|(_, on)| on == node).map(|(uid, _)| uid.clone()).collect()
    }
}

fn place() -> impl Strategy<Value = Option<&'static str>> {
    prop::option::of(prop::sample::select(&["a", "b", "c"][..]))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn as_a_plain_list(steps in prop::collection::vec((0..4_u8, 0..4_u8, place(), place()), 1..40)) {
        let (mut nominator, mut model) = (Nominator::new(Behavior::Safe), Model::default());
        for (what, number, first, second) in steps {
            let uid = format!("p{number}");
            let at = |node: Option<&str>| with(pod(&uid, 0), |pod| pod.nnn = node.map(str::to_owned));
            match what {
                0 => {
                    nominator.add(&at(first), &NominatingInfo::Noop, Some(&at(first)));
                    model.set(&uid, first);
                }
                1 => {
                    let info = NominatingInfo::Override(second.map(str::to_owned));
                    nominator.add(&at(first), &info, Some(&at(first)));
                    model.set(&uid, second);
                }
                2 => {
                    nominator.update(&at(first), &at(second), Some(&at(second)));
                    let memory = model.node_of(&uid).map(str::to_owned);
                    let node = if first.is_none() && second.is_none() { memory.as_deref() } else { second };
                    model.set(&uid, node);
                }
                _ => {
                    nominator.forget(&uid);
                    model.set(&uid, None);
                }
            }
            for node in ["a", "b", "c"] {
                prop_assert_eq!(on(&nominator, node), model.on(node));
            }
            prop_assert_eq!(nominator.len(), model.0.len());
        }
    }
}
