//! Tests of sets of feature gates: names, lists, metrics; and of the version of a server.

use dra_attrs::{FeatureGate, GateError, GateMetricsError, GateSet, Profile, ServerVersionError, server_minor};
use k8s_openapi::apimachinery::pkg::version::Info;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gate {
    Lists,
    Operations,
}

impl dra_attrs::internal::Sealed for Gate {}

impl FeatureGate for Gate {
    const ALL: &'static [Self] = &[Self::Lists, Self::Operations];

    fn name(self, profile: Profile) -> &'static str {
        match (self, profile) {
            (Self::Lists, _) => "DRAListTypeAttributes",
            (Self::Operations, Profile::Kep) => "DRAOptionalNodePreparation",
            (Self::Operations, _) => "DRAOptionalNodeOperations",
        }
    }

    fn is_default(self, _: Profile) -> bool {
        false
    }

    fn position(self) -> u32 {
        self as u32
    }
}

type Gates = GateSet<Gate>;

fn nearest(list: &str, profile: Profile) -> Option<&'static str> {
    match Gates::parse(list, profile) {
        Err(GateError::Unknown { nearest, .. }) => Some(nearest),
        _ => None,
    }
}

#[test]
fn the_list_of_a_real_component_is_read() {
    let list = "DRAExtendedResource=true,DRAListTypeAttributes=true,AllAlpha=false,DRADeviceTaintRules=true,\
                DynamicResourceAllocation=true,AllAlpha=true";
    let gates = Gates::parse(list, Profile::V1_37).unwrap();
    assert!(gates.has(Gate::Lists) && !gates.has(Gate::Operations));
    let without = ["DRAExtendedResource", "AllAlpha", "DRADeviceTaintRules", "DynamicResourceAllocation"];
    assert_eq!(Gates::without_effect(list, Profile::V1_37).unwrap(), without);
    assert_eq!(Gates::find("SidecarContainers", Profile::V1_37), Ok(None));
    assert!(Gates::without_effect("SidecarContainers=1", Profile::V1_37).is_err());
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

/// Gates of which the second requires the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chained {
    Base,
    Above,
    Other,
}

impl dra_attrs::internal::Sealed for Chained {}

impl FeatureGate for Chained {
    const ALL: &'static [Self] = &[Self::Base, Self::Above, Self::Other];

    fn name(self, _: Profile) -> &'static str {
        match self {
            Self::Base => "Base",
            Self::Above => "Above",
            Self::Other => "Other",
        }
    }

    fn is_default(self, _: Profile) -> bool {
        self == Self::Other
    }

    fn position(self) -> u32 {
        self as u32
    }

    fn requires(self) -> &'static [Self] {
        if self == Self::Above { &[Self::Base] } else { &[] }
    }
}

#[test]
fn a_gate_has_no_effect_without_those_that_it_requires() {
    use Chained::{Above, Base, Other};
    let above = GateSet::NONE.with_values([(Above, true)]);
    assert!(above.is_on(Above) && !above.has(Above) && !above.is_on(Base));
    let both = GateSet::NONE.with(Above);
    assert!(both.has(Above) && both.has(Base) && !both.has(Other));
    assert_eq!(both, above.with(Base));
    assert_eq!(both.without(Base), above);
    assert_eq!(both, [Above].into_iter().collect());
    assert_eq!(GateSet::<Chained>::all().iter().collect::<Vec<_>>(), [Base, Above, Other]);
    assert_eq!(GateSet::<Chained>::default().iter().collect::<Vec<_>>(), [Other]);
    assert_eq!(format!("{both:?}"), "{Base, Above}");
    let named = GateSet::<Chained>::from_names(Profile::V1_37, |name| (name != "Other").then_some(name == "Base"));
    assert_eq!(named.iter().collect::<Vec<_>>(), [Base, Other], "what is not told keeps its default");
}

#[test]
fn the_metrics_of_a_component_are_read() {
    let read = |text: &str| Gates::from_metrics(text, Profile::V1_37);
    let sample =
        |name: &str, value: &str| format!("kubernetes_feature_enabled{{name=\"{name}\",stage=\"\"}} {value}\n");
    let text = format!(
        "# HELP kubernetes_feature_enabled [BETA] a metric\n# TYPE kubernetes_feature_enabled gauge\n{}{}{}other 3\n",
        sample("DRAListTypeAttributes", "1"),
        sample("DRAOptionalNodeOperations", "0 1700000000"),
        sample("SidecarContainers", "1"),
    );
    assert_eq!(read(&text), Ok(Gates::NONE.with(Gate::Lists)));
    assert_eq!(read(&sample("SidecarContainers", "1")), Ok(Gates::NONE), "what is not listed is off");
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
fn the_minor_version_of_a_server() {
    let minor = |major: &str, minor: &str| {
        server_minor(&Info { major: major.to_owned(), minor: minor.to_owned(), ..Info::default() })
    };
    assert_eq!(minor("1", "37"), Ok(37));
    assert_eq!(minor("1", "36+"), Ok(36));
    assert_eq!(minor("2", "0"), Err(ServerVersionError::Major { major: "2".to_owned() }));
    for wrong in ["", "+", "x37", "-1", "99999999999"] {
        assert_eq!(minor("1", wrong), Err(ServerVersionError::Minor { minor: wrong.to_owned() }), "{wrong}");
    }
}
