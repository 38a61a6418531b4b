//! Tests of taints: tolerations, and devices that a rule taints.

use dra_attrs::internal::release::OtherEffects;
use dra_device::internal::untolerated;
use dra_device::taint::{taint_by_rule, tolerates};
use k8s_openapi::api::resource::v1::{DeviceTaint, DeviceTaintRule, DeviceTaintSelector, DeviceToleration};

fn taint(key: &str, value: Option<&str>, effect: &str) -> DeviceTaint {
    DeviceTaint { key: key.to_owned(), value: value.map(str::to_owned), effect: effect.to_owned(), time_added: None }
}

fn toleration(key: &str, operator: &str, value: &str, effect: &str) -> DeviceToleration {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    DeviceToleration {
        key: text(key),
        operator: text(operator),
        value: text(value),
        effect: text(effect),
        toleration_seconds: None,
    }
}

#[test]
fn key_value_effect_and_operator() {
    let health = taint("health", Some("bad"), "NoSchedule");
    let rows = [
        (toleration("health", "Equal", "bad", "NoSchedule"), true),
        (toleration("health", "", "bad", "NoSchedule"), true),
        (toleration("health", "Exists", "", "NoSchedule"), true),
        (toleration("health", "Exists", "", ""), true),
        (toleration("", "Exists", "", ""), true),
        (toleration("", "Equal", "bad", ""), true),
        (toleration("", "", "", ""), false),
        (toleration("health", "Equal", "good", "NoSchedule"), false),
        (toleration("health", "Equal", "", "NoSchedule"), false),
        (toleration("power", "Exists", "", "NoSchedule"), false),
        (toleration("health", "Exists", "", "NoExecute"), false),
        (toleration("health", "Future", "bad", "NoSchedule"), false),
    ];
    for (toleration, expected) in rows {
        assert_eq!(tolerates(&toleration, &health), expected, "{toleration:?}");
    }
    // An absent value equals the empty one.
    assert!(tolerates(&toleration("health", "Equal", "", ""), &taint("health", None, "NoSchedule")));
    let empty =
        DeviceToleration { key: Some(String::new()), effect: Some(String::new()), ..toleration("", "Exists", "", "") };
    assert!(tolerates(&empty, &health), "an empty filter is no filter");
}

/// Every combination of operators, keys, values and effects of a toleration, on five taints.
#[test]
fn recorded_answers() {
    let mut lines = include_str!("golden/tolerations.txt").lines().filter(|line| !line.starts_with('#'));
    let taints: Vec<DeviceTaint> = lines.next().unwrap().split(' ').skip(1).map(taint_from_text).collect();
    let mut answers = 0;
    for line in lines {
        let [operator, key, value, effect, tolerated] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let [operator, key, value, effect] = [operator, key, value, effect].map(|text| text.trim_matches('-'));
        let toleration = toleration(key, operator, value, effect);
        let actual: String = taints.iter().map(|taint| if tolerates(&toleration, taint) { '1' } else { '0' }).collect();
        assert_eq!(actual, tolerated, "{line}");
        answers += actual.len();
    }
    assert_eq!(answers, 720);
}

/// Parses `key[=value]:effect`.
fn taint_from_text(text: &str) -> DeviceTaint {
    let (name, effect) = text.split_once(':').unwrap();
    match name.split_once('=') {
        Some((key, value)) => taint(key, Some(value), effect),
        None => taint(name, None, effect),
    }
}

#[test]
fn only_some_effects_block() {
    for (effect, blocks) in [("NoSchedule", true), ("NoExecute", true), ("None", false), ("", false), ("Future", false)]
    {
        let taint = taint("health", None, effect);
        assert_eq!(untolerated([&taint], &[], OtherEffects::Ignored).is_some(), blocks, "{effect}");
    }
}

#[test]
fn every_taint_must_be_tolerated() {
    let taints = [taint("a", None, "NoSchedule"), taint("b", None, "NoExecute")];
    let a = toleration("a", "Exists", "", "");
    let b = toleration("b", "Exists", "", "");
    assert_eq!(untolerated(&taints, std::slice::from_ref(&a), OtherEffects::Ignored), Some(&taints[1]));
    assert_eq!(untolerated(&taints, std::slice::from_ref(&b), OtherEffects::Ignored), Some(&taints[0]));
    assert_eq!(untolerated(&taints, &[b, a], OtherEffects::Ignored), None);
}

#[test]
fn a_rules_selector_is_a_conjunction() {
    let rule = |driver: Option<&str>, pool: Option<&str>, device: Option<&str>| {
        let text = |text: Option<&str>| text.map(str::to_owned);
        let mut rule = DeviceTaintRule::default();
        rule.spec.taint = taint("health", None, "NoExecute");
        rule.spec.device_selector =
            Some(DeviceTaintSelector { driver: text(driver), pool: text(pool), device: text(device) });
        rule
    };
    let rows = [
        (rule(None, None, None), true),
        (rule(Some("d"), None, None), true),
        (rule(Some("d"), Some("p"), Some("x")), true),
        (rule(Some("other"), Some("p"), Some("x")), false),
        (rule(Some("d"), Some("other"), Some("x")), false),
        (rule(Some("d"), Some("p"), Some("other")), false),
        (rule(None, Some(""), None), false),
    ];
    for (rule, selected) in rows {
        assert_eq!(taint_by_rule(&rule, "d", "p", "x").is_some(), selected, "{rule:?}");
    }
}
