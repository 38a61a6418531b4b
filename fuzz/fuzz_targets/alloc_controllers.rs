//! Arbitrary pods, claims, slices, rules and templates: nothing panics, a preview is what happens, a claim is cleaned once,
//! the controller comes to an end, and a template is ready for itself.
#![no_main]

use dra_alloc::autoscaler::{Departure, NodeCopy, NodeUtilization, PoolReadiness, TemplateRules, release};
use dra_alloc::claim_controller::{ClaimController, ControllerCall, ControllerResponse, QueueKey, SyncStep};
use dra_alloc::eviction::{Evictions, RulePreview, RuleUpdate, RuleWarning, TaintIndex, evict};
use dra_alloc::pods::PodOptions;
use dra_alloc::{Gate, GateSet, Profile};
use dra_attrs::Component;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice};
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use k8s_openapi::jiff::Timestamp;
use libfuzzer_sys::fuzz_target;

type Input = (
    Vec<Pod>,
    Vec<ResourceClaim>,
    Vec<ResourceSlice>,
    Vec<DeviceTaintRule>,
    (Vec<ResourceClaimTemplate>, Vec<PodGroup>),
);

fn options() -> PodOptions {
    PodOptions::new(Component::new(Profile::V1_37, GateSet::of(Profile::V1_37).with(Gate::WorkloadResourceClaims)))
}

/// Every rule in turn: its preview counts the pods that go because of it once it is written.
fn evictions(pods: &[Pod], claims: &[ResourceClaim], slices: &[ResourceSlice], rules: &[DeviceTaintRule]) {
    let taints = TaintIndex::new(slices).with_rules(rules);
    for rule in rules.iter().take(4) {
        let _ = RuleWarning::of_rule(rule);
        let preview = RulePreview::new(rule, &taints, claims, pods, options());
        let mut written = rule.clone();
        written.spec.taint.effect = "NoExecute".to_owned();
        let taints = taints.clone().with_rules([&written]);
        let evictions = Evictions::new(&taints, claims, options());
        let (name, uid) = (rule.metadata.name.as_deref(), rule.metadata.uid.as_deref());
        let goes = |pod: &&Pod| {
            let eviction = evictions.of_pod(pod);
            let is_by_rule =
                eviction.is_some_and(|eviction| eviction.is_by_rule(name.unwrap_or_default(), uid.unwrap_or_default()));
            is_by_rule && !evict(pod, Timestamp::UNIX_EPOCH).is_empty()
        };
        assert_eq!(preview.pods.len(), pods.iter().filter(goes).count());
        let mut rule = rule.clone();
        if let RuleUpdate::Write(condition) = RuleUpdate::of_rule(&rule, 1, Timestamp::UNIX_EPOCH, || preview.clone()) {
            rule.status.get_or_insert_default().conditions = Some(vec![condition]);
            let again = RuleUpdate::of_rule(&rule, 1, Timestamp::UNIX_EPOCH, || preview);
            assert!(!matches!(again, RuleUpdate::Write(_)), "a condition is written once");
        }
    }
}

/// Works on a key to its end; claims that are made are shown.
fn work(controller: &mut ClaimController, key: &QueueKey, budget: usize) {
    let mut sync = controller.sync(key);
    for made in 0..budget {
        let SyncStep::Call(call) = sync.next_step() else { return };
        let answer = match call {
            ControllerCall::CreateClaim { mut claim } => {
                claim.metadata.name = Some(format!("{key}-{made}"));
                controller.observe_claim(claim.clone());
                ControllerResponse::Claim(claim)
            }
            ControllerCall::Update { claim } | ControllerCall::UpdateStatus { claim } => {
                ControllerResponse::Claim(claim)
            }
            ControllerCall::GetConsumer { consumer, .. } => {
                ControllerResponse::Consumer((consumer.uid.len() % 2 == 0).then_some(consumer.uid))
            }
            _ => ControllerResponse::Done,
        };
        sync.answer(answer);
    }
    panic!("{key}: no end");
}

fuzz_target!(|text: &[u8]| {
    let Ok((pods, claims, slices, rules, (templates, groups))) = serde_json::from_slice::<Input>(text) else { return };
    evictions(&pods, &claims, &slices, &rules);

    let mut controller = ClaimController::new(options());
    let mut keys: Vec<QueueKey> = Vec::new();
    keys.extend(claims.iter().flat_map(|claim| controller.observe_claim(claim.clone())));
    keys.extend(templates.into_iter().flat_map(|template| controller.observe_template(template)));
    keys.extend(groups.into_iter().flat_map(|group| controller.observe_pod_group(group)));
    keys.extend(pods.iter().flat_map(|pod| controller.observe_pod(pod.clone())));
    keys.extend(pods.iter().take(2).flat_map(|pod| controller.observe_pod_deleted(pod)));
    keys.iter().take(64).for_each(|key| work(&mut controller, key, text.len() + 8));

    let _ = release(&pods, &claims, Departure::Removed);
    let _ = release(&pods, &claims, Departure::Unscheduled);
    let _ = NodeUtilization::of_node(&slices, &claims).map(|used| used.highest().map(|(_, used)| used.billionths()));
    let copy = NodeCopy::new("n", "t", "1");
    if let Ok(template) = copy.slices(&slices, TemplateRules::default().with_counted_slices()) {
        assert!(PoolReadiness::of_node(&template.slices, &template.slices).is_ready());
        if let [old, new, ..] = pods.as_slice() {
            let _ = copy.claims(old, new, &claims, &template.old_pools);
        }
    }
});
