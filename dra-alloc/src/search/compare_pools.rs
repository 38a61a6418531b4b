//! Pools that are looked at once: those with the devices of an earlier pool, in the same use.
//!
//! Two thousand pools of six partitions each mostly differ in their names alone, and a few of them in what is in use. Looking ahead
//! checks the devices of one pool of each kind, and takes its answers for the others.
//!
//! *Argument.* The checks of a device but for constraints read the facts of its pool that a lens shows which has the attributes that
//! selectors read ([`lens_of_selectors`]); the use of the pool: which devices are held or shared, and how much of them is consumed,
//! from which the counters follow that are left; taints by rules; and the node. A pool has the mark of another one
//! ([`Pool::shape`]) only if its facts are equal, and has none if its devices choose nodes, if other slices consume its counters, or
//! if a value is invalid. Pools with a taint by rule are left out here, and the node is the same. So the devices of the two pools have
//! the same answers, in their order, errors included, which only leave a device undecided.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::elisions::Elision;
use super::ix::{AlternativeIx, DeviceIx, PoolIx};
use super::like_pools::{LikePool, LikePools};
use super::searched_states::lens_of_selectors;
use super::table::Table;
use crate::cluster::inventory::pool::Pool;
use crate::cluster::inventory::shape::KnownLens;

/// Number of pools up to which each is looked at.
const FEW_POOLS: usize = 16;
/// Number of kinds of pools from which no further one is compared if less pools than that were like another one.
const MANY_KINDS: usize = 64;

/// Facts and use of a pool, as words.
type Key = SmallVec<[u64; 6]>;

/// Returns all pools in search order, each with an earlier one that is like it.
pub(super) fn like_pools<'t>(table: &'t Table<'_>) -> &'t LikePools {
    table.like_pools.get_or_init(|| compared(table))
}

/// Compares the pools of a table.
///
/// Complexity: that of reading the use of each pool, and its facts when they are first asked for.
fn compared(table: &Table<'_>) -> LikePools {
    let order = table.candidates.order();
    let context = table.context;
    let is_compared =
        order.len() > FEW_POOLS && context.elisions.has(Elision::LikePools) && !context.selectors.fails_on_lists;
    let mut lens = is_compared.then(|| context.inventory.shapes().lens(lens_of_selectors(context, table.plan)));
    let is_plain_enough = table.plan.alternatives.range().into_iter().all(|asked| looks_at_pools(table, asked));
    let (mut firsts, mut found) = (BTreeMap::<Key, DeviceIx>::new(), 0);
    let pools = order.into_iter().map(|(pool, devices)| {
        let alone = LikePool { pool, devices, like: None };
        if firsts.len() >= MANY_KINDS && found < firsts.len() {
            lens = None;
        }
        let is_known = || is_plain_enough && is_looked_at_once(table, table.candidates.pool(pool));
        let Some(lens) = lens.as_ref().filter(|_| !devices.is_empty() && !is_known()) else { return alone };
        let Some(key) = key(table, pool, lens) else { return alone };
        let first = *firsts.entry(key).or_insert(devices.start);
        let like = (first != devices.start).then_some(first);
        found += usize::from(like.is_some());
        LikePool { like, ..alone }
    });
    LikePools(pools.collect())
}

fn key(table: &Table<'_>, ix: PoolIx, lens: &KnownLens) -> Option<Key> {
    let (pool, inventory): (&Pool, _) = (table.candidates.pool(ix), table.context.inventory);
    if inventory.has_rule_for(pool.driver(), pool.name()) {
        return None;
    }
    let mut key = Key::new();
    key.push(pool.shape(inventory.shapes(), lens)?.number());
    match table.candidates.pool_use(ix) {
        None => key.push(u64::MAX),
        Some(used) => used.write(pool.devices(), &mut key),
    }
    Some(key)
}

/// Returns true if an alternative asks nothing that one device of a plain pool answers otherwise than another one.
pub(super) fn looks_at_pools(table: &Table<'_>, alternative: AlternativeIx) -> bool {
    let asked = table.alternative(alternative);
    table.context.elisions.has(Elision::PoolsAtOnce)
        && !asked.admin_access
        && asked.capacity.is_empty()
        && asked.reads_driver_alone(table.context.selectors)
}

/// Returns true if one look answers for all unused devices of a pool, up to taints and slices that skip node operations.
///
/// *Argument.* The selectors read the driver alone, which is one for the pool, and end in no error where the attributes are
/// valid. No device has binding conditions or chooses its nodes, so that the selection is the same for all. A plain pool has
/// capacities that are simple numbers, no shared devices and no counters; of an unused device nothing is consumed, and nothing is
/// asked. So all checks but those of taints and skipped operations have one answer, and none can end in an error.
pub(super) fn is_looked_at_once(table: &Table<'_>, pool: &Pool) -> bool {
    pool.is_plain() && !pool.has_binding_conditions() && table.context.selectors.can_read(pool)
}

#[cfg(test)]
mod tests;
