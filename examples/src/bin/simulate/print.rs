//! Tables that `simulate` prints.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};
use examples::simulation::{KindCounts, Order, Placing, Preempting, PriorityCounts, Summary, Use};
use k8s_openapi::jiff::SignedDuration;
use serde::Serialize;

use super::chart::chart;

/// Day that was played.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Scenario {
    pub(crate) name: String,
    pub(crate) seed: u64,
    pub(crate) placing: Placing,
    pub(crate) order: Order,
    pub(crate) preempt: Preempting,
    /// Milliseconds between two plans that empty nodes; `None` if pods stay where they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) consolidate: Option<u64>,
    /// Rule by which devices are chosen; `None` if the first that fit are taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) objective: Option<String>,
    #[serde(flatten)]
    pub(crate) summary: Summary,
}

/// Largest number of kinds of pods that are listed.
const MOST_KINDS: usize = 50;

/// Largest number of charts of nodes in use.
const MOST_CHARTS: usize = 4;

/// Largest number of reasons that are listed.
const MOST_REASONS: usize = 50;

/// Renders the first scenario, then all of them beside each other.
pub(crate) fn report(scenarios: &[Scenario]) -> String {
    let mut text = String::new();
    let Some(Scenario { summary, .. }) = scenarios.first() else { return text };
    let mut add = |part: &str| {
        text.push_str(part);
        text.push('\n');
    };
    add(&kinds(summary).to_string());
    for line in reasons(summary) {
        add(&line);
    }
    if summary.stopped > 0 {
        add(&format!("{} searches were stopped by their budget; those nodes counted as full", summary.stopped));
    }
    for used in &summary.devices {
        add(&format!("\n{} in use, in % of {}; mean {}, at most {}", used.name, used.total, mean(used), used.most));
        add(chart(used, summary).trim_end());
    }
    if scenarios.len() > 1 {
        add(&format!("\n{}", comparison(scenarios)));
    }
    if has_moves(scenarios) {
        for Scenario { name, summary, .. } in shown(scenarios) {
            let used = &summary.nodes_in_use;
            let mean = count(used);
            add(&format!("\n{name}: nodes in use, in % of {}; mean {mean}, at most {}", used.total, used.most));
            add(chart(used, summary).trim_end());
        }
        add(&format!("\n{}", nodes_in_use(scenarios)));
    }
    if has_priorities(scenarios) {
        add(&format!("\n{}", priorities(scenarios)));
    }
    text
}

/// Returns true if pods have different priorities.
pub(crate) fn has_priorities(scenarios: &[Scenario]) -> bool {
    scenarios.iter().any(|scenario| scenario.summary.priorities.len() > 1)
}

/// Returns true if pods are moved in a scenario.
pub(crate) fn has_moves(scenarios: &[Scenario]) -> bool {
    scenarios.iter().any(|scenario| scenario.consolidate.is_some())
}

/// Returns the scenarios whose nodes in use have a chart: the first one, and those in which pods are moved.
fn shown(scenarios: &[Scenario]) -> impl Iterator<Item = &Scenario> {
    let moved = scenarios.iter().skip(1).filter(|scenario| scenario.consolidate.is_some());
    scenarios.iter().take(1).chain(moved).take(MOST_CHARTS)
}

/// Renders the nodes in use in each scenario, and the pods that were moved.
fn nodes_in_use(scenarios: &[Scenario]) -> Table {
    let mut table =
        table(&["WHAT IF", "EMPTIED EACH", "NODES", "MEAN IN USE", "MOST IN USE", "PODS MOVED", "PLACED", "MEAN WAIT"]);
    table.add_rows(scenarios.iter().map(|Scenario { name, consolidate, summary, .. }| {
        let (used, sum) = (&summary.nodes_in_use, &summary.sum);
        let each = consolidate.map_or_else(|| "-".to_owned(), time);
        let counts = [used.most, sum.moved, sum.placed].map(|count| count.to_string());
        let first = vec![name.clone(), each, used.total.to_string(), count(used)];
        [first, counts.to_vec(), vec![time(sum.waits.mean)]].concat()
    }));
    table
}

/// Returns the mean number with one decimal.
fn count(used: &Use) -> String {
    format!("{}.{}", used.mean_thousandths / 1000, used.mean_thousandths % 1000 / 100)
}

