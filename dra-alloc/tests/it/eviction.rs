//! Eviction by device taints: rules, times, previews, conditions; and a second implementation on random clusters.

use std::collections::{BTreeMap, BTreeSet};

use dra_alloc::eviction::{EvictionCall, Evictions, RulePreview, RuleUpdate, RuleWarning, TaintIndex, evict};
use dra_alloc::pods::PodOptions;
use dra_alloc::{Component, Gate, GateSet, Profile};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{DeviceTaint, DeviceTaintRule, DeviceToleration, ResourceClaim, ResourceSlice};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::{Value, from_value, json};

use crate::oracle::random::Random;

fn options() -> PodOptions {
    PodOptions::new(Component::new(Profile::V1_37, GateSet::of(Profile::V1_37).with(Gate::WorkloadResourceClaims)))
}

fn time(second: usize) -> Value {
    json!(Timestamp::from_second(i64::try_from(second).unwrap()).unwrap())
}

/// A small cluster in which nearly everything concerns everything.
struct Cluster {
    slices: Vec<ResourceSlice>,
    rules: Vec<DeviceTaintRule>,
    claims: Vec<ResourceClaim>,
    pods: Vec<Pod>,
}

fn taint(random: &mut Random) -> Value {
    let mut taint = json!({"key": random.pick(&["a", "b"]), "value": random.pick(&["", "v"]),
        "effect": random.pick(&["NoExecute", "NoExecute", "NoExecute", "NoSchedule", "None"])});
    if random.below(5) > 0 {
        taint["timeAdded"] = time(random.below(100));
    }
    taint
}

fn toleration(random: &mut Random) -> Value {
    let mut toleration = json!({"operator": random.pick(&["Exists", "Exists", "Equal", "", "Almost"]),
        "effect": random.pick(&["NoExecute", "NoExecute", "NoExecute", "", "NoSchedule"])});
    if random.below(2) == 0 {
        toleration["key"] = json!(random.pick(&["a", "b", ""]));
    }
    if random.below(3) == 0 {
        toleration["value"] = json!(random.pick(&["", "v"]));
    }
    if random.below(3) > 0 {
        let seconds = [-5_i64, 0, 3, 40, 9_223_372_036, 9_223_372_037, i64::MAX];
        toleration["tolerationSeconds"] = json!(seconds[random.below(seconds.len())]);
    }
    toleration
}

fn list(random: &mut Random, most: usize, item: impl Fn(&mut Random) -> Value) -> Vec<Value> {
    (0..random.below(most + 1)).map(|_| item(random)).collect()
}

fn slice(random: &mut Random, index: usize) -> ResourceSlice {
    let devices =
        list(random, 3, |random| json!({"name": random.pick(&["0", "1", "2"]), "taints": list(random, 2, taint)}));
    from_value(json!({"metadata": {"name": format!("s{index}")}, "spec": {"driver": random.pick(&["x", "y"]),
        "pool": {"name": random.pick(&["p", "q"]), "generation": random.below(3), "resourceSliceCount": 1},
        "devices": devices}}))
    .unwrap()
}

fn rule(random: &mut Random, index: usize) -> DeviceTaintRule {
    let mut spec = json!({"taint": taint(random)});
    if random.below(6) > 0 {
        let mut selector = json!({});
        for (field, values) in [("driver", ["x", "y"]), ("pool", ["p", "q"]), ("device", ["0", "1"])] {
            if random.below(3) == 0 {
                selector[field] = json!(random.pick(&values));
            }
        }
        spec["deviceSelector"] = selector;
    }
    from_value(json!({"metadata": {"name": format!("r{index}"), "uid": format!("r{index}-uid")}, "spec": spec}))
        .unwrap()
}

