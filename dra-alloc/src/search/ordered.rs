//! Requests that get their devices in an order that counts: while list-typed attributes are off, a `distinctAttribute`
//! constraint does not check its first device.

use super::device_set::DeviceSet;
use super::domains::Domains;
use super::ix::{AlternativeIx, ColumnIx, ConstraintIx};
use super::request::ConstraintKind;
use super::table::{DevicesOfAll, Table};

/// Returns the devices of the alternatives that get them in an order that counts ([`is_ordered`]).
pub(crate) fn ordered_devices(table: &Table<'_>, all: &DevicesOfAll, domains: &Domains<'_>) -> DeviceSet {
    let mut devices = DeviceSet::new(domains.devices.end);
    let ordered = table.plan.alternatives.range().into_iter();
    for alternative in ordered.filter(|alternative| is_ordered(table, all, domains, *alternative)) {
        devices.union(&domains.reachable(alternative));
    }
    devices
}

/// Returns true if the order of an alternative's devices counts: it gets several, and under a `distinctAttribute` constraint
/// the first one may have a list that is not checked, while a later one may not.
///
/// An exchange changes the order, in which a request gets its devices. Let device 1 have a list, and devices 0 and 2 the
/// same value. The request may get 1 and 2; with 0 in the place of 2, the list comes second, and is refused. Under a
/// `matchAttribute` constraint a list has nothing in common with another device, whatever the order.
pub(super) fn is_ordered(
    table: &Table<'_>,
    all: &DevicesOfAll,
    domains: &Domains<'_>,
    alternative: AlternativeIx,
) -> bool {
    let asked = table.alternative(alternative);
    let constraints = &table.plan.claims[asked.claim].constraints;
    let has_unchecked = |(constraint, column): &(ConstraintIx, ColumnIx)| {
        let unseen = &domains.columns[*column].unseen;
        constraints[*constraint].kind == ConstraintKind::Distinct
            && !unseen.is_empty()
            && domains.reachable(alternative).intersects(unseen)
    };
    table.wanted(all, alternative) > 1 && asked.constraints.iter().any(has_unchecked)
}