/// Renders the counts of each priority in each scenario.
fn priorities(scenarios: &[Scenario]) -> Table {
    let mut table =
        table(&["WHAT IF", "PRIORITY", "PREEMPTED", "LOST", "MEAN WAIT", "95 % WITHIN", "LONGEST", "MEAN WAITING"]);
    for Scenario { name, summary, .. } in scenarios {
        table.add_rows(summary.priorities.iter().map(|of: &PriorityCounts| {
            let counts = [name.clone(), of.priority.to_string(), of.preempted.to_string()];
            let times = [of.lost, of.waits.mean, of.waits.p95, of.waits.longest].map(time);
            [counts.to_vec(), times.to_vec(), vec![count(&of.waiting)]].concat()
        }));
    }
    table
}

pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED).set_header(header.iter().copied());
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn kinds(summary: &Summary) -> Table {
    let mut table = table(&["PODS", "CAME", "PLACED", "REFUSED", "WAITING", "MEAN WAIT", "95 % WITHIN", "LONGEST"]);
    let row = |kind: &KindCounts| {
        let counts = [kind.arrived, kind.placed, kind.refused, kind.waiting].map(|count| count.to_string());
        let waits = [kind.waits.mean, kind.waits.p95, kind.waits.longest].map(time);
        [vec![kind.name.clone()], counts.to_vec(), waits.to_vec()].concat()
    };
    table.add_rows(summary.kinds.iter().take(MOST_KINDS).map(row));
    let more = summary.kinds.len().saturating_sub(MOST_KINDS);
    if more > 0 {
        table.add_row([format!("and {more} more")]);
    }
    table.add_row(row(&summary.sum));
    table
}

/// Returns a line for each reason of refusals, and the reasons of the nodes for each kind of pods that found no room.
fn reasons(summary: &Summary) -> Vec<String> {
    let refused = summary.refused.iter();
    let mut lines: Vec<String> =
        refused.map(|some| format!("{} of {}: {}", some.pods, some.kind, some.refusal)).collect();
    let no_room = summary.kinds.iter().filter_map(|kind| Some((&kind.name, kind.why.as_ref()?)));
    lines.extend(no_room.map(|(name, why)| format!("first {name} without room: {why}")));
    let more = lines.len().saturating_sub(MOST_REASONS);
    lines.truncate(MOST_REASONS);
    lines.extend((more > 0).then(|| format!("and {more} more")));
    lines
}

fn comparison(scenarios: &[Scenario]) -> Table {
    let mut header = vec!["WHAT IF", "NODES", "CAME", "PLACED", "REFUSED", "WAITING", "MEAN WAIT", "95 % WITHIN"];
    let drivers = scenarios.first().map(|first| first.summary.devices.as_slice()).unwrap_or_default();
    let used: Vec<String> = drivers.iter().map(|used| format!("{} IN USE", used.name)).collect();
    header.extend(used.iter().map(String::as_str));
    let mut table = table(&header);
    table.add_rows(scenarios.iter().map(|Scenario { name, summary, .. }| {
        let KindCounts { arrived, placed, refused, waiting, waits, .. } = &summary.sum;
        let counts = [summary.nodes as u64, *arrived, *placed, *refused, *waiting].map(|count| count.to_string());
        let of_driver = |driver: &Use| summary.devices.iter().find(|used| used.name == driver.name);
        let used = drivers.iter().map(|driver| of_driver(driver).map_or_else(|| "-".to_owned(), mean));
        [vec![name.clone()], counts.to_vec(), vec![time(waits.mean), time(waits.p95)], used.collect()].concat()
    }));
    table
}

/// Returns the mean use in percent, with one decimal.
fn mean(used: &Use) -> String {
    let permille = used.mean_thousandths.checked_div(used.total).unwrap_or_default();
    format!("{}.{} %", permille / 10, permille % 10)
}

/// Returns a time in words, in seconds if it is longer than one.
pub(crate) fn time(millis: u64) -> String {
    let millis = if millis < 1000 { millis } else { millis / 1000 * 1000 };
    let millis = i64::try_from(millis).unwrap_or(i64::MAX);
    format!("{:#}", SignedDuration::from_millis(millis))
}