fn claim(random: &mut Random, index: usize) -> ResourceClaim {
    let results = list(random, 3, |random| {
        json!({"request": "r", "driver": random.pick(&["x", "y"]), "pool": random.pick(&["p", "q"]),
            "device": random.pick(&["0", "1", "2", "3"]), "tolerations": list(random, 2, toleration),
            "adminAccess": random.below(4) == 0})
    });
    let pods: Vec<usize> = (0..4).filter(|_| random.below(5) > 0).collect();
    let mut consumers: Vec<Value> = pods
        .into_iter()
        .map(|pod| json!({"resource": "pods", "name": format!("p{pod}"), "uid": format!("p{pod}-uid")}))
        .collect();
    if random.below(5) == 0 {
        consumers.push(json!({"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "g-uid"}));
    }
    let allocation = (random.below(6) > 0).then(|| json!({"devices": {"results": results}}));
    let owner = format!("p{}", random.below(4));
    let owners = json!([{"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": format!("{owner}-uid"),
        "controller": true}]);
    from_value(
        json!({"metadata": {"namespace": random.pick(&["ns", "ns", "ns", "ns", "other"]), "name": format!("c{index}"),
        "ownerReferences": if random.below(2) == 0 { owners } else { json!([]) }},
        "spec": {}, "status": {"allocation": allocation, "reservedFor": consumers}}),
    )
    .unwrap()
}

fn pod(random: &mut Random, index: usize) -> Pod {
    let mut statuses = Vec::new();
    let entries: Vec<Value> = (0..random.below(4))
        .map(|entry| {
            let (name, claim) = (format!("e{entry}"), format!("c{}", random.below(4)));
            if random.below(2) == 0 {
                return json!({"name": name, "resourceClaimName": claim});
            }
            match random.below(4) {
                0 => {}
                1 => statuses.push(json!({"name": name})),
                _ => statuses.push(json!({"name": name, "resourceClaimName": claim})),
            }
            json!({"name": name, "resourceClaimTemplateName": "t"})
        })
        .collect();
    let mut status = json!({"resourceClaimStatuses": statuses});
    if random.below(4) == 0 {
        status["extendedResourceClaimStatus"] =
            json!({"resourceClaimName": format!("c{}", random.below(4)), "requestMappings": []});
    }
    let mut metadata = json!({"namespace": random.pick(&["ns", "ns", "ns", "ns", "other"]), "name": format!("p{index}"),
        "uid": format!("p{index}-uid")});
    if random.below(6) == 0 {
        metadata["deletionTimestamp"] = time(1);
    }
    let mut spec = json!({"resourceClaims": entries});
    if random.below(5) > 0 {
        spec["nodeName"] = json!("n");
    }
    if random.below(3) == 0 {
        spec["schedulingGroup"] = json!({"podGroupName": "g"});
    }
    from_value(json!({"metadata": metadata, "spec": spec, "status": status})).unwrap()
}

fn cluster(random: &mut Random) -> Cluster {
    Cluster {
        slices: (0..random.below(4)).map(|index| slice(random, index)).collect(),
        rules: (0..random.below(4)).map(|index| rule(random, index)).collect(),
        claims: (0..4).map(|index| claim(random, index)).collect(),
        pods: (0..4).map(|index| pod(random, index)).collect(),
    }
}

/// Second implementation: no index, everything looked at for every pod.
mod naive {
    use super::*;

    fn tolerated(toleration: &DeviceToleration, taint: &DeviceTaint) -> bool {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let key = text(&toleration.key);
        let value = match text(&toleration.operator).as_str() {
            "" | "Equal" => text(&toleration.value) == text(&taint.value),
            "Exists" => true,
            _ => false,
        };
        text(&toleration.effect) == "NoExecute" && (key.is_empty() || key == taint.key) && value
    }

    pub(super) fn selects(rule: &DeviceTaintRule, driver: &str, pool: &str, device: &str) -> bool {
        rule.spec.device_selector.as_ref().is_some_and(|selector| {
            selector.driver.as_deref().is_none_or(|name| name == driver)
                && selector.pool.as_deref().is_none_or(|name| name == pool)
                && selector.device.as_deref().is_none_or(|name| name == device)
        })
    }

    pub(super) fn is_current(cluster: &Cluster, slice: &ResourceSlice) -> bool {
        let pool = |slice: &ResourceSlice| (slice.spec.driver.clone(), slice.spec.pool.name.clone());
        let newest = |other: &&ResourceSlice| other.spec.pool.generation > slice.spec.pool.generation;
        !cluster.slices.iter().filter(|other| pool(other) == pool(slice)).any(|other| newest(&other))
    }

    /// Returns the time and the reasons of a claim's eviction.
    fn of_claim(cluster: &Cluster, claim: &ResourceClaim) -> Option<(Timestamp, BTreeSet<String>)> {
        let allocation = claim.status.as_ref()?.allocation.as_ref()?;
        let (mut times, mut reasons) = (Vec::new(), BTreeSet::new());
        for result in allocation.devices.as_ref()?.results.as_deref().unwrap_or_default() {
            let (driver, pool, name) = (&result.driver, &result.pool, &result.device);
            let mut taints: Vec<(String, &DeviceTaint)> = Vec::new();
            let published = cluster.slices.iter().filter(|slice| {
                (&slice.spec.driver, &slice.spec.pool.name) == (driver, pool) && is_current(cluster, slice)
            });
            let device =
                published.flat_map(|slice| slice.spec.devices.iter().flatten()).find(|device| device.name == *name);
            for (index, taint) in device.iter().flat_map(|device| device.taints.iter().flatten()).enumerate() {
                taints.push((format!("slice {driver}/{pool}/{name}#{index}"), taint));
            }
            for rule in cluster.rules.iter().filter(|rule| selects(rule, driver, pool, name)) {
                taints.push((format!("rule {}", rule.metadata.name.as_deref().unwrap()), &rule.spec.taint));
            }
            for (reason, taint) in taints.into_iter().filter(|(_, taint)| taint.effect == "NoExecute") {
                let matching: Vec<_> =
                    result.tolerations.iter().flatten().filter(|toleration| tolerated(toleration, taint)).collect();
                let mut delay = 0;
                if !matching.is_empty() {
                    if matching.iter().any(|toleration| toleration.toleration_seconds.is_none()) {
                        continue;
                    }
                    delay =
                        matching.iter().filter_map(|toleration| toleration.toleration_seconds).min().unwrap().max(0);
                }
                if delay > 9_223_372_036 {
                    continue;
                }
                reasons.insert(reason);
                times.extend(taint.time_added.as_ref().map(|added| added.0.as_second() + delay));
            }
        }
        times.into_iter().min().map(|second| (Timestamp::from_second(second).unwrap(), reasons))
    }

    /// Returns the eviction of a pod.
    pub(super) fn of_pod(cluster: &Cluster, pod: &Pod) -> Option<(Timestamp, BTreeSet<String>)> {
        let (spec, metadata) = (pod.spec.as_ref()?, &pod.metadata);
        spec.node_name.as_ref()?;
        let group = spec.scheduling_group.as_ref().and_then(|group| group.pod_group_name.clone());
        let mut named: Vec<(String, bool)> = Vec::new();
        for entry in spec.resource_claims.iter().flatten() {
            if let Some(name) = &entry.resource_claim_name {
                named.push((name.clone(), false));
                continue;
            }
            let statuses = pod.status.as_ref()?.resource_claim_statuses.iter().flatten();
            let recorded = statuses.into_iter().find(|status| status.name == entry.name);
            named.extend(recorded.and_then(|status| Some((status.resource_claim_name.clone()?, true))));
        }
        let extended = pod.status.as_ref().and_then(|status| status.extended_resource_claim_status.as_ref());
        named.extend(extended.map(|status| (status.resource_claim_name.clone(), false)));
        let mut found: Option<(Timestamp, BTreeSet<String>)> = None;
        for (name, from_template) in named {
            let is_named = |claim: &&ResourceClaim| {
                claim.metadata.name.as_ref() == Some(&name) && claim.metadata.namespace == metadata.namespace
            };
            let Some(claim) = cluster.claims.iter().find(is_named) else { continue };
            let owned =
                claim.metadata.owner_references.iter().flatten().any(|owner| Some(&owner.uid) == metadata.uid.as_ref());
            let reserved =
                claim.status.iter().flat_map(|status| status.reserved_for.iter().flatten()).any(|consumer| {
                    Some(&consumer.uid) == metadata.uid.as_ref()
                        || consumer.resource == "podgroups" && group.as_ref() == Some(&consumer.name)
                });
            if from_template && !owned || !reserved {
                continue;
            }
            if let Some((at, reasons)) = of_claim(cluster, claim) {
                let (earliest, all) = found.get_or_insert((at, BTreeSet::new()));
                *earliest = at.min(*earliest);
                all.extend(reasons);
            }
        }
        found
    }
}

/// Decisions about pods, previews of them, and a second implementation agree on random clusters.
#[test]
fn previews_are_what_happens() {
    let (mut evicted, mut staying, mut previewed) = (0, 0, 0);
    for seed in 0..2_000 {
        let mut random = Random::new(seed);
        let mut cluster = cluster(&mut random);
        let mut candidate = rule(&mut random, random_index(seed));
        let before = TaintIndex::new(&cluster.slices).with_rules(&cluster.rules);
        let preview = RulePreview::new(&candidate, &before, &cluster.claims, &cluster.pods, options());

        // The rule is written with the effect NoExecute, and replaces one of its name.
        candidate.spec.taint.effect = "NoExecute".to_owned();
        cluster.rules.retain(|rule| rule.metadata.name != candidate.metadata.name);
        cluster.rules.push(candidate.clone());
        let taints = TaintIndex::new(&cluster.slices).with_rules(&cluster.rules);
        let evictions = Evictions::new(&taints, &cluster.claims, options());
        let name = candidate.metadata.name.as_deref().unwrap();
        let mut by_candidate = Vec::new();
        for pod in &cluster.pods {
            let decided = evictions.of_pod(pod);
            let shown = decided
                .as_ref()
                .map(|eviction| (eviction.at, eviction.reasons.iter().map(ToString::to_string).collect()));
            assert_eq!(shown, naive::of_pod(&cluster, pod), "seed {seed}: {pod:?}");
            let Some(eviction) = decided else {
                staying += 1;
                continue;
            };
            evicted += 1;
            let goes = evict(pod, eviction.at).iter().any(|call| matches!(call, EvictionCall::Delete { .. }));
            if goes && eviction.is_by_rule(name, candidate.metadata.uid.as_deref().unwrap()) {
                let metadata = pod.metadata.clone();
                by_candidate.push((eviction.at, metadata.namespace.unwrap(), metadata.name.unwrap()));
            }
        }
        by_candidate.sort();
        let shown: Vec<_> = preview.pods.iter().map(|pod| (pod.at, pod.namespace.clone(), pod.name.clone())).collect();
        assert_eq!(shown, by_candidate, "seed {seed}");
        assert_eq!(preview.by_namespace().values().sum::<usize>(), preview.pods.len());
        assert_eq!(preview.by_time().values().sum::<usize>(), preview.pods.len());
        previewed += preview.pods.len();

        let current = cluster.slices.iter().filter(|slice| naive::is_current(&cluster, slice));
        let devices = current.flat_map(|slice| {
            let names = slice.spec.devices.iter().flatten().map(|device| device.name.clone());
            names.map(|name| (slice.spec.driver.clone(), slice.spec.pool.name.clone(), name))
        });
        let published = devices.filter(|(driver, pool, name)| naive::selects(&candidate, driver, pool, name)).count();
        let results = cluster.claims.iter().flat_map(dra_alloc::allocated_devices);
        let allocated =
            results.filter(|result| naive::selects(&candidate, &result.driver, &result.pool, &result.device)).count();
        assert_eq!((preview.published, preview.allocated), (published, allocated), "seed {seed}");
    }
    assert!(evicted > 1_000 && staying > 1_000 && previewed > 500, "{evicted} {staying} {previewed}");
}

/// One in four rules replaces another one.
fn random_index(seed: u64) -> usize {
    if seed.is_multiple_of(4) { 0 } else { 9 }
}

fn running(name: &str) -> Pod {
    from_value(json!({"metadata": {"namespace": "ns", "name": name, "uid": format!("{name}-uid")},
        "spec": {"nodeName": "n", "resourceClaims": [{"name": "e", "resourceClaimName": "c"}]}}))
    .unwrap()
}

fn held(devices: &[&str]) -> ResourceClaim {
    let results: Vec<Value> =
        devices.iter().map(|device| json!({"request": "r", "driver": "x", "pool": "p", "device": device})).collect();
    from_value(json!({"metadata": {"namespace": "ns", "name": "c"}, "spec": {}, "status": {
        "allocation": {"devices": {"results": results}},
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "p-uid"}, {"resource": "pods", "name": "q", "uid": "q-uid"}]}}))
    .unwrap()
}

fn rule_of(effect: &str, selector: &Value) -> DeviceTaintRule {
    from_value(json!({"metadata": {"name": "r", "uid": "r-uid", "generation": 3}, "spec": {"deviceSelector": selector,
        "taint": {"key": "k", "effect": effect, "timeAdded": time(10)}}}))
    .unwrap()
}

#[test]
fn without_the_gate_nobody_goes() {
    let (rule, claim) = (rule_of("NoExecute", &json!({})), held(&["0"]));
    let taints = TaintIndex::new([]).with_rules([&rule]);
    let off = PodOptions::new(Component::new(Profile::V1_37, GateSet::of(Profile::V1_37).without(Gate::DeviceTaints)));
    assert!(Evictions::new(&taints, [&claim], options()).of_pod(&running("p")).is_some());
    assert_eq!(Evictions::new(&taints, [&claim], off).of_pod(&running("p")), None);
}

#[test]
fn a_rule_that_is_added_again_replaces_itself() {
    let (claim, pod) = (held(&["0"]), running("p"));
    let before = rule_of("NoExecute", &json!({"driver": "x"}));
    let goes = |rules: &[&DeviceTaintRule]| {
        let taints = rules.iter().fold(TaintIndex::new([]), |taints, rule| taints.with_rules([*rule]));
        Evictions::new(&taints, [&claim], options()).of_pod(&pod).is_some()
    };
    for after in [json!({"driver": "y"}), json!({"driver": "x", "pool": "other"})] {
        let after = rule_of("NoExecute", &after);
        assert!(goes(&[&before]) && !goes(&[&before, &after]) && goes(&[&after, &before]));
    }
}

#[test]
fn the_first_of_several_devices_of_one_name_counts() {
    let slice = |name: &str, taints: Value| -> ResourceSlice {
        from_value(json!({"metadata": {"name": name}, "spec": {"driver": "x",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 2}, "devices": [{"name": "0", "taints": taints}]}}))
        .unwrap()
    };
    let ill = json!([{"key": "k", "effect": "NoExecute", "timeAdded": time(1)}]);
    let (claim, pod) = (held(&["0"]), running("p"));
    let goes =
        |slices: &[ResourceSlice]| Evictions::new(&TaintIndex::new(slices), [&claim], options()).of_pod(&pod).is_some();
    assert!(goes(&[slice("b", json!([])), slice("a", ill.clone())]));
    assert!(!goes(&[slice("b", ill), slice("a", json!([]))]));
}

