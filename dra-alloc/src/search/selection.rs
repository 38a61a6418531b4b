//! Selection: whether the selectors of an alternative admit a device, and whether it is for the node.
//!
//! Selectors are evaluated in their order up to the first that is false, those of the class first. Those with a direct form come to
//! an answer without anything else; an error, or an expression that needs the interpreter, takes the longer way.

use std::sync::Arc;

use dra_attrs::{Gate, Index};
use dra_selector::internal::{Bound, Searched};
use dra_selector::{EvaluationError, Selector, SelectorInput};

use super::allocate_error::AllocateError;
use super::candidates::Candidate;
use super::context::FailingSelectors;
use super::elisions::Elision;
use super::ix::{AlternativeIx, DeviceIx, PoolIx, SelectorIx};
use super::known_results::{Known, KnownResults};
use super::request::Alternative;
use super::table::{Selection, Table};
use crate::cluster::expression::{Expression, Owner};
use crate::cluster::inventory::device::first_list;
use crate::cluster::inventory::is_for_one_node;
use crate::cluster::inventory::pool_selections::{KeptSelections, SelectorsAnswer};
use crate::cluster::inventory::view::SliceError;
use crate::cluster::scope::Scope;

/// Number of comparisons of a node with a device's selector that are a unit of work.
const COMPARISONS_OF_UNIT: usize = 8;

impl<'s> Table<'s> {
    /// Checks a device for an alternative, without keeping the result.
    pub(super) fn select(&self, alternative: AlternativeIx, device: DeviceIx) -> Result<Selection, AllocateError> {
        let candidate = self.candidate(device);
        let conditions = candidate.device.binding_conditions.as_ref();
        if !self.has(Gate::DeviceBindingConditions) && conditions.is_some_and(|conditions| !conditions.is_empty()) {
            return Ok(Selection::BindingConditionsOff);
        }
        if let Some(position) = self.refusing(alternative, candidate, device)? {
            return Ok(Selection::Selector(u32::try_from(usize::from(position)).unwrap_or(u32::MAX)));
        }
        if candidate.slice.spec.per_device_node_selection != Some(true) {
            return Ok(Selection::Admitted);
        }
        let scope = Scope::from_device(candidate.device);
        self.meter.add(scope.weight() / COMPARISONS_OF_UNIT);
        match scope.matches(self.node) {
            Ok(true) => Ok(Selection::Admitted),
            Ok(false) => Ok(Selection::OtherNode),
            Err(error) => Err(SliceError { slice: candidate.slice, device: Some(candidate.device), error }.into()),
        }
    }

    /// Returns the position of the first selector that is false for a device.
    fn refusing(
        &self,
        alternative: AlternativeIx,
        candidate: Candidate<'_>,
        device: DeviceIx,
    ) -> Result<Option<SelectorIx>, AllocateError> {
        self.meter.begin_look();
        let SelectorsAnswer { held, is_refused } = self.directly(alternative, candidate);
        if is_refused {
            return Ok(Some(SelectorIx::from(held)));
        }
        let asked = self.alternative(alternative);
        for (number, selector) in asked.selectors().enumerate().skip(held) {
            let position = SelectorIx::from(number);
            let holds = match self.holds(asked, position, selector, device) {
                Err(AllocateError::SelectorEvaluation { source, .. })
                    if self.context.failing == FailingSelectors::PassOver && source != EvaluationError::Interrupted =>
                {
                    false
                }
                holds => holds?,
            };
            if !holds {
                return Ok(Some(position));
            }
        }
        Ok(None)
    }

    /// Evaluates the first selectors, as far as they have a direct form that answers: the common case, which makes no error on
    /// its way. An answer that the pool has kept is the same, and the same work.
    fn directly(&self, alternative: AlternativeIx, candidate: Candidate<'_>) -> SelectorsAnswer {
        if !self.can_read(candidate) {
            return SelectorsAnswer::default();
        }
        let (asked, by) = (self.alternative(alternative), self.context.selectors);
        // The driver alone is read faster than what was kept.
        let is_kept = !asked.reads_driver_alone(by) && self.context.elisions.has(Elision::KeptSelections);
        let kept = if is_kept { self.kept_selections(alternative, candidate.pool) } else { None };
        if let Some((answer, parts)) = kept.and_then(|kept| kept.answer(candidate.number()))
            && self.meter.may_count_parts(parts)
        {
            return answer;
        }
        let compiled = asked.compiled(by).unwrap_or_default();
        let found = self.evaluate_directly(compiled, candidate);
        if let Some(kept) = kept
            && (found.is_refused || found.held == compiled.len())
        {
            kept.keep(candidate.number(), found);
        }
        found
    }

