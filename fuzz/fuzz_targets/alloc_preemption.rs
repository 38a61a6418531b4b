//! Arbitrary clusters in which a pod asks for room, alone and with two others as a gang, with and without a check of nodes: nothing
//! panics, one question has one answer, and victims are pods of the cluster that do not ask.
#![no_main]

use std::num::NonZeroUsize;

use dra_alloc::pods::FitQuestion;
use dra_alloc::preemption::{
    BudgetPolicy, Harm, InMemoryPlace, InMemoryStage, PreemptingGang, PreemptingMember, Preemption, PreemptionAnswer,
    PreemptionView,
};
use dra_alloc::{AllocatedState, Allocator, Budget, Classes, Component, Inventory, Profile};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use k8s_openapi::jiff::Timestamp;
use libfuzzer_sys::fuzz_target;

type Input = (
    (Pod, Vec<Node>, Vec<Pod>, Vec<ResourceClaim>),
    (Vec<ResourceSlice>, Vec<DeviceClass>, Vec<PodDisruptionBudget>, Vec<PodGroup>),
);

const RULES: [(Harm, BudgetPolicy); 4] = [
    (Harm::Kube, BudgetPolicy::LastResort),
    (Harm::KubeExact, BudgetPolicy::LastResort),
    (Harm::KubeExact, BudgetPolicy::Never),
    (Harm::Cost, BudgetPolicy::Ignore),
];

fuzz_target!(|text: &[u8]| {
    let Ok(((pod, nodes, pods, claims), (slices, classes, budgets, groups))) = serde_json::from_slice::<Input>(text)
    else {
        return;
    };
    let scheduler = Component::of(Profile::V1_37);
    let (inventory, classes) = (Inventory::new(slices), Classes::new(classes));
    let allocator = Allocator::new(scheduler, &inventory, &classes);
    let Ok(state) = AllocatedState::from_claims(&claims, scheduler) else { return };
    let in_memory = pods.iter().take(1).filter_map(|pod| {
        let (uid, node) = (pod.metadata.uid.as_deref()?, nodes.first()?.metadata.name.as_deref()?);
        Some(InMemoryPlace { uid, node, stage: InMemoryStage::PreBind })
    });
    let view = PreemptionView::new(&nodes, &pods, &claims)
        .with_budgets(&budgets)
        .with_groups(&groups)
        .with_in_memory(in_memory);
    // A node takes one pod of the gang, once two others are gone.
    let fit = |question: &FitQuestion<'_>| match (question.placed_here().count(), question.gone().len()) {
        (0, 2..) => Ok(()),
        _ => Err("too many pods".to_owned()),
    };
    let members = || std::iter::once(&pod).chain(pods.iter().take(2));
    let gang = PreemptingGang::new(members().map(PreemptingMember::new));
    let pair = gang.clone().with_quorum(NonZeroUsize::MIN.saturating_add(1));
    let name = |pod: &Pod| pod.metadata.name.clone().unwrap_or_default();
    let budget = Budget::work(2_000).with_work_per_call(20_000);
    for (harm, policy) in RULES {
        let preemption = Preemption::new(&allocator, &state, &view, Timestamp::UNIX_EPOCH);
        let preemption = preemption.with_harm(harm).with_budget_policy(policy);
        for preemption in [preemption.clone(), preemption.with_fit(&fit)] {
            let ask = || preemption.make_room(&pod, budget);
            let answer = ask();
            assert_eq!(answer, ask(), "one answer to one question");
            if let Ok(PreemptionAnswer::Room(room)) = answer {
                let is_named = |victim: &str| pods.iter().any(|pod| name(pod) == victim);
                assert!(room.victims.iter().all(|victim| is_named(&victim.name)));
            }
            for gang in [&gang, &pair] {
                let ask = || preemption.make_room_for_gang(gang, budget);
                let answer = ask();
                assert_eq!(answer, ask(), "one answer to one question");
                if let Ok(PreemptionAnswer::Room(room)) = answer {
                    assert!(room.places.len() >= gang.quorum().min(gang.members().len()));
                    let asks = |uid: &str| members().any(|pod| pod.metadata.uid.as_deref() == Some(uid));
                    assert!(room.victims.iter().all(|victim| victim.uid.is_empty() || !asks(&victim.uid)));
                }
            }
        }
    }
});