#[test]
fn conditions_of_a_rule() {
    let (claim, pods) = (held(&["0", "0", "1"]), [running("p"), running("q")]);
    let slice: ResourceSlice = from_value(json!({"metadata": {"name": "s"}, "spec": {"driver": "x",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "0"}]}}))
    .unwrap();
    let none_of = "if the effect was NoExecute. This information will not be updated again. Recreate the \
                   DeviceTaintRule to trigger an update.";
    let all = json!({});
    let rows = [
        ("NoExecute", json!({"driver": "y"}), 0, "False", "NotStarted", String::new()),
        (
            "NoExecute",
            json!({"driver": "y"}),
            1,
            "False",
            "Completed",
            "1 pod evicted since starting the controller.".to_owned(),
        ),
        (
            "NoExecute",
            all.clone(),
            0,
            "True",
            "PodsPendingEviction",
            "2 pods need to be evicted in 1 namespace.".to_owned(),
        ),
        (
            "NoExecute",
            all.clone(),
            2,
            "True",
            "PodsPendingEviction",
            "2 pods need to be evicted in 1 namespace. 2 pods evicted since starting the controller.".to_owned(),
        ),
        (
            "None",
            all.clone(),
            0,
            "False",
            "NoEffect",
            format!(
                "1 published device selected. 3 allocated devices selected. 2 pods would be evicted in 1 namespace {none_of}"
            ),
        ),
        (
            "None",
            json!({"device": "9"}),
            0,
            "False",
            "NoEffect",
            format!(
                "0 published devices selected. 0 allocated devices selected. 0 pods would be evicted in 0 different namespaces {none_of}"
            ),
        ),
        ("NoSchedule", all, 0, "False", "OtherEffect", "Eviction only happens for the NoExecute effect.".to_owned()),
    ];
    let now = Timestamp::from_second(100).unwrap();
    for (effect, selector, evicted, status, reason, message) in rows {
        let mut rule = rule_of(effect, &selector);
        let taints = TaintIndex::new([&slice]);
        let preview = |rule: &DeviceTaintRule| RulePreview::new(rule, &taints, [&claim], &pods, options());
        let RuleUpdate::Write(condition) = RuleUpdate::of_rule(&rule, evicted, now, || preview(&rule)) else {
            panic!("{effect}")
        };
        assert_eq!(
            (condition.status.as_str(), condition.reason.as_str(), &condition.message),
            (status, reason, &message)
        );
        assert_eq!((condition.observed_generation, condition.last_transition_time.0), (Some(3), now));

        // Nothing is written twice, and nothing within ten seconds.
        rule.status.get_or_insert_default().conditions = Some(vec![condition]);
        let later = now + SignedDuration::from_secs(10);
        let soon = RuleUpdate::of_rule(&rule, 7, now, || panic!("nobody is counted"));
        assert_eq!(soon, RuleUpdate::Wait(later));
        assert_eq!(RuleUpdate::of_rule(&rule, evicted, later, || preview(&rule)), RuleUpdate::Unchanged);
        rule.metadata.generation = Some(4);
        assert!(matches!(RuleUpdate::of_rule(&rule, evicted, now, || preview(&rule)), RuleUpdate::Write(_)));
    }
}

