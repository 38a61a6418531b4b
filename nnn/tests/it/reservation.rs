use std::cell::Cell;

use nnn::{NodeFit, Nomination};

use super::common::{cpu, pod, with};

fn promised(name: &str, priority: i32, units: i64) -> Nomination {
    Nomination::new(&pod(name, priority).with_requests(cpu(units)), "n")
}

#[test]
fn equal_and_higher_priorities_count_and_lower_ones_do_not() {
    // req: 5278-RES-1
    let asking = |priority| pod("asking", priority).with_requests(cpu(2));
    for (priority, fits) in [(4, false), (5, false), (6, true)] {
        assert_eq!(
            asking(priority).fits_unreserved_resources(&cpu(3), &[promised("other", 5, 2)]),
            fits,
            "priority {priority}"
        );
    }
}

#[test]
fn a_pod_is_not_in_its_own_way() {
    let own = promised("p", 5, 3);
    assert!(pod("p", 5).with_requests(cpu(3)).fits_unreserved_resources(&cpu(3), [&own]));
    // Not even under another name: the UID counts.
    let renamed = with(pod("p", 5).with_requests(cpu(3)), |pod| pod.key = nnn::PodKey::new("other", "name", "p"));
    assert!(renamed.fits_unreserved_resources(&cpu(3), [&own]));
    let same_name = pod("p", 5).with_uid("another").with_requests(cpu(3));
    assert!(!same_name.fits_unreserved_resources(&cpu(3), [&own]));
}

#[test]
fn a_node_must_fit_with_and_without_promised_pods() {
    // req: 5278-RES-2
    let nominations = [promised("other", 5, 1)];
    let judge = |with: NodeFit<&'static str>, without: NodeFit<&'static str>| {
        let calls = Cell::new(0);
        let verdict = pod("p", 5).filter_with_nominated_pods(&nominations, |running| {
            calls.set(calls.get() + 1);
            if running.is_empty() { without } else { with }
        });
        (verdict, calls.get())
    };
    let (fits, no, failed) = (|| NodeFit::Fits, || NodeFit::Rejected("no"), || NodeFit::Failed("failed"));
    assert_eq!(judge(fits(), fits()), (fits(), 2));
    // As with affinity to a pod that is only promised.
    assert_eq!(judge(fits(), no()), (no(), 2));
    assert_eq!(judge(fits(), failed()), (failed(), 2));
    assert_eq!(judge(no(), fits()), (no(), 1));
    assert_eq!(judge(failed(), fits()), (failed(), 1));
}

#[test]
fn a_higher_priority_ignores_promises_to_lower_ones() {
    // req: 5278-RES-3
    let nominations = [promised("low", 1, 4), promised("lower", 0, 4)];
    let calls = Cell::new(0);
    let verdict = pod("high", 2).filter_with_nominated_pods(&nominations, |running| {
        calls.set(calls.get() + 1);
        assert!(running.is_empty());
        NodeFit::<()>::Fits
    });
    assert_eq!((verdict, calls.get()), (NodeFit::Fits, 1));
}
