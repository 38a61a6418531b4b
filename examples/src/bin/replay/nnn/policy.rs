//! Policy of a replayed scheduler for nominations, and its gates.

use std::collections::BTreeMap;

use dra_attrs::{Component, GateSet, Profile};
use nnn::external::ClearingPolicy;
use nnn::{Behavior, NominationOptions};
use serde::Deserialize;

use crate::settings::Settings;

/// A behavior by its name, or with a rule for the nominations of pods that fit no node.
pub(super) type Policy = Settings<PolicyName, Changes>;

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PolicyName {
    #[default]
    Safe,
    Upstream,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Changes {
    #[serde(default)]
    base: PolicyName,
    #[serde(default)]
    clearing: ClearingPolicy,
}

impl PolicyName {
    fn behavior(self) -> Behavior {
        match self {
            Self::Safe => Behavior::Safe,
            Self::Upstream => Behavior::KubeScheduler,
        }
    }
}

impl Policy {
    pub(super) fn options(&self, profile: Profile, gates: GateSet) -> NominationOptions {
        let (name, clearing) = match self {
            Self::Named(name) => (name, ClearingPolicy::default()),
            Self::Changed(changes) => (&changes.base, changes.clearing),
        };
        NominationOptions::new(Component::new(profile, gates), name.behavior()).with_clearing(clearing)
    }
}

/// Reads gates by name. Gates that are not named are off.
pub(super) fn gates(named: &BTreeMap<String, bool>) -> GateSet {
    GateSet::from_names(Profile::Kep, |gate| Some(named.get(gate).copied().unwrap_or_default()))
}