#[test]
fn calls_of_an_eviction() {
    let mut pod = running("p");
    let calls = evict(&pod, Timestamp::UNIX_EPOCH);
    let [
        EvictionCall::Event { reason, .. },
        EvictionCall::SetCondition { condition },
        EvictionCall::Delete { uid, .. },
    ] = calls.as_slice()
    else {
        panic!("{calls:?}")
    };
    assert_eq!((*reason, uid.as_str()), ("DeviceTaintManagerEviction", "p-uid"));
    assert_eq!(condition.reason.as_deref(), Some("DeletionByDeviceTaintManager"));
    pod.status.get_or_insert_default().conditions = Some(vec![condition.clone()]);
    assert_eq!(evict(&pod, Timestamp::UNIX_EPOCH).len(), 2, "a condition that is there is not set again");
    pod.metadata.deletion_timestamp = from_value(time(1)).unwrap();
    assert_eq!(evict(&pod, Timestamp::UNIX_EPOCH), []);
}

#[test]
fn warnings_about_selectors() {
    let device = RuleWarning::SelectsByDeviceAlone { device: "gpu-0".to_owned() };
    let rows = [
        ("NoExecute", json!({}), Some(RuleWarning::SelectsAll)),
        ("NoSchedule", json!({}), None),
        ("NoExecute", Value::Null, None),
        ("NoExecute", json!({"device": "gpu-0"}), Some(device.clone())),
        ("None", json!({"device": "gpu-0"}), Some(device)),
        ("NoExecute", json!({"driver": "x", "device": "gpu-0"}), None),
        ("NoExecute", json!({"pool": "p"}), None),
    ];
    for (effect, selector, expected) in rows {
        assert_eq!(RuleWarning::of_rule(&rule_of(effect, &selector)), expected, "{effect} {selector}");
    }
}

