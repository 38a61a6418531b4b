//! Tables that fit their terminal.
//!
//! A table as wide as its terminal, or narrower, is shown whole. Of a wider one columns are left out, one after the other in
//! the order of their ranks, and named below it; columns without a rank always stay. What is too wide all the same is broken
//! within its cells. Where no terminal shows it, a table is whole.

use std::io::{IsTerminal, stdout};

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, ContentArrangement};

/// Width of a terminal that does not tell.
const USUAL_WIDTH: usize = 80;

/// Column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    header: &'static str,
    /// Rank of a column that can be left out: the highest one goes first.
    rank: Option<u8>,
    is_number: bool,
}

impl Column {
    /// Returns a column that always stays.
    #[must_use]
    pub const fn always(header: &'static str) -> Self {
        Self { header, rank: None, is_number: false }
    }

    /// Returns a column that is left out of a table which is too wide: that with the highest rank first.
    #[must_use]
    pub const fn ranked(header: &'static str, rank: u8) -> Self {
        Self { header, rank: Some(rank), is_number: false }
    }

    /// Returns a column of numbers that can be left out.
    #[must_use]
    pub const fn number(header: &'static str, rank: u8) -> Self {
        Self { header, rank: Some(rank), is_number: true }
    }
}

/// Table whose rows have a cell for each column.
#[derive(Clone, Debug)]
pub struct Table<const N: usize> {
    columns: [Column; N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    /// Creates a table without rows.
    #[must_use]
    pub const fn new(columns: [Column; N]) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// Adds a row.
    pub fn add(&mut self, row: [String; N]) {
        self.rows.push(row);
    }

    /// Returns the number of rows.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns true if there are no rows.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the table as it fits the terminal of stdout, with a line feed at its end; whole if there is none.
    #[must_use]
    pub fn text(&self) -> String {
        self.text_in(terminal_width())
    }

    /// Returns the table in a width, with a line feed at its end.
    ///
    /// ```
    /// use examples::table::{Column, Table};
    /// let mut table = Table::new([Column::always("NODE"), Column::ranked("NOTES", 1)]);
    /// table.add(["node-1".into(), "far too long for this".into()]);
    /// assert!(table.text_in(None).contains("far too long"));
    /// assert!(table.text_in(Some(20)).ends_with("left out for the width: NOTES\n"));
    /// ```
    #[must_use]
    pub fn text_in(&self, width: Option<usize>) -> String {
        let mut shown: Vec<usize> = (0..N).collect();
        let mut left_out = Vec::new();
        while let Some(width) = width
            && self.width_of(&shown) > width
            && let Some(widest) = self.next_to_go(&shown)
        {
            shown.retain(|column| *column != widest);
            left_out.push(widest);
        }
        left_out.sort_unstable();
        let mut table = self.drawn(&shown);
        if let Some(width) = width.filter(|width| self.width_of(&shown) > *width) {
            table.set_content_arrangement(ContentArrangement::Dynamic);
            table.set_width(u16::try_from(width).unwrap_or(u16::MAX));
        }
        let names: Vec<&str> = left_out.iter().filter_map(|column| Some(self.columns.get(*column)?.header)).collect();
        let note =
            if names.is_empty() { String::new() } else { format!("left out for the width: {}\n", names.join(", ")) };
        format!("{table}\n{note}")
    }

    /// Returns the column that is left out next.
    fn next_to_go(&self, shown: &[usize]) -> Option<usize> {
        let ranked = shown.iter().filter_map(|column| Some((self.columns.get(*column)?.rank?, *column)));
        ranked.max().map(|(_, column)| column)
    }

    fn width_of(&self, shown: &[usize]) -> usize {
        self.drawn(shown).lines().map(|line| line.chars().count()).max().unwrap_or_default()
    }

    fn drawn(&self, shown: &[usize]) -> comfy_table::Table {
        let mut table = comfy_table::Table::new();
        let columns: Vec<&Column> = shown.iter().filter_map(|column| self.columns.get(*column)).collect();
        table.load_preset(UTF8_FULL_CONDENSED).set_header(columns.iter().map(|column| column.header));
        for row in &self.rows {
            table.add_row(shown.iter().filter_map(|column| row.get(*column)));
        }
        for (position, _) in columns.iter().enumerate().filter(|(_, column)| column.is_number) {
            if let Some(column) = table.column_mut(position) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table
    }
}

/// Returns the width of the terminal of stdout; none if it is not one.
fn terminal_width() -> Option<usize> {
    stdout().is_terminal().then(|| told_width().filter(|width| *width > 0).unwrap_or(USUAL_WIDTH))
}

#[cfg(unix)]
fn told_width() -> Option<usize> {
    rustix::termios::tcgetwinsize(stdout()).ok().map(|size| size.ws_col.into())
}

#[cfg(not(unix))]
const fn told_width() -> Option<usize> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wide() -> Table<5> {
        let mut table = Table::new([
            Column::always("CLAIM"),
            Column::always("NODE"),
            Column::ranked("REQUEST", 3),
            Column::ranked("DEVICE", 1),
            Column::number("SHARES", 2),
        ]);
        for number in 0..3 {
            let text = |part: &str, width: usize| format!("{part}-{number}{}", "x".repeat(width));
            table.add([text("claim", 14), text("node", 12), text("request", 30), text("device", 30), text("", 20)]);
        }
        table
    }

    #[test]
    fn columns_go_by_rank_until_the_table_fits() {
        let cases = [
            (80, "left out for the width: REQUEST, DEVICE, SHARES"),
            (120, "left out for the width: REQUEST"),
            (200, ""),
        ];
        for (width, expected) in cases {
            let text = wide().text_in(Some(width));
            let note = text.lines().find(|line| line.starts_with("left out")).unwrap_or_default();
            assert_eq!(note, expected, "{width}");
            assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
            assert!(text.contains("CLAIM") && text.contains("NODE"), "{text}");
        }
        assert_eq!(wide().text_in(None), wide().text_in(Some(200)));
    }

    #[test]
    fn what_always_stays_is_broken_within_its_cells() {
        let mut table = Table::new([Column::always("NODE"), Column::always("WHY")]);
        table.add(["node-1".into(), "a reason in many words ".repeat(10)]);
        let text = table.text_in(Some(80));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert_eq!(text.matches("reason").count(), 10);
    }
}