    /// Returns the answers about devices of a pool that are kept for an alternative.
    fn kept_selections(&self, alternative: AlternativeIx, pool: PoolIx) -> Option<&'s KeptSelections> {
        if let Some((for_alternative, of_pool, kept)) = self.kept_selections.get()
            && (for_alternative, of_pool) == (alternative, pool)
        {
            return kept;
        }
        let (asked, of_pool) = (self.alternative(alternative), self.candidates.pool(pool));
        let by = self.context.selectors;
        let of = |all| of_pool.selections().of(all, by.attributes(), of_pool.len());
        let kept = asked.compiled(by).and_then(of);
        self.kept_selections.set(Some((alternative, pool, kept)));
        kept
    }

    fn evaluate_directly(&self, compiled: &[Arc<Selector>], candidate: Candidate<'_>) -> SelectorsAnswer {
        let input = SelectorInput::new(&candidate.slice.spec.driver, candidate.device);
        for (held, selector) in compiled.iter().enumerate() {
            match Searched(selector).answer(input) {
                Some((holds, parts)) if self.meter.may_count_parts(parts) => {
                    if !holds {
                        return SelectorsAnswer { held, is_refused: true };
                    }
                }
                _ => return SelectorsAnswer { held, is_refused: false },
            }
        }
        SelectorsAnswer { held: compiled.len(), is_refused: false }
    }

    /// Evaluates a selector on a device. An error names the device and the owner of the selector.
    fn holds(
        &self,
        asked: &Alternative<'_>,
        position: SelectorIx,
        selector: Expression<'_>,
        device: DeviceIx,
    ) -> Result<bool, AllocateError> {
        let (candidate, index) = (self.candidate(device), Index::from(selector.index));
        let owner = || match selector.owner {
            Owner::Class(class) => format!("class {class}"),
            Owner::Claim => format!("claim {}", self.claim_name(asked)),
        };
        let compiled = selector.compile(self.context.selectors);
        let compiled = compiled.ok_or_else(|| AllocateError::SelectorEmpty { owner: owner(), index })?;
        let compiled = compiled.map_err(|error| AllocateError::SelectorCompile {
            owner: owner(),
            index,
            source: error.clone(),
        })?;
        let input = SelectorInput::new(&candidate.slice.spec.driver, candidate.device);
        let failed = |source| {
            let device = Box::new(self.id(device));
            AllocateError::SelectorEvaluation { owner: owner(), index, device, source }
        };
        if !Searched(compiled).is_direct() {
            return self.evaluate_once(&asked.results, position, compiled, candidate).map_err(failed);
        }
        self.evaluate(compiled, candidate, input).map(|known| known.holds).map_err(failed)
    }

    /// Evaluates a selector on a device by itself.
    pub(crate) fn matches(&self, selector: &Selector, device: DeviceIx) -> Result<bool, EvaluationError> {
        let candidate = self.candidate(device);
        let input = SelectorInput::new(&candidate.slice.spec.driver, candidate.device);
        self.evaluate(selector, candidate, input).map(|known| known.holds)
    }

    /// Returns true if selectors can be evaluated on a device.
    fn can_read(&self, candidate: Candidate<'_>) -> bool {
        let facts = candidate.facts();
        facts.is_sound() && !(self.context.selectors.fails_on_lists && facts.has_lists())
    }

    /// Evaluates a selector, which is work.
    fn evaluate(
        &self,
        selector: &Selector,
        candidate: Candidate<'_>,
        input: SelectorInput<'_>,
    ) -> Result<Known, EvaluationError> {
        if !self.can_read(candidate) {
            if let Some(name) = first_list(candidate.device).filter(|_| self.context.selectors.fails_on_lists) {
                let (name, reason) = (name.to_owned(), "unsupported attribute value".to_owned());
                return Err(EvaluationError::Attribute { name, reason });
            }
            return selector.matches(input).map(|holds| Known { holds, parts: 0 });
        }
        let (result, parts) = match Searched(selector).answer(input) {
            Some((holds, parts)) => (Ok(holds), parts),
            None => {
                Searched(selector).run_within(input, Bound { parts: self.meter.parts_left(), stop: self.meter.stop() })
            }
        };
        self.meter.evaluated(result, parts).map(|holds| Known { holds, parts })
    }

    /// Returns the result of a selector, from a device with the same result or of an evaluation. The work is that of an
    /// evaluation in either case, so that it depends on neither other nodes nor their order.
    fn evaluate_once(
        &self,
        results: &KnownResults,
        position: SelectorIx,
        selector: &Selector,
        candidate: Candidate<'_>,
    ) -> Result<bool, EvaluationError> {
        let input = SelectorInput::new(&candidate.slice.spec.driver, candidate.device);
        let known = |known: Known| self.meter.evaluated(Ok(known.holds), known.parts);
        let is_seen_by_several = !is_for_one_node(candidate.slice);
        if is_seen_by_several && let Some(of_device) = results.of_device(position, candidate.device) {
            return known(of_device);
        }
        let may_be_shared = self.can_read(candidate) && self.context.elisions.has(Elision::EqualValues);
        let of_values = may_be_shared.then(|| results.of_values(position, selector, input)).flatten();
        let found = match of_values {
            Some(of_values) => known(of_values).map(|_| of_values)?,
            None => self.evaluate(selector, candidate, input)?,
        };
        if may_be_shared && of_values.is_none() {
            results.keep_for_values(position, input, found);
        }
        if is_seen_by_several {
            results.keep_for_device(position, candidate.device, found);
        }
        Ok(found.holds)
    }
}
