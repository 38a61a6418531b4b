//! Tables and notes about resource pools: pools or nodes with their sum, partitions, shared capacities.

use std::collections::BTreeMap;

use clap::ValueEnum;
use dra_attrs::PoolStatusForm;
use dra_attrs::Profile;
use poolstatus::{AvailabilityReport, DeviceCounts, PoolReport};

use crate::held_twice::{HeldTwice, lines};
use crate::table::{Column, Table};

/// Text of a cell without a value.
const NO_VALUE: &str = "-";

/// Width of a bar, in characters.
const BAR: i64 = 10;

/// Columns of pools and of nodes. On a narrow terminal the bar goes first, and the number of free devices last.
const OF_POOLS: [Column; 9] = with_counts([Column::always("DRIVER"), Column::always("POOL"), Column::always("NODE")]);
const OF_NODES: [Column; 9] =
    with_counts([Column::always("NODE"), Column::always("DRIVERS"), Column::number("POOLS", 4)]);

const OF_PARTITIONS: [Column; 5] = [
    Column::always("POOL"),
    Column::always("PARTITION"),
    Column::number("TOTAL", 1),
    Column::number("ALLOCATABLE", 0),
    Column::ranked("ATTRIBUTE", 2),
];

const OF_SHARES: [Column; 7] = [
    Column::always("POOL"),
    Column::always("CAPACITY"),
    Column::number("TOTAL", 1),
    Column::number("CONSUMED", 2),
    Column::number("AVAILABLE", 0),
    Column::number("UNTOUCHED", 3),
    Column::number("IN USE", 4),
];

const fn with_counts([first, second, third]: [Column; 3]) -> [Column; 9] {
    let [total, allocated] = [Column::number("TOTAL", 1), Column::number("ALLOCATED", 2)];
    let [available, unavailable] = [Column::number("AVAILABLE", 0), Column::number("UNAVAILABLE", 3)];
    let [bar, note] = [Column::ranked("USE", 5), Column::always("NOTE")];
    [first, second, third, total, allocated, available, unavailable, bar, note]
}

/// Subject of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[expect(clippy::exhaustive_enums, reason = "the rows that there are")]
pub enum By {
    /// A pool
    Pool,
    /// A node with its pools
    Node,
}

/// Sums of device counts over pools.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    total: i64,
    allocated: i64,
    available: i64,
    unavailable: i64,
}

impl Sums {
    fn add(&mut self, counts: DeviceCounts) {
        self.total = self.total.saturating_add(counts.total.into());
        self.allocated = self.allocated.saturating_add(counts.allocated.into());
        self.available = self.available.saturating_add(counts.available.into());
        self.unavailable = self.unavailable.saturating_add(counts.unavailable.into());
    }

    fn cells(self) -> [String; 5] {
        let [total, allocated, available, unavailable] =
            [self.total, self.allocated, self.available, self.unavailable].map(|number| number.to_string());
        [total, allocated, available, unavailable, self.bar()]
    }

    /// Draws the allocated, unavailable and free parts of the total. A part above zero has at least one character.
    fn bar(self) -> String {
        let part = |number: i64| number.saturating_mul(BAR).checked_div(self.total).unwrap_or_default().clamp(0, BAR);
        let seen = |number: i64| if number > 0 { part(number).max(1) } else { 0 };
        let allocated = seen(self.allocated).min(BAR);
        let unavailable = seen(self.unavailable).min(BAR - allocated);
        let free = if self.total > 0 { BAR - allocated - unavailable } else { 0 };
        let repeat = |text: &str, times: i64| text.repeat(usize::try_from(times).unwrap_or_default());
        [repeat("█", allocated), repeat("▒", unavailable), repeat("░", free)].concat()
    }
}

/// Renders the tables (pools or nodes with their sum, partitions, shared capacities) and the notes, the last of which are about
/// devices that several claims hold.
#[must_use]
pub fn tables(reports: &[AvailabilityReport], held_twice: &[HeldTwice], by: By, profile: Profile) -> String {
    let mut parts = vec![match by {
        By::Node => node_table(reports, profile),
        By::Pool => pool_table(reports, profile),
    }];
    parts.extend([partition_table(reports), share_table(reports)].into_iter().flatten());
    let mut notes = notes(reports, profile);
    notes.extend(lines(held_twice));
    if !notes.is_empty() {
        parts.push(notes.join("\n"));
    }
    parts.join("\n") + "\n"
}

fn counts(pool: &PoolReport, profile: Profile) -> Option<DeviceCounts> {
    match profile.pool_status_form() {
        PoolStatusForm::V1alpha3 if pool.is_incomplete() => None,
        PoolStatusForm::V1alpha3 | PoolStatusForm::Kep => Some(pool.counts(profile)),
    }
}

/// Returns the text of a table without its last line feed.
fn text<const N: usize>(table: &Table<N>) -> String {
    table.text().trim_end().to_owned()
}

fn pool_table(reports: &[AvailabilityReport], profile: Profile) -> String {
    let mut table = Table::new(OF_POOLS);
    let mut all = Sums::default();
    for report in reports {
        for pool in &report.pools {
            let counts = counts(pool, profile);
            if let Some(counts) = counts {
                all.add(counts);
            }
            table.add(pool_row(pool, counts));
        }
        if report.is_truncated() {
            let more = report.matching_pools.saturating_sub(report.pools.len());
            table.add(row([&report.driver, &format!("{more} more"), ""], Default::default(), ""));
        }
    }
    let note = if reports.iter().any(AvailabilityReport::is_truncated) { "at least" } else { "" };
    table.add(row(["all", "", ""], all.cells(), note));
    text(&table)
}

