//! Errors and warnings of validation.

use dra_attrs::ErrorType;
use proptest::prelude::*;
use readiness::validate::{
    GateWarning, GateWarningKind, ValidationOptions, validate_gate_update, validate_gates, validate_requirements,
};
use readiness::{FailureAction, NodeReadinessGate, NodeReadinessRequirement};
use serde_json::{Value, from_value, json};

use super::world::{gate_a, taint, with};

/// Returns options with the limit of the KEP, or with that of the domain alone.
fn limited(domain_alone: bool) -> ValidationOptions {
    let options = ValidationOptions::default();
    if domain_alone { options.with_limit_of_domain() } else { options }
}

fn gates(list: Value) -> Vec<NodeReadinessGate> {
    from_value(list).unwrap()
}

/// Returns the field below the list and the kind of each error.
fn errors(list: &[NodeReadinessGate]) -> Vec<(String, ErrorType)> {
    let strip = |field: &str| field.strip_prefix("spec.readinessGates").unwrap().to_owned();
    validate_gates(list, &ValidationOptions::default())
        .errors
        .iter()
        .map(|error| (strip(&error.field), error.r#type))
        .collect()
}

fn only(gate: NodeReadinessGate) -> Vec<(String, ErrorType)> {
    errors(&[gate]).into_iter().map(|(field, kind)| (field.strip_prefix("[0]").unwrap().to_owned(), kind)).collect()
}

fn named(name: &str) -> NodeReadinessGate {
    NodeReadinessGate::new(name, 60).with_bypass_warning()
}

#[test]
fn the_example_of_the_kep_is_valid() {
    // req: 5233-2, 5233-12
    let config: readiness::KubeletConfiguration = from_value(super::examples::configuration()).unwrap();
    assert_eq!(config.node_readiness_gates.len(), 3);
    let report =
        validate_gates(&config.node_readiness_gates, &ValidationOptions::default().with_path("nodeReadinessGates"));
    assert!(report.is_valid() && report.warnings.is_empty(), "{report:?}");
    // Whoever writes the list, it is the same list.
    let node: readiness::GatedNode = from_value(super::examples::node()).unwrap();
    assert_eq!(node.gates, config.node_readiness_gates);
    let broken =
        validate_gates(&[NodeReadinessGate::default()], &ValidationOptions::default().with_path("nodeReadinessGates"));
    assert_eq!(broken.errors[0].to_string(), "nodeReadinessGates[0].conditionType: Required value");
}

#[test]
fn condition_types() {
    // req: 5233-3, 5233-5
    let field = ".conditionType".to_owned();
    assert_eq!(only(named("")), [(field.clone(), ErrorType::Required)]);
    for good in ["domainname.com/MyCondition", "a/b", "1.2/3", "a-b.c/D_e.f-g", "datadog.com/AgentReady"] {
        assert_eq!(only(named(good)), [], "{good}");
    }
    let long_name = format!("a.example/{}", "n".repeat(64));
    let bad = [
        "Ready",
        "MemoryPressure",
        "device.kubernetes.io/nvidia/GPUReady",
        "/Ready",
        "A.example/Ready",
        "a_b/Ready",
        "a..b/Ready",
        "-a/Ready",
        "a-/Ready",
        "a.example/-Ready",
        "a.example/Ready.",
        "a.example/Re ady",
        "ä.example/Ready",
        &long_name,
    ];
    for name in bad {
        assert_eq!(only(named(name)), [(field.clone(), ErrorType::Invalid)], "{name}");
    }
    let twice = [(field.clone(), ErrorType::Invalid), (field.clone(), ErrorType::Invalid)];
    assert_eq!(only(named("a.example/")), twice, "an empty name is malformed, too");
    assert_eq!(only(named("A/-")), twice, "both parts");
}

#[test]
fn the_length_of_a_type() {
    // req: 5233-10
    let type_of_length = |domain: usize, name: usize| {
        // Domains of parts that are short enough for every reader.
        let domain: String = "aaaaaaa.".chars().cycle().take(domain).collect::<String>().replace(".a", ".b");
        let domain = format!("{}z", &domain[..domain.len() - 1]);
        format!("{domain}/{}", "n".repeat(name))
    };
    let kinds = |name: &str, domain_alone| {
        let report = validate_gates(&[named(name)], &limited(domain_alone));
        report.errors.iter().map(|error| error.r#type).collect::<Vec<_>>()
    };
    let rows = [
        (type_of_length(174, 63), vec![], vec![]),
        (type_of_length(175, 63), vec![ErrorType::TooLong], vec![]),
        (type_of_length(236, 1), vec![], vec![]),
        (type_of_length(237, 1), vec![ErrorType::TooLong], vec![]),
        (type_of_length(238, 63), vec![ErrorType::TooLong], vec![]),
        (type_of_length(239, 1), vec![ErrorType::TooLong], vec![ErrorType::TooLong]),
        (type_of_length(10, 64), vec![ErrorType::Invalid], vec![ErrorType::Invalid]),
    ];
    for (name, strict, prefix_only) in rows {
        assert_eq!(kinds(&name, false), strict, "{} bytes", name.len());
        assert_eq!(kinds(&name, true), prefix_only, "{} bytes", name.len());
    }
    let report = validate_gates(&[named(&type_of_length(300, 1))], &ValidationOptions::default());
    assert_eq!(
        report.errors[0].to_string(),
        "spec.readinessGates[0].conditionType: Too long: may not be more than 238 bytes"
    );
    let report =
        validate_gates(&[named(&type_of_length(239, 1))], &ValidationOptions::default().with_limit_of_domain());
    assert!(report.errors[0].to_string().ends_with("Too long: the domain may not be more than 238 bytes"));
    assert_eq!("readiness-gate.".len() + 238, 253);
}

#[test]
fn a_type_is_there_once() {
    // req: 5233-4
    let report = validate_gates(&[named("a.example/Ready"), named("a.example/Ready")], &ValidationOptions::default());
    let texts: Vec<String> = report.errors.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["spec.readinessGates[1].conditionType: Duplicate value: \"a.example/Ready\""]);
    assert_eq!(errors(&[named(""), named("")]).len(), 2, "what is missing is no duplicate");
}

#[test]
fn timeouts() {
    // req: 5233-6, 5233-64
    let with = |seconds: Value| {
        gates(json!([{"conditionType": "a.example/Ready", "timeoutSeconds": seconds,
        "failureAction": "BypassWithWarning"}]))
    };
    let field = "[0].timeoutSeconds".to_owned();
    assert_eq!(errors(&with(Value::Null)), [(field.clone(), ErrorType::Required)]);
    for seconds in [0, -1, i32::MIN] {
        assert_eq!(errors(&with(json!(seconds))), [(field.clone(), ErrorType::Invalid)], "{seconds}");
    }
    let mut slow = ValidationOptions::default();
    slow.status_update_seconds = 60;
    assert_eq!([60, 120].map(|seconds| validate_gates(&with(json!(seconds)), &slow).warnings.len()), [1, 0]);
    let warnings = |seconds: i32| validate_gates(&with(json!(seconds)), &ValidationOptions::default()).warnings;
    for seconds in [1, 10, 19] {
        let kind = GateWarningKind::ShortTimeout { seconds, advised: 20 };
        let [GateWarning { field: at, kind: warned, .. }] = &warnings(seconds)[..] else { panic!("no warning") };
        assert_eq!((at.as_str(), warned), ("spec.readinessGates[0].timeoutSeconds", &kind));
    }
    assert!(warnings(20).is_empty() && warnings(i32::MAX).is_empty());
    assert!(errors(&with(json!(1))).is_empty() && errors(&with(json!(i32::MAX))).is_empty());
    assert!(from_value::<NodeReadinessGate>(json!({"timeoutSeconds": 2_147_483_648_i64})).is_err());
}

#[test]
fn failure_actions() {
    // req: 5233-7, 5233-71
    let with = |action: Value| {
        let readiness_taint = json!({"key": "a", "effect": "NoSchedule"});
        gates(json!([{"conditionType": "a.example/Ready", "timeoutSeconds": 60, "failureAction": action,
            "readinessTaint": readiness_taint}]))
    };
    for default in [Value::Null, json!(""), json!("Taint")] {
        let list = with(default);
        assert_eq!(list[0].failure_action, FailureAction::Taint);
        assert!(errors(&list).is_empty());
    }
    let absent = gates(json!([{"conditionType": "a.example/Ready", "timeoutSeconds": 60}]));
    assert_eq!(absent[0].failure_action, FailureAction::Taint);
    assert_eq!(errors(&absent), [("[0].readinessTaint".to_owned(), ErrorType::Required)], "and then it needs a taint");
    // A later action is read and written as it is, refused today, and never releases by time.
    let cordon = with(json!("Cordon"));
    assert_eq!(serde_json::to_value(&cordon[0]).unwrap()["failureAction"], "Cordon");
    assert_eq!(errors(&cordon), [("[0].failureAction".to_owned(), ErrorType::NotSupported)]);
    assert_eq!(cordon[0].releases_after(), None);
    let report = validate_gates(&with(json!("TaintNode")), &ValidationOptions::default());
    assert_eq!(
        report.errors[0].to_string(),
        "spec.readinessGates[0].failureAction: Unsupported value: \"TaintNode\": supported values: \
         \"BypassWithWarning\", \"Taint\"; did you mean \"Taint\"?"
    );
    assert_eq!(errors(&with(json!("taint"))).len(), 1, "case counts");
}

#[test]
fn the_taint_belongs_to_its_action() {
    // req: 5233-8, 5233-31
    let gate =
        |action: &str| json!({"conditionType": "a.example/Ready", "timeoutSeconds": 60, "failureAction": action});
    let field = "[0].readinessTaint".to_owned();
    assert_eq!(errors(&gates(json!([gate("Taint")]))), [(field, ErrorType::Required)]);
    assert!(errors(&gates(json!([gate("BypassWithWarning")]))).is_empty());

    let mut ignored = gate("BypassWithWarning");
    ignored["readinessTaint"] = json!({"key": "not a key", "effect": "nonsense"});
    let report = validate_gates(&gates(json!([ignored])), &ValidationOptions::default());
    assert!(report.is_valid());
    assert_eq!(
        report.warnings[0].to_string(),
        "spec.readinessGates[0].readinessTaint: ignored, since failureAction is not Taint"
    );

    let warned = |effect: &str| {
        let report =
            validate_gates(&[named("a.example/Ready").with_taint(taint("a", effect))], &ValidationOptions::default());
        assert!(report.is_valid(), "{effect}");
        report.warnings.into_iter().map(|warning| warning.kind).collect::<Vec<_>>()
    };
    assert_eq!(warned("NoSchedule"), []);
    assert_eq!(warned("NoExecute"), [GateWarningKind::Evicting]);
    assert_eq!(warned("PreferNoSchedule"), [GateWarningKind::NotBlocking]);
    // An update has the warnings of the gates that it leaves as they are, too.
    let evicting = [named("a.example/Ready").with_taint(taint("a", "NoExecute"))];
    for old in [&[] as &[NodeReadinessGate], &evicting] {
        let report = validate_gate_update(old, &evicting, &ValidationOptions::default());
        assert_eq!(report.warnings.len(), 1, "{report:?}");
    }
}

#[test]
fn taints_of_gates() {
    let with = |key: &str, value: &str, effect: &str| {
        let mut taint = taint(key, effect);
        taint.value = Some(value.to_owned());
        only(named("a.example/Ready").with_taint(taint))
    };
    let error = |field: &str, kind| vec![(format!(".readinessTaint.{field}"), kind)];
    assert_eq!(with("node.cilium.io/agent-not-ready", "", "NoSchedule"), []);
    assert_eq!(
        with("", "", "NoSchedule"),
        [error("key", ErrorType::Invalid), error("key", ErrorType::Invalid)].concat()
    );
    assert_eq!(with("a/b/c", "", "NoSchedule"), error("key", ErrorType::Invalid));
    assert_eq!(with("a", "no value", "NoSchedule"), error("value", ErrorType::Invalid));
    assert_eq!(with("a", "", ""), error("effect", ErrorType::Required));
    assert_eq!(with("a", "", "noschedule"), error("effect", ErrorType::NotSupported));
    // Those that the node lifecycle controller would remove by itself.
    let managed = ["not-ready", "unreachable", "unschedulable", "memory-pressure", "disk-pressure", "pid-pressure"];
    let managed = managed.map(|name| format!("node.kubernetes.io/{name}"));
    let others = ["node.kubernetes.io/network-unavailable", "node.cloudprovider.kubernetes.io/uninitialized"];
    for key in managed.iter().map(String::as_str).chain(others) {
        assert_eq!(with(key, "", "NoSchedule"), error("key", ErrorType::Forbidden), "{key}");
    }
    for key in ["node.kubernetes.io/mine", "x.node.cloudprovider.kubernetes.io/mine"] {
        assert_eq!(with(key, "", "NoSchedule"), [], "{key}");
    }
}

#[test]
fn problems_of_keys_and_values_in_the_api_servers_words() {
    const NAME: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                        alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                        '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    const DOMAIN: &str = "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' \
                          or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used \
                          for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
                         must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', \
                         regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    let details = |key: &str, value: &str, effect: &str| {
        let mut taint = taint(key, effect);
        taint.value = Some(value.to_owned());
        let report = validate_gates(&[named("a.example/Ready").with_taint(taint)], &ValidationOptions::default());
        report.errors.into_iter().map(|error| error.detail).collect::<Vec<_>>()
    };
    let name = format!("name part {NAME}");
    let (long, dashes) = ("a".repeat(254), "-".repeat(64));
    let rows = [
        ("", vec!["name part must be non-empty", &name]),
        ("/x", vec!["prefix part must be non-empty"]),
        ("A/-", vec![DOMAIN, &name]),
        (&dashes, vec!["name part must be no more than 63 bytes", &name]),
    ];
    for (key, expected) in rows {
        assert_eq!(details(key, "", "NoSchedule"), expected, "{key}");
    }
    assert_eq!(
        details("a/b/c", "", "NoSchedule"),
        [format!("a valid label key {NAME} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')")]
    );
    assert_eq!(details(&format!("{long}/x"), "", "NoSchedule"), ["prefix part must be no more than 253 bytes"]);
    let parts = details(&format!("{long}-/x"), "", "NoSchedule");
    assert_eq!(parts, ["prefix part must be no more than 253 bytes", DOMAIN]);
    assert_eq!(details("a", &dashes, "NoSchedule"), [format!("must be no more than 63 bytes;{VALUE}")], "in one error");
    let effects = "supported values: \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\"";
    assert_eq!(details("a", "", "noschedule"), [effects]);
}

#[test]
fn two_gates_share_a_taint_only_with_its_value() {
    let gate = |name: &str, value: &str, effect: &str| {
        let mut taint = taint("a", effect);
        taint.value = Some(value.to_owned());
        named(name).with_taint(taint)
    };
    let (first, second) = (gate("a.example/A", "x", "NoSchedule"), "a.example/B");
    assert!(errors(&[first.clone(), gate(second, "x", "NoSchedule")]).is_empty());
    assert!(errors(&[first.clone(), gate(second, "y", "NoExecute")]).is_empty());
    let conflict = [first.clone(), gate(second, "y", "NoSchedule")];
    let report = validate_gates(&conflict, &ValidationOptions::default());
    assert_eq!(
        report.errors[0].to_string(),
        "spec.readinessGates[1].readinessTaint: Duplicate value: \"a=y:NoSchedule\": taints must be unique by key and \
         effect pair"
    );
    // An entry that was stored does not excuse the new one that it conflicts with.
    let stored = [gate(second, "y", "NoSchedule")];
    assert!(!validate_gate_update(&stored, &conflict, &ValidationOptions::default()).is_valid());
    assert!(validate_gate_update(&conflict, &conflict, &ValidationOptions::default()).is_valid());
    // Nor do entries that were stored excuse a new one that agrees with one of them, wherever it stands.
    let third = gate("a.example/C", "x", "NoSchedule");
    for place in 0..=2 {
        let mut list = conflict.to_vec();
        list.insert(place, third.clone());
        let report = validate_gate_update(&conflict, &list, &ValidationOptions::default());
        assert_eq!(report.errors.len(), 1, "{:?}", report.errors);
    }
}

#[test]
fn changes_of_the_list() {
    // req: 5233-9
    let (old, new) = ([gate_a()], [named("b.example/Ready")]);
    for (old, new) in [(&old[..], &new[..]), (&new, &old), (&old, &[]), (&[], &old)] {
        assert!(validate_gate_update(old, new, &ValidationOptions::default()).is_valid());
    }
    // Every field of an entry that stays.
    let other = with(gate_a(), |gate| gate.timeout_seconds = Some(1));
    let tainting = gate_a().with_taint(taint("b", "NoExecute"));
    for new in [other, tainting, gate_a().with_bypass_warning()] {
        for (old, new) in [(&old[0], &new), (&new, &old[0])] {
            let (old, new) = (std::slice::from_ref(old), std::slice::from_ref(new));
            assert!(validate_gate_update(old, new, &ValidationOptions::default()).is_valid());
        }
    }
    // Ratcheting: what was stored stays, whatever today's rules are; a change of it has to follow them.
    let broken = named("Ready");
    let update = |old: &[NodeReadinessGate], new: &[NodeReadinessGate]| {
        validate_gate_update(old, new, &ValidationOptions::default()).errors.len()
    };
    assert_eq!(update(std::slice::from_ref(&broken), &[broken.clone(), named("a.example/Ready")]), 0);
    let mut longer = broken.clone();
    longer.timeout_seconds = Some(61);
    assert_eq!(update(std::slice::from_ref(&broken), &[longer]), 1);
    assert_eq!(update(&[], std::slice::from_ref(&broken)), 1);
    assert_eq!(update(std::slice::from_ref(&broken), &[broken.clone(), broken.clone()]), 3, "twice is new");
}

#[test]
fn a_node_may_not_weaken_its_own_gates() {
    let old = gate_a();
    let with = |change: &dyn Fn(&mut NodeReadinessGate)| {
        let mut gate = old.clone();
        change(&mut gate);
        vec![gate]
    };
    let rows: Vec<(Vec<NodeReadinessGate>, Option<&str>)> = vec![
        (vec![old.clone()], None),
        (vec![named("b.example/Ready"), old.clone()], None),
        (with(&|gate| gate.timeout_seconds = Some(4)), None),
        (vec![], Some("spec.readinessGates")),
        (with(&|gate| gate.timeout_seconds = Some(2)), Some("spec.readinessGates[0].timeoutSeconds")),
        (
            with(&|gate| gate.failure_action = FailureAction::BypassWithWarning),
            Some("spec.readinessGates[0].failureAction"),
        ),
        (
            with(&|gate| gate.readiness_taint = Some(taint("a", "PreferNoSchedule"))),
            Some("spec.readinessGates[0].readinessTaint"),
        ),
    ];
    for (new, forbidden) in rows {
        let report = validate_gate_update(std::slice::from_ref(&old), &new, &ValidationOptions::default().by_node());
        let fields: Vec<_> = report.errors.iter().map(|error| (error.field.as_str(), error.r#type)).collect();
        assert_eq!(fields, forbidden.map(|field| (field, ErrorType::Forbidden)).as_slice());
        assert!(validate_gate_update(std::slice::from_ref(&old), &new, &ValidationOptions::default()).is_valid());
    }
}

/// Returns the fields for which a change by a node is refused.
fn by_node(old: &[NodeReadinessGate], new: &[NodeReadinessGate]) -> Vec<String> {
    assert!(validate_gate_update(old, new, &ValidationOptions::default()).is_valid());
    let report = validate_gate_update(old, new, &ValidationOptions::default().by_node());
    assert!(report.errors.iter().all(|error| error.r#type == ErrorType::Forbidden), "{report:?}");
    report.errors.into_iter().map(|error| error.field).collect()
}

#[test]
fn a_node_may_not_bring_taints_after_its_registration() {
    // A gate's taint is put and removed in its name: with a taint of its choosing, a node could be rid of an administrator's.
    let taint_of = |index| vec![format!("spec.readinessGates[{index}].readinessTaint")];
    assert_eq!(by_node(&[], &[gate_a()]), taint_of(0));
    assert_eq!(by_node(&[named("b.example/Ready")], &[named("b.example/Ready"), gate_a()]), taint_of(1));
    assert_eq!(by_node(&[gate_a().with_bypass_warning()], &[gate_a()]), taint_of(0));
    let report = validate_gate_update(&[], &[gate_a()], &ValidationOptions::default().by_node());
    assert_eq!(
        report.errors[0].to_string(),
        "spec.readinessGates[0].readinessTaint: Forbidden: a node may not choose the taint of its gate \"a.example/Ready\""
    );
    assert!(by_node(&[], &[gate_a().with_bypass_warning()]).is_empty(), "ignored with this action");
    assert!(validate_gates(&[gate_a()], &ValidationOptions::default()).is_valid(), "it may at its registration");
}

#[test]
fn a_taint_that_goes_is_a_change() {
    let bare = NodeReadinessGate::new("a.example/Ready", 3);
    let required = ["spec.readinessGates[0].readinessTaint: Required value: must be set if failureAction is Taint"];
    let report = |options| validate_gate_update(&[gate_a()], std::slice::from_ref(&bare), &options);
    let errors: Vec<String> = report(ValidationOptions::default()).errors.iter().map(ToString::to_string).collect();
    assert_eq!(errors, required, "the gate is not as it was stored");
    let errors: Vec<String> =
        report(ValidationOptions::default().by_node()).errors.iter().map(ToString::to_string).collect();
    assert_eq!(errors[..1], required);
    assert!(errors[1].contains("a node may not change the taint of its gate"), "{errors:?}");
}

#[test]
fn a_node_may_not_let_time_release_what_it_never_does() {
    let cordon = with(gate_a(), |gate| gate.failure_action = FailureAction::from("Cordon"));
    assert_eq!(by_node(&[cordon.clone()], &[gate_a()]), ["spec.readinessGates[0].failureAction"]);
    assert_eq!(by_node(&[cordon], &[gate_a().with_bypass_warning()]), ["spec.readinessGates[0].failureAction"]);
    let bare = NodeReadinessGate::new("a.example/Ready", 3);
    assert_eq!(by_node(&[bare.clone()], &[gate_a()]), ["spec.readinessGates[0].readinessTaint"]);
    assert_eq!(by_node(&[bare], &[gate_a().with_bypass_warning()]), ["spec.readinessGates[0].failureAction"]);
    let endless = with(gate_a(), |gate| gate.timeout_seconds = None);
    assert_eq!(by_node(&[endless], &[gate_a()]), ["spec.readinessGates[0].timeoutSeconds"]);
    let never = with(gate_a(), |gate| gate.timeout_seconds = Some(0));
    assert_eq!(by_node(&[never], &[gate_a()]), ["spec.readinessGates[0].timeoutSeconds"]);
}

#[test]
fn the_longest_domain_of_a_label() {
    let domain = |len: usize| {
        let labels = "a".repeat(60) + ".";
        format!("{}b", labels.repeat(4).get(..len - 1).unwrap())
    };
    let longest = 253 - "readiness-gate.".len();
    assert_eq!(named(&format!("{}/Ready", domain(longest))).label_key().unwrap().find('/'), Some(253));
    let long = named(&format!("{}/Ready", domain(longest + 1))).label_key().unwrap_err();
    assert!(long.to_string().contains("no more than 253 bytes"), "{long}");
}

#[test]
fn what_is_unchanged_in_substance_passes() {
    let with_value = |gate: NodeReadinessGate| {
        let mut taint = gate.readiness_taint.clone().unwrap();
        taint.value = Some(String::new());
        with(gate, |gate| gate.readiness_taint = Some(taint))
    };
    assert!(by_node(&[gate_a()], &[with_value(gate_a())]).is_empty(), "an empty value is none");
    let broken = with(gate_a(), |gate| gate.condition_type = "Ready".to_owned());
    assert!(by_node(&[broken.clone()], &[with_value(broken)]).is_empty(), "and no change of an entry");
    // Of several gates of one type the first counts, before and after.
    let longer = with(gate_a(), |gate| gate.timeout_seconds = Some(20));
    for twice in [[gate_a(), longer.clone()], [longer.clone(), gate_a()]] {
        assert!(by_node(&twice, &twice).is_empty());
    }
    assert!(by_node(&[gate_a(), longer.clone()], &[longer.clone()]).is_empty());
    assert_eq!(by_node(&[longer, gate_a()], &[gate_a()]), ["spec.readinessGates[0].timeoutSeconds"]);
}

#[test]
fn requirements_of_pods() {
    let with = |list: Value| {
        let list: Vec<NodeReadinessRequirement> = from_value(list).unwrap();
        validate_requirements(&list, &ValidationOptions::default())
            .errors
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    let good = json!({"conditionType": "nvidia.com/GPUReady", "status": "True"});
    assert!(with(json!([good])).is_empty());
    assert_eq!(
        with(json!([good, good])),
        ["spec.nodeReadinessRequirements[1].conditionType: Duplicate value: \"nvidia.com/GPUReady\""]
    );
    assert_eq!(
        with(json!([{"conditionType": "nvidia.com/GPUReady", "status": "False"}])),
        ["spec.nodeReadinessRequirements[0].status: Unsupported value: \"False\": supported values: \"True\""]
    );
    assert_eq!(with(json!([{"conditionType": "nvidia.com/GPUReady"}])).len(), 1);
    assert_eq!(with(json!([{"conditionType": "Ready", "status": "True"}])).len(), 1);
}

#[test]
fn standard_names() {
    // req: 5233-70
    for name in ["network.kubernetes.io/CNIReady", "network.kubernetes.io/NetworkProxyReady"] {
        assert!(named(name).is_known() && named(name).is_standard() && only(named(name)).is_empty());
    }
    assert!(named("kubernetes.io/Anything").is_standard() && named("a.b.kubernetes.io/Anything").is_standard());
    assert!(!named("network.kubernetes.io/cni-configured").is_known());
    for other in ["kubernetes.io.example.com/A", "notkubernetes.io/A", "k8s.io/A"] {
        assert!(!named(other).is_standard(), "{other}");
    }
}

fn name() -> impl Strategy<Value = String> {
    let part = "[a-z0-9]([-a-z0-9]{0,8}[a-z0-9])?";
    let domain = proptest::collection::vec(part, 1..40).prop_map(|parts| parts.join("."));
    (domain, "[A-Za-z0-9]([-A-Za-z0-9_.]{0,70}[A-Za-z0-9])?").prop_map(|(domain, name)| format!("{domain}/{name}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Checks that every type which either policy accepts has a label key, and that the strict policy accepts no more types.
    #[test]
    fn accepted_types_make_label_keys(name in name()) {
        let accepts = |domain_alone| validate_gates(&[named(&name)], &limited(domain_alone)).is_valid();
        let (strict, prefix_only) = (accepts(false), accepts(true));
        prop_assert!(!strict || prefix_only);
        if let Ok(key) = named(&name).label_key() {
            let (domain, name) = key.split_once('/').unwrap();
            prop_assert!(domain.len() <= 253 && name.len() <= 63 && prefix_only);
        } else {
            prop_assert!(!prefix_only);
        }
    }

    /// Checks that every text gets an answer, and the same answer every time.
    #[test]
    fn any_text_gets_an_answer(name in ".{0,400}", key in ".{0,80}", effect in ".{0,12}", seconds: i32) {
        let gate = NodeReadinessGate::new(name, seconds).with_taint(taint(&key, &effect));
        let report = validate_gates(std::slice::from_ref(&gate), &ValidationOptions::default());
        prop_assert_eq!(&report, &validate_gates(std::slice::from_ref(&gate), &ValidationOptions::default()));
        prop_assert!(report.errors.iter().all(|error| error.field.starts_with("spec.readinessGates[0].")));
        prop_assert_eq!(report.is_valid(), report.errors.is_empty());
    }
}
