//! Gates by their names in Kubernetes 1.37, as a driver reads and shows them.

use std::collections::BTreeSet;

use dra_alloc::{Gate, GateSet, Profile};

use crate::refusal::Refusal;

/// Reads gates from a field with their names.
pub(super) fn gates(field: &str, names: &[String]) -> Result<Vec<Gate>, Refusal> {
    let gate = |name: &String| {
        let found = GateSet::find(name, Profile::V1_37).map_err(|error| Refusal::field(field, error.to_string()));
        found.map(Option::into_iter)
    };
    let found: Vec<_> = names.iter().map(gate).collect::<Result<_, _>>()?;
    Ok(found.into_iter().flatten().collect())
}

pub(super) fn names(gates: &BTreeSet<Gate>) -> Vec<&'static str> {
    let mut names: Vec<&str> = gates.iter().map(|gate| gate.name(Profile::V1_37)).collect();
    names.sort_unstable();
    names
}
