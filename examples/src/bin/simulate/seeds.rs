//! Comparison of scenarios over several days, each with a seed of its own.

use examples::simulation::Summary;

use super::print::{Scenario, table};

/// Pods of one kind in all scenarios, as described first.
pub(crate) struct KindSeries<'d> {
    pub(crate) kind: &'d str,
    pub(crate) scenarios: Vec<Series<'d>>,
}

/// Pods of one kind in one scenario.
pub(crate) struct Series<'d> {
    pub(crate) scenario: &'d str,
    came: u64,
    refused: u64,
    /// Pods that were placed, by day.
    pub(crate) placed: Vec<u64>,
}

/// Collects the counts of each kind of pods, and those of all pods at the end.
pub(crate) fn series(days: &[Vec<Scenario>]) -> Vec<KindSeries<'_>> {
    let first = days.first().map(Vec::as_slice).unwrap_or_default();
    let kinds = first.first().map_or(0, |scenario| scenario.summary.kinds.len().saturating_add(1));
    let of_kind = |kind: usize| {
        let scenarios = first.iter().enumerate().map(|(index, scenario)| {
            let of_days = days.iter().filter_map(|day| day.get(index)).map(|day| counts(&day.summary, kind));
            let of_days: Vec<_> = of_days.collect();
            Series {
                scenario: &scenario.name,
                came: of_days.iter().map(|counts| counts.arrived).sum(),
                refused: of_days.iter().map(|counts| counts.refused).sum(),
                placed: of_days.iter().map(|counts| counts.placed).collect(),
            }
        });
        let kind = first.first().map_or("", |scenario| &counts(&scenario.summary, kind).name);
        KindSeries { kind, scenarios: scenarios.collect() }
    };
    (0..kinds).map(of_kind).collect()
}

/// Returns the counts of a kind; those of all pods behind the last kind.
fn counts(summary: &Summary, kind: usize) -> &examples::simulation::KindCounts {
    summary.kinds.get(kind).unwrap_or(&summary.sum)
}

/// Renders the pods that are placed on all days, and for each scenario how many more or fewer these are than as described: on the
/// worst day, on the median, and on the best day.
pub(crate) fn report_of_seeds(days: &[Vec<Scenario>]) -> String {
    let mut table = table(&["PODS", "WHAT IF", "CAME", "PLACED", "REFUSED", "WORST DAY", "MEDIAN DAY", "BEST DAY"]);
    for KindSeries { kind, scenarios } in series(days) {
        let described = scenarios.first().map(|series| series.placed.clone()).unwrap_or_default();
        for (index, series) in scenarios.iter().enumerate() {
            let placed: u64 = series.placed.iter().sum();
            let mut row =
                vec![kind.to_owned(), series.scenario.to_owned(), series.came.to_string(), placed.to_string()];
            row.push(decimal(thousandths(series.refused, series.came)));
            let changes = if index == 0 { vec![String::new(); 3] } else { changes(&series.placed, &described) };
            row.extend(changes);
            table.add_row(row);
        }
    }
    format!("{} days, of all of them:\n{table}\n", days.len())
}

/// Returns by how much the numbers of days differ from others: the worst, the median and the best. Days without any are left out.
fn changes(placed: &[u64], described: &[u64]) -> Vec<String> {
    let days = placed.iter().zip(described).filter(|(_, described)| **described > 0);
    let mut changes: Vec<i64> =
        days.map(|(placed, described)| thousandths(*placed, *described).saturating_sub(1_000)).collect();
    changes.sort_unstable();
    let shown = |change: Option<&i64>| {
        change.map_or_else(
            || "-".to_owned(),
            |change| if *change < 0 { decimal(*change) } else { format!("+{}", decimal(*change)) },
        )
    };
    // Of an even number of days, the lower one of the middle.
    let median = changes.get(changes.len().saturating_sub(1) / 2);
    [changes.first(), median, changes.last()].map(shown).into()
}

/// Returns a part in thousandths of a whole.
fn thousandths(part: u64, whole: u64) -> i64 {
    let share = u128::from(part).saturating_mul(1_000).checked_div(u128::from(whole)).unwrap_or_default();
    i64::try_from(share).unwrap_or(i64::MAX)
}

/// Writes thousandths as percent with one decimal.
fn decimal(thousandths: i64) -> String {
    let sign = if thousandths < 0 { "-" } else { "" };
    let size = thousandths.unsigned_abs();
    format!("{sign}{}.{} %", size / 10, size % 10)
}