#[test]
fn a_cluster_of_many_pods_is_counted_at_once() {
    let rule = rule_of("NoExecute", &json!({"driver": "x"}));
    let pods: Vec<Pod> = (0..500)
        .map(|pod| {
            from_value(json!({"metadata": {"namespace": format!("ns-{}", pod % 7), "name": format!("p{pod}"), "uid": format!("{pod}")},
                "spec": {"nodeName": "n", "resourceClaims": [{"name": "e", "resourceClaimName": format!("c{pod}")}]}}))
            .unwrap()
        })
        .collect();
    let claims: Vec<ResourceClaim> = (0..500)
        .map(|pod| {
            from_value(json!({"metadata": {"namespace": format!("ns-{}", pod % 7), "name": format!("c{pod}")}, "spec": {},
                "status": {"reservedFor": [{"resource": "pods", "name": format!("p{pod}"), "uid": format!("{pod}")}],
                    "allocation": {"devices": {"results": [{"request": "r", "driver": "x", "pool": "p", "device": "d"}]}}}}))
            .unwrap()
        })
        .collect();
    let preview = RulePreview::new(&rule, &TaintIndex::new([]), &claims, &pods, options());
    let expected: BTreeMap<String, usize> =
        (0..7).map(|index| (format!("ns-{index}"), 71 + usize::from(index < 3))).collect();
    assert!(preview.by_namespace().into_iter().eq(expected.iter().map(|(name, count)| (name.as_str(), *count))));
    assert_eq!(preview.by_time().len(), 1);
}
