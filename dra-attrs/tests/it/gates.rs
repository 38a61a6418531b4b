//! Tests of sets of feature gates: names, lists, metrics; and of the version of a server.

use dra_attrs::{Gate, GateError, GateMetricsError, GateSet, Profile, ServerVersionError};
use k8s_openapi::apimachinery::pkg::version::Info;

fn nearest(list: &str, profile: Profile) -> Option<&'static str> {
    match GateSet::parse(list, profile) {
        Err(GateError::Unknown { nearest, .. }) => Some(nearest),
        _ => None,
    }
}

#[test]
fn the_list_of_a_real_component_is_read() {
    let list = "DRAExtendedResource=true,DRAListTypeAttributes=true,AllAlpha=false,DRADeviceTaintRules=true,\
                DynamicResourceAllocation=true,AllAlpha=true";
    let gates = GateSet::parse(list, Profile::V1_37).unwrap();
    assert!(gates.has(Gate::ListTypeAttributes) && !gates.has(Gate::OptionalNodeOperations));
    assert_eq!(GateSet::find("AllAlpha", Profile::V1_37), Ok(None));
    assert_eq!(GateSet::find("SidecarContainers", Profile::V1_37), Ok(None));
    assert!(GateSet::parse("SidecarContainers=1", Profile::V1_37).is_err());
}

#[test]
fn a_name_that_nobody_has_is_an_error_with_the_nearest() {
    assert_eq!(nearest("DRAListTypeAttribute=true", Profile::V1_37), Some("DRAListTypeAttributes"));
    assert_eq!(nearest("DRADeviceTaintRule=true", Profile::V1_37), Some("DRADeviceTaintRules"));
    assert_eq!(nearest("=true", Profile::V1_37), Some("KMSv1"), "the shortest name");
    // The name of the other profile.
    assert_eq!(nearest("DRAOptionalNodePreparation=true", Profile::V1_37), Some("DRAOptionalNodeOperations"));
    assert_eq!(nearest("DRAOptionalNodeOperations=true", Profile::Kep), Some("DRAOptionalNodePreparation"));
}

#[test]
fn each_release_has_its_gates() {
    let of = |release| {
        let on = GateSet::of(release).iter();
        on.map(|gate| gate.name(release)).filter(|name| name.starts_with("DRA")).collect::<Vec<_>>()
    };
    let first = ["DRAAdminAccess", "DRAPrioritizedList", "DRAResourceClaimDeviceStatus"];
    assert_eq!((of(Profile::V1_34), of(Profile::V1_35)), (first.to_vec(), first.to_vec()));
    assert_eq!((of(Profile::V1_36).len(), of(Profile::V1_37).len()), (8, 10));
    let parse = |list, release| GateSet::parse(list, release);
    let absent = GateError::NotInRelease { gate: "DRAListTypeAttributes", profile: Profile::V1_35 };
    assert_eq!(parse("DRAListTypeAttributes=true", Profile::V1_35), Err(absent));
    let locked = GateError::Locked { gate: "DRAPrioritizedList", profile: Profile::V1_37 };
    assert_eq!(parse("DRAPrioritizedList=false", Profile::V1_37), Err(locked));
    assert!(parse("DRAPrioritizedList=true", Profile::V1_37).is_ok());
    assert!(!parse("DRAPrioritizedList=false", Profile::V1_36).unwrap().has(Gate::PrioritizedList));
}

#[test]
fn a_gate_has_no_effect_without_those_that_it_requires() {
    let (above, base) = (Gate::DeviceBindingConditions, Gate::ResourceClaimDeviceStatus);
    let alone = GateSet::NONE.with_values([(above, true)]);
    assert!(alone.is_on(above) && !alone.has(above) && !alone.is_on(base));
    let both = GateSet::NONE.with(above);
    assert!(both.has(above) && both.has(base) && !both.has(Gate::DeviceTaints));
    assert_eq!(both, alone.with(base));
    assert_eq!(both.without(base), alone);
    assert_eq!(both, [above].into_iter().collect());
    assert_eq!(GateSet::all().iter().collect::<Vec<_>>(), Gate::ALL);
    assert_eq!(format!("{both:?}"), "{DeviceBindingConditions, ResourceClaimDeviceStatus}");
    let named = GateSet::from_names(Profile::V1_35, |name| (name == "DRADeviceTaints").then_some(true));
    assert_eq!(named, GateSet::of(Profile::V1_35).with(Gate::DeviceTaints), "what is not told keeps its default");
}

