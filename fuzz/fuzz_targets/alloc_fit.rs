//! Reads pods and nodes as JSON, takes them into a memory in any order, and judges: nothing panics, and what a memory has counted is
//! gone with its pods.
#![no_main]

use dra_alloc::Classes;
use dra_alloc::fit::{Allocatable, PodNeeds, UnjudgedRule, check_scheduling_gates};
use k8s_openapi::api::core::v1::{Node, Pod};
use libfuzzer_sys::fuzz_target;
use nnn::PodKey;
use nnn::memory::{BindingAnswer, NodeUsage, NominationAnswer, PodMemory};

const ANSWERS: [BindingAnswer; 3] = [BindingAnswer::Stored, BindingAnswer::Refused, BindingAnswer::Lost];

// A document is a node or a pod, after one byte that says what happens to it.
fuzz_target!(|bytes: &[u8]| {
    let (mut memory, mut nodes) = (PodMemory::default(), Vec::<Node>::new());
    for document in bytes.split(|byte| *byte == b'\n').take(64) {
        let Some((step, document)) = document.split_first() else { continue };
        if let Ok(pod) = serde_json::from_slice::<Pod>(document) {
            take(&mut memory, *step, pod, &nodes);
        }
        if let Ok(node) = serde_json::from_slice::<Node>(document) {
            nodes.push(node);
        }
    }
    let keys: Vec<PodKey> = memory.pods().filter_map(|(pod, _)| key_of(pod)).collect();
    assert!(keys.windows(2).all(|pair| (&pair[0].namespace, &pair[0].name) < (&pair[1].namespace, &pair[1].name)));
    let used = memory.take_changed_nodes();
    keys.iter().for_each(|key| assert!(memory.observe_deleted(key)));
    assert_eq!((memory.pods().count(), memory.in_doubt().count()), (0, 0), "something leaks");
    assert!(used.iter().all(|node| *memory.usage(node) == NodeUsage::default()), "something leaks");
});

fn take(memory: &mut PodMemory, step: u8, pod: Pod, nodes: &[Node]) {
    let uid = pod.metadata.uid.clone().unwrap_or_default();
    let node = nodes.get(usize::from(step) % nodes.len().max(1));
    let name = node.and_then(|node| node.metadata.name.clone()).unwrap_or_default();
    let _ = (check_scheduling_gates(&pod), UnjudgedRule::of_pod(&pod));
    if let (Ok(needs), Some(node)) = (PodNeeds::new(&pod), node)
        && let Ok(has) = Allocatable::new(node)
    {
        let misfits = needs.misfits(node, &has, &memory.usage_for(&pod, &name), &Classes::default());
        assert!(misfits.iter().all(|misfit| !misfit.to_string().is_empty()));
        let _ = memory.assume(&uid, &name, needs.usage().clone());
    }
    memory.answer_binding(&uid, ANSWERS[usize::from(step) % ANSWERS.len()]);
    let _ = match step % 8 {
        0 => memory.nominate(&uid, Some(&name)),
        1 => memory.nominate(&uid, None),
        2 => memory.answer_nomination(&uid, NominationAnswer::Stored { version: &name }),
        3 => memory.answer_nomination(&uid, NominationAnswer::Lost),
        4 => memory.replace([pod], Some(&name)),
        5 => memory.settle(pod).map(drop),
        6 => memory.forget_assumed(&uid).map(drop),
        _ => memory.observe(pod).map(drop),
    };
}

fn key_of(pod: &Pod) -> Option<PodKey> {
    let metadata = &pod.metadata;
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    Some(PodKey::new(namespace, metadata.name.as_deref()?, metadata.uid.as_deref()?))
}
