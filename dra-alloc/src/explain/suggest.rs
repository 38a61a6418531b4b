//! Suggestions: changes of gates, claims or other allocations, each verified by a search.

use dra_attrs::{Gate, GateName, Index};
use k8s_openapi::api::resource::v1::{DeviceClaim, DeviceToleration, ResourceClaim};

use super::stage::Stage;
use super::what_if::WhatIf;
use super::{Cause, ConstraintName, DeviceRejection, Reason, RequestName, Suggestion};
use crate::cluster::state::AllocatedState;
use crate::search::context::Context;

/// Returns the changes with which the allocation succeeds, the smallest first.
pub(super) fn suggestions(what_if: &mut WhatIf<'_>, reasons: &[Reason]) -> Vec<Suggestion> {
    let (context, claims) = (what_if.context, what_if.refused.claims);
    let mut found = Vec::new();
    for suggestion in candidates(reasons) {
        if !what_if.may_ask() {
            break;
        }
        if found.contains(&suggestion) {
            continue;
        }
        let mut changed = claims.to_vec();
        apply(&suggestion, &mut changed);
        if what_if.is_possible(&context, &changed) == Some(true) {
            found.push(suggestion);
        }
    }
    found.extend(gates(what_if));
    if found.is_empty() && leaves(reasons).any(is_used_up) {
        let nothing = AllocatedState::default();
        let free = Context { state: &nothing, ..context };
        if what_if.is_possible_in(&free) == Some(true) {
            found.push(Suggestion::Release);
        }
    }
    found
}

/// Returns the feature gates with which the allocation would succeed, each with the gates that it requires.
pub(super) fn gates(what_if: &mut WhatIf<'_>) -> Vec<Suggestion> {
    let context = what_if.context;
    let off = Gate::ALL.iter().filter(|gate| gate.concerns_allocation() && !context.gates.has(**gate));
    let helps = off.filter(|gate| what_if.is_possible_with(**gate));
    let named = helps.map(|gate| {
        let gates = std::iter::once(gate).chain(gate.requires());
        Suggestion::Gates { gates: gates.map(|gate| GateName::new(*gate, context.profile)).collect() }
    });
    named.collect()
}

fn is_used_up(cause: &Cause) -> bool {
    let Cause::Devices { rejection, .. } = cause else { return true };
    matches!(Stage::of(rejection), Stage::Held | Stage::UsedUp)
}

fn leaves<'r>(reasons: &'r [Reason]) -> Box<dyn Iterator<Item = &'r Cause> + 'r> {
    Box::new(reasons.iter().flat_map(|reason| std::iter::once(&reason.cause).chain(leaves(&reason.because))))
}

/// Returns the changes of claims that could remove the reasons, not yet verified.
fn candidates(reasons: &[Reason]) -> Vec<Suggestion> {
    let mut found = Vec::new();
    let mut requests = Vec::new();
    collect_requests(reasons, &mut requests);
    for (at, reason) in requests {
        let Cause::Request { wanted, usable, .. } = &reason.cause else { continue };
        for cause in leaves(&reason.because) {
            if let Cause::Devices { rejection: DeviceRejection::Tainted { taint }, .. } = cause {
                found.push(Suggestion::Tolerate { at: at.clone(), taint: taint.clone() });
            }
        }
        if *usable > 0 && wanted.is_some_and(|wanted| u64::try_from(*usable).is_ok_and(|usable| usable < wanted)) {
            found.push(Suggestion::Fewer { at: at.clone(), count: *usable });
        }
    }
    for cause in leaves(reasons) {
        if let Cause::Together { constraints, .. } = cause {
            found.extend(constraints.iter().map(|at| Suggestion::WithoutConstraint { at: at.clone() }));
        }
    }
    found
}

fn collect_requests<'r>(reasons: &'r [Reason], found: &mut Vec<(&'r RequestName, &'r Reason)>) {
    for reason in reasons {
        if let Cause::Request { at, .. } = &reason.cause {
            found.push((at, reason));
        }
        collect_requests(&reason.because, found);
    }
}

fn apply(suggestion: &Suggestion, claims: &mut [ResourceClaim]) {
    match suggestion {
        Suggestion::Tolerate { at, taint } => {
            change(claims, at, |asked| asked.tolerations.get_or_insert_default().push(taint.toleration()));
        }
        Suggestion::Fewer { at, count } => {
            change(claims, at, |asked| *asked.count = i64::try_from(*count).ok());
        }
        Suggestion::WithoutConstraint { at } => remove_constraint(claims, at),
        Suggestion::Gates { .. } | Suggestion::Release => {}
    }
}

/// Fields of a request or subrequest that a suggestion can change.
struct Asked<'a> {
    tolerations: &'a mut Option<Vec<DeviceToleration>>,
    count: &'a mut Option<i64>,
}

fn change(claims: &mut [ResourceClaim], at: &RequestName, change: impl Fn(Asked<'_>)) {
    let requests = devices_of(claims, at.claim.index).and_then(|devices| devices.requests.as_mut());
    for request in requests.into_iter().flatten().filter(|request| request.name == at.request) {
        match &at.subrequest {
            None => {
                if let Some(exactly) = &mut request.exactly {
                    change(Asked { tolerations: &mut exactly.tolerations, count: &mut exactly.count });
                }
            }
            Some(name) => {
                for sub in request.first_available.iter_mut().flatten().filter(|sub| sub.name == *name) {
                    change(Asked { tolerations: &mut sub.tolerations, count: &mut sub.count });
                }
            }
        }
    }
}

fn remove_constraint(claims: &mut [ResourceClaim], at: &ConstraintName) {
    let constraints = devices_of(claims, at.claim.index).and_then(|devices| devices.constraints.as_mut());
    let index = usize::from(at.index);
    if let Some(constraints) = constraints.filter(|constraints| index < constraints.len()) {
        constraints.remove(index);
    }
}

/// Returns the `devices` part of a claim's spec.
fn devices_of(claims: &mut [ResourceClaim], claim: Index<ResourceClaim>) -> Option<&mut DeviceClaim> {
    claims.get_mut(usize::from(claim))?.spec.as_mut()?.devices.as_mut()
}