#[test]
fn the_metrics_of_a_component_are_read() {
    let read = |text: &str| GateSet::from_metrics(text, Profile::V1_37);
    let sample =
        |name: &str, value: &str| format!("kubernetes_feature_enabled{{name=\"{name}\",stage=\"\"}} {value}\n");
    let text = format!(
        "# HELP kubernetes_feature_enabled [BETA] a metric\n# TYPE kubernetes_feature_enabled gauge\n{}{}{}other 3\n",
        sample("DRAListTypeAttributes", "1"),
        sample("DRAOptionalNodeOperations", "0 1700000000"),
        sample("SidecarContainers", "1"),
    );
    assert_eq!(read(&text), Ok(GateSet::NONE.with(Gate::ListTypeAttributes)));
    assert_eq!(read(&sample("SidecarContainers", "1")), Ok(GateSet::NONE), "what is not listed is off");
    assert_eq!(read("kubernetes_feature_enabled{stage=\"\", name=\"DRAListTypeAttributes\"} 1"), read(&text));
    for none in ["", "up 1", "kubernetes_feature_enabled_total{name=\"DRAListTypeAttributes\"} 1"] {
        assert_eq!(read(none), Err(GateMetricsError::Missing), "{none}");
    }
    for malformed in [
        "kubernetes_feature_enabled 1",
        "kubernetes_feature_enabled{name=\"a\"}",
        "kubernetes_feature_enabled{name=\"a\"} 2",
        "kubernetes_feature_enabled{name=\"a\"} NaN",
        "kubernetes_feature_enabled{name=a} 1",
        "kubernetes_feature_enabled{name=\"a\" 1",
        "kubernetes_feature_enabled{stage=\"\"} 1",
    ] {
        assert_eq!(read(&format!("up 1\n{malformed}")), Err(GateMetricsError::Malformed { line: 2 }), "{malformed}");
    }
}

#[test]
fn the_release_of_a_server() {
    let minor = |major: &str, minor: &str| {
        Profile::of_server(&Info { major: major.to_owned(), minor: minor.to_owned(), ..Info::default() })
    };
    assert_eq!(minor("1", "37"), Ok(Profile::V1_37));
    assert_eq!(minor("1", "36+"), Ok(Profile::V1_36));
    assert_eq!((minor("1", "20"), minor("1", "99")), (Ok(Profile::V1_34), Ok(Profile::V1_37)));
    let emulating = |text: &str| Info {
        major: "1".to_owned(),
        minor: "37".to_owned(),
        emulation_major: Some("1".to_owned()),
        emulation_minor: Some(text.to_owned()),
        ..Info::default()
    };
    assert_eq!(Profile::of_server(&emulating("35")), Ok(Profile::V1_35));
    assert_eq!(minor("2", "0"), Err(ServerVersionError::Major { major: "2".to_owned() }));
    for wrong in ["", "+", "x37", "-1", "99999999999"] {
        assert_eq!(minor("1", wrong), Err(ServerVersionError::Minor { minor: wrong.to_owned() }), "{wrong}");
    }
}

#[test]
fn the_gates_that_are_on_choose_the_variant_of_the_allocator() {
    let chosen = |profile: Profile, gates| profile.rules().allocator.variant(gates).name;
    let rows = [
        (Profile::V1_34, "stable", "incubating", "experimental"),
        (Profile::V1_35, "stable", "incubating", "incubating"),
        (Profile::V1_36, "stable", "stable", "incubating"),
        (Profile::V1_37, "complete", "complete", "complete"),
    ];
    for (profile, without, with_taints, by_default) in rows {
        let found = [GateSet::NONE, GateSet::NONE.with(Gate::DeviceTaints), GateSet::of(profile)];
        assert_eq!(found.map(|gates| chosen(profile, gates)), [without, with_taints, by_default], "{profile}");
    }
    let all = GateSet::all();
    assert_eq!((chosen(Profile::V1_35, all), chosen(Profile::V1_36, all)), ("experimental", "incubating"));
}
