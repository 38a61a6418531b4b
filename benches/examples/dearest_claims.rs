//! Looks for dear questions by climbing: a random node and claim change in one place at a time, and a change stays if the call takes
//! longer. Each call has the default budget, which is meant to end it within two seconds of processor time.
//!
//! `cargo run --release -p benches --example dearest_claims -- [CHANGES] [STARTS]`
//!
//! Printed is the dearest question of each kind: its processor time, the work that was counted, and its shape. It ends with an error if one takes
//! longer than twice the promised time.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stdout, reason = "a program for developers")]

use std::error::Error;
use std::time::Duration;

use benches::objects::{GPU, class, node};
use benches::processor_time::processor_time;
use benches::random::Random;
use dra_alloc::explain::Detail;
use dra_alloc::objective::Objective;
use dra_alloc::preemption::{Harm, Preemption, PreemptionView};
use dra_alloc::{AllocatedState, Allocator, Budget, Classes, Component, Inventory, Profile};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, from_value, json};

/// Longest time of a call: twice the time that the default budget promises.
const LONGEST: Duration = Duration::from_secs(4);

/// Fields of a question, each with its largest value.
const FIELDS: [(&str, usize); 14] = [
    ("slices", 3),
    ("devices of a slice", 63),
    ("values of near", 63),
    ("values of apart", 63),
    ("counter sets", 7),
    ("counters of a set", 15),
    ("devices are shared", 1),
    ("requests", 15),
    ("devices of a request", 7),
    ("alternatives of a request", 3),
    ("requests with a selector", 15),
    ("match near", 1),
    ("distinct apart", 1),
    ("devices in use", 9),
];

/// A question, by the values of its fields.
#[derive(Clone, Debug)]
struct Question([usize; FIELDS.len()]);

impl Question {
    fn random(random: &mut Random) -> Self {
        Self(FIELDS.map(|(_, most)| random.below(most + 1)))
    }

    /// Changes one field.
    fn changed(&self, random: &mut Random) -> Self {
        let mut question = self.clone();
        let field = random.below(FIELDS.len());
        question.0[field] = random.below(FIELDS[field].1 + 1);
        question
    }

    fn slices(&self) -> Vec<ResourceSlice> {
        let [slices, devices, near, apart, sets, counters, shared, ..] = self.0;
        let (with_sets, count) = (sets > 0, slices + 1 + usize::from(sets > 0));
        let slice = |name: String, field: &str, list: Vec<Value>| {
            let pool = json!({"name": "host-0", "generation": 1, "resourceSliceCount": count});
            let spec = json!({"driver": GPU, "nodeName": "host-0", "pool": pool, field: list});
            from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap()
        };
        let device = |number: usize| {
            let mut device = json!({"name": format!("gpu-{number}"),
                "attributes": {"near": {"int": number % (near + 1)}, "apart": {"int": number * 7 % (apart + 1)}},
                "capacity": {"memory": {"value": format!("{}Gi", 10 + number % 5)}}});
            if with_sets {
                let name = |counter: usize| format!("c{}", counter % (counters + 1));
                let uses = json!({name(number): {"value": "1"}, name(number * 3 + 1): {"value": "2"}});
                device["consumesCounters"] = json!([{"counterSet": format!("s{}", number % sets), "counters": uses}]);
            }
            if shared == 1 {
                device["allowMultipleAllocations"] = json!(true);
            }
            device
        };
        let set = |number: usize| {
            let counters = (0..=counters).map(|counter| (format!("c{counter}"), json!({"value": "3"})));
            json!({"name": format!("s{number}"), "counters": counters.collect::<serde_json::Map<_, _>>()})
        };
        let of_devices = |number: usize| {
            let list = (number * (devices + 1)..(number + 1) * (devices + 1)).map(device).collect();
            slice(format!("devices-{number}"), "devices", list)
        };
        let sets = with_sets.then(|| slice("sets".to_owned(), "sharedCounters", (0..sets).map(set).collect()));
        sets.into_iter().chain((0..=slices).map(of_devices)).collect()
    }

    fn claim(&self) -> ResourceClaim {
        let [.., shared, requests, count, alternatives, selected, near, apart, _] = self.0;
        let request = |number: usize| {
            let mut asked = json!({"deviceClassName": "gpu", "count": count + 1});
            if number < selected {
                let expression = format!("device.attributes['{GPU}'].near % 3 != {}", number % 3);
                asked["selectors"] = json!([{"cel": {"expression": expression}}]);
            }
            if shared == 1 {
                asked["capacity"] = json!({"requests": {"memory": "3Gi"}});
            }
            if alternatives == 0 {
                return json!({"name": format!("r{number}"), "exactly": asked});
            }
            let listed = (0..=alternatives).map(|alternative| {
                let mut asked = asked.clone();
                asked["name"] = json!(format!("a{alternative}"));
                asked["count"] = json!((count + 1).saturating_sub(alternative).max(1));
                asked
            });
            json!({"name": format!("r{number}"), "firstAvailable": listed.collect::<Vec<_>>()})
        };
        let attribute = |name: &str| format!("{GPU}/{name}");
        let constraints = [
            (near == 1).then(|| json!({"matchAttribute": attribute("near")})),
            (apart == 1).then(|| json!({"distinctAttribute": attribute("apart")})),
        ];
        let requests: Vec<Value> = (0..=requests).map(request).collect();
        let devices =
            json!({"requests": requests, "constraints": constraints.into_iter().flatten().collect::<Vec<_>>()});
        let metadata = json!({"namespace": "ns", "name": "claim", "uid": "claim"});
        from_value(json!({"metadata": metadata, "spec": {"devices": devices}})).unwrap()
    }

