//! What-if questions: searches with changed claims, gates or slices, limited in work and in number.

use dra_attrs::Gate;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{DeviceRequest, DeviceSelector, ResourceClaim};
use smallvec::SmallVec;

use super::refused::Refused;
use crate::search::budget::Meter;
use crate::search::context::Context;
use crate::search::request::Plan;
use crate::search::{Elision, is_possible};

/// Largest work of one what-if question.
const WORK: u64 = 20_000;

/// Largest number of what-if questions of one explanation.
const QUESTIONS: usize = 100;

/// Work of copying and reading a request or a selector, and bytes of an expression that add a unit.
const WEIGHT: usize = 4;
const BYTES_OF_UNIT: usize = 256;

/// Answers what-if questions: "could the changed claims be allocated on the node?"
pub(super) struct WhatIf<'a> {
    /// Input of the original allocation. A question may use a changed copy.
    pub(super) context: Context<'a>,
    pub(super) refused: &'a Refused<'a>,
    pub(super) node: &'a Node,
    /// Counter of the work of the explanation.
    pub(super) meter: &'a Meter<'a>,
    /// Number of what-if questions that may still be asked.
    left: usize,
}

impl<'a> WhatIf<'a> {
    pub(super) const fn new(
        context: Context<'a>,
        refused: &'a Refused<'a>,
        node: &'a Node,
        meter: &'a Meter<'a>,
    ) -> Self {
        Self { context, refused, node, meter, left: QUESTIONS }
    }

    /// Returns true if another what-if question may be asked. Callers check first, because preparing a question can
    /// cost more than asking it.
    pub(super) const fn may_ask(&self) -> bool {
        self.left > 0
    }

    /// Returns true if the claims can be allocated in `context`; `None` if the search fails or runs out of budget.
    pub(super) fn is_possible(&mut self, context: &Context<'_>, claims: &[ResourceClaim]) -> Option<bool> {
        self.left = self.left.checked_sub(1)?;
        self.meter.work(weight(claims)).ok()?;
        self.search(context, &plan_of(claims, context))
    }

    /// Returns true if the claims of the call can be allocated in `context`, which has the gates of the call.
    pub(super) fn is_possible_in(&mut self, context: &Context<'_>) -> Option<bool> {
        match self.refused.plan {
            Some(plan) => {
                self.left = self.left.checked_sub(1)?;
                self.search(context, plan)
            }
            None => self.is_possible(context, self.refused.claims),
        }
    }

    fn search(&self, context: &Context<'_>, plan: &Plan<'_>) -> Option<bool> {
        self.meter.limited(WORK, || is_possible(context, plan, self.node, self.meter))
    }

    /// Returns true if the claims of the call can be allocated once a gate is on.
    ///
    /// Where the devices were counted, only the gate of partitions is asked for: the count reads no other, and claims
    /// without an error are read alike whatever gates are on beside theirs.
    pub(super) fn is_possible_with(&mut self, gate: Gate) -> bool {
        let is_in_vain = self.refused.is_counted && gate != Gate::PartitionableDevices;
        if is_in_vain && self.context.elisions.has(Elision::GatesInVain) {
            self.pass();
            return false;
        }
        let changed = Context { gates: self.context.gates.with(gate), ..self.context };
        self.is_possible(&changed, self.refused.claims) == Some(true)
    }

    /// Counts a question whose answer is known, so that as many others may be asked as if it had been asked.
    pub(super) const fn pass(&mut self) {
        self.left = self.left.saturating_sub(1);
    }
}

/// Returns the work of copying and reading claims.
fn weight(claims: &[ResourceClaim]) -> usize {
    let selectors = |selectors: &Option<Vec<DeviceSelector>>| -> usize {
        let texts = selectors.iter().flatten().filter_map(|selector| selector.cel.as_ref());
        texts.map(|cel| WEIGHT + cel.expression.len() / BYTES_OF_UNIT).sum()
    };
    let devices = claims.iter().filter_map(|claim| claim.spec.as_ref()?.devices.as_ref());
    let requests = devices.clone().flat_map(|devices| devices.requests.iter().flatten());
    let of_request = |request: &DeviceRequest| {
        let exactly = request.exactly.as_ref().map_or(0, |exactly| selectors(&exactly.selectors));
        let list = request.first_available.iter().flatten();
        WEIGHT + exactly + list.map(|asked| WEIGHT + selectors(&asked.selectors)).sum::<usize>()
    };
    let constraints: usize = devices.map(|devices| devices.constraints.as_ref().map_or(0, Vec::len)).sum();
    requests.map(of_request).sum::<usize>() + constraints
}

/// Reads claims as the search does.
pub(super) fn plan_of<'p>(claims: &'p [ResourceClaim], context: &Context<'p>) -> Plan<'p> {
    let claims: SmallVec<[&ResourceClaim; 4]> = claims.iter().collect();
    Plan::new(&claims, context.classes, context.gates, context.profile)
}
