//! `/metrics`: the feature gates, as components of Kubernetes show them.

use std::fmt::Write;

use dra_attrs::GateStage;
use dra_attrs::{Gate, GateSet, Profile};

/// Returns a line for each gate that the release has, with its stage and its value.
pub(crate) fn gate_metrics(gates: GateSet, profile: Profile) -> String {
    let mut text =
        "# HELP kubernetes_feature_enabled [BETA] This metric records the data about the stage and enablement of a \
                    k8s feature.\n# TYPE kubernetes_feature_enabled gauge\n"
            .to_owned();
    for gate in Gate::ALL {
        let Some(stage) = stage_label(gate.stage(profile)) else { continue };
        let (name, value) = (gate.name(profile), u8::from(gates.is_on(gate)));
        // Writing to a String can't fail.
        let _ = writeln!(text, "kubernetes_feature_enabled{{name=\"{name}\",stage=\"{stage}\"}} {value}");
    }
    text
}

const fn stage_label(stage: GateStage) -> Option<&'static str> {
    match stage {
        GateStage::Absent => None,
        GateStage::Alpha => Some("ALPHA"),
        GateStage::BetaOff | GateStage::BetaOn => Some("BETA"),
        GateStage::Stable | GateStage::Locked => Some(""),
    }
}