    /// Claims of pods that hold some devices, one each.
    fn held(&self) -> Vec<ResourceClaim> {
        let [.., in_use] = self.0;
        let slices = self.slices();
        let devices = slices.iter().flat_map(|slice| slice.spec.devices.iter().flatten());
        let held = devices.enumerate().filter(|(number, _)| number % 10 < in_use).map(|(number, device)| {
            let result = json!({"request": "r", "driver": GPU, "pool": "host-0", "device": device.name});
            let user = json!({"resource": "pods", "name": format!("held-{number}"), "uid": format!("held-{number}")});
            from_value(json!({
                "metadata": {"namespace": "ns", "name": format!("held-{number}"), "uid": format!("held-{number}")},
                "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
                "status": {"allocation": {"devices": {"results": [result]}}, "reservedFor": [user]},
            }))
            .unwrap()
        });
        held.collect()
    }
}

fn pod(name: &str, priority: usize, on: Option<&str>) -> Pod {
    let spec = json!({"containers": [], "priority": priority, "nodeName": on,
        "resourceClaims": [{"name": "r", "resourceClaimName": name}]});
    from_value(json!({"metadata": {"namespace": "ns", "name": name, "uid": name}, "spec": spec})).unwrap()
}

/// Kinds of questions: an allocation with all its reasons, the best devices, and the pods that would have to go.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Explained,
    Best,
    Victims,
}

/// Asks a question, and returns the time with the work that was counted.
fn ask(question: &Question, kind: Kind) -> (Duration, u64) {
    let (mut claims, claim) = (question.held(), question.claim());
    let (inventory, classes) = (Inventory::new(question.slices()), Classes::new([class("gpu", GPU)]));
    let state = AllocatedState::from_claims(&claims, Component::of(Profile::V1_37)).unwrap();
    let allocator = Allocator::new(Profile::V1_37, &inventory, &classes);
    let (objective, node) = (Objective::pack_partitions(), node(0));
    let allocator = match kind {
        Kind::Explained => allocator.with_explanation(Detail::Full),
        Kind::Best => allocator.with_objective(&objective),
        Kind::Victims => allocator,
    };
    if !matches!(kind, Kind::Victims) {
        let begin = processor_time();
        // An error ends a call early.
        let work = allocator.allocate(&state, &node, [&claim], Budget::default()).map_or(0, |verdict| verdict.work);
        return (processor_time().saturating_sub(begin), work);
    }
    let name = |claim: &ResourceClaim| claim.metadata.name.clone().unwrap_or_default();
    let pods: Vec<Pod> =
        claims.iter().enumerate().map(|(number, claim)| pod(&name(claim), number % 5, Some("host-0"))).collect();
    claims.push(claim);
    let nodes = [node];
    let view = PreemptionView::new(&nodes, &pods, &claims);
    let preemption = Preemption::new(&allocator, &state, &view, Timestamp::UNIX_EPOCH).with_harm(Harm::KubeExact);
    let (first, begin) = (pod("claim", 100, None), processor_time());
    let _ = preemption.make_room(&first, Budget::default());
    (processor_time().saturating_sub(begin), 0)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let changes = numbers.next().transpose()?.unwrap_or(60);
    let starts = numbers.next().transpose()?.unwrap_or(10);
    let mut longest = Duration::ZERO;
    for kind in [Kind::Explained, Kind::Best, Kind::Victims] {
        let mut dearest: Option<(Duration, u64, Question)> = None;
        for seed in 0..u64::try_from(starts)? {
            let random = &mut Random(seed);
            let mut question = Question::random(random);
            let (mut time, mut work) = ask(&question, kind);
            for _ in 0..changes {
                let other = question.changed(random);
                let (of_other, other_work) = ask(&other, kind);
                if of_other > time {
                    (question, time, work) = (other, of_other, other_work);
                }
            }
            if dearest.as_ref().is_none_or(|(most, ..)| time > *most) {
                dearest = Some((time, work, question));
            }
        }
        let Some((time, work, Question(values))) = dearest else { continue };
        let shape: serde_json::Map<_, _> =
            FIELDS.iter().zip(values).map(|((name, _), value)| ((*name).to_owned(), json!(value))).collect();
        println!("{}", json!({"kind": format!("{kind:?}"), "ms": time.as_millis(), "work": work, "question": shape}));
        longest = longest.max(time);
    }
    if longest > LONGEST { Err(format!("a call takes {longest:?}").into()) } else { Ok(()) }
}