fn pool_row(pool: &PoolReport, counts: Option<DeviceCounts>) -> [String; 9] {
    let names = [pool.driver.as_str(), &pool.pool, pool.node.as_deref().unwrap_or(NO_VALUE)];
    let Some(counts) = counts else {
        let unknown = [NO_VALUE, NO_VALUE, NO_VALUE, NO_VALUE, ""].map(str::to_owned);
        return row(names, unknown, &note(pool));
    };
    let mut sums = Sums::default();
    sums.add(counts);
    row(names, sums.cells(), &note(pool))
}

fn row(names: [&str; 3], cells: [String; 5], note: &str) -> [String; 9] {
    let [first, second, third] = names.map(str::to_owned);
    let [total, allocated, available, unavailable, bar] = cells;
    [first, second, third, total, allocated, available, unavailable, bar, note.to_owned()]
}

/// Summarizes in a few words the features and problems of a pool.
fn note(pool: &PoolReport) -> String {
    let mut notes = Vec::new();
    if pool.is_incomplete() {
        let (there, announced) = (pool.slice_count, pool.expected_slice_count);
        let is_updated = usize::try_from(announced).is_ok_and(|announced| there < announced);
        notes.push(if is_updated {
            format!("incomplete, {there} of {announced} slices")
        } else {
            format!("{there} slices, {announced} announced")
        });
    }
    if pool.partitions.as_ref().is_ok_and(|partitions| !partitions.is_empty()) {
        notes.push("partitions".to_owned());
    }
    if pool.shareable.as_ref().is_ok_and(Option::is_some) {
        notes.push("shared".to_owned());
    }
    if let Some(error) = pool.summary_error() {
        let error = error.to_string();
        notes.push(error.split(':').next().unwrap_or_default().to_owned());
    }
    notes.join(", ")
}

fn node_table(reports: &[AvailabilityReport], profile: Profile) -> String {
    let mut nodes: BTreeMap<&str, (Vec<&str>, Sums, usize)> = BTreeMap::new();
    let mut all = Sums::default();
    for pool in reports.iter().flat_map(|report| &report.pools) {
        let (drivers, sums, unknown) = nodes.entry(pool.node.as_deref().unwrap_or(NO_VALUE)).or_default();
        drivers.push(&pool.driver);
        match counts(pool, profile) {
            Some(counts) => {
                sums.add(counts);
                all.add(counts);
            }
            None => *unknown = unknown.saturating_add(1),
        }
    }
    let mut table = Table::new(OF_NODES);
    for (node, (mut drivers, sums, unknown)) in nodes {
        let pools = drivers.len().to_string();
        drivers.sort_unstable();
        drivers.dedup();
        let note = if unknown > 0 { format!("{unknown} without counts") } else { String::new() };
        table.add(row([node, &drivers.join(" "), &pools], sums.cells(), &note));
    }
    let note = if reports.iter().any(AvailabilityReport::is_truncated) { "at least" } else { "" };
    table.add(row(["all", "", ""], all.cells(), note));
    text(&table)
}

fn partition_table(reports: &[AvailabilityReport]) -> Option<String> {
    let mut table = Table::new(OF_PARTITIONS);
    let pools = reports.iter().flat_map(|report| &report.pools);
    for pool in pools {
        for entry in pool.partitions.iter().flatten() {
            let (total, allocatable) = (entry.total.to_string(), entry.allocatable.to_string());
            table.add([pool.pool.clone(), entry.type_.clone(), total, allocatable, entry.attribute.clone()]);
        }
    }
    (!table.is_empty()).then(|| text(&table))
}

fn share_table(reports: &[AvailabilityReport]) -> Option<String> {
    let mut table = Table::new(OF_SHARES);
    for pool in reports.iter().flat_map(|report| &report.pools) {
        let Ok(Some(summary)) = &pool.shareable else { continue };
        let (full, partial) = (summary.fully_available_devices, summary.partially_available_devices);
        for capacity in summary.capacity.iter().flatten() {
            let amounts = [&capacity.total, &capacity.consumed, &capacity.available].map(|amount| amount.0.clone());
            let [total, consumed, available] = amounts;
            let [full, partial] = [full.to_string(), partial.to_string()];
            table.add([pool.pool.clone(), capacity.name.clone(), total, consumed, available, full, partial]);
        }
    }
    (!table.is_empty()).then(|| text(&table))
}

/// Collects the errors of summaries, then the warnings.
fn notes(reports: &[AvailabilityReport], profile: Profile) -> Vec<String> {
    let errors = reports.iter().flat_map(|report| &report.pools).filter_map(PoolReport::summary_error);
    let errors = errors.map(ToString::to_string);
    let warnings = reports.iter().flat_map(|report| {
        let warnings = report.warnings(profile);
        warnings.map(move |(pool, warning)| format!("{}: pool {pool}: {warning}", report.driver))
    });
    errors.chain(warnings).collect()
}
