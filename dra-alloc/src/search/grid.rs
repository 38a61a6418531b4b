//! Table of `columns × rows` values, each computed on first use.

use std::cell::OnceCell;

/// Table of `columns × rows` cells, filled on first use. Allocates memory with the first stored value.
#[derive(Debug)]
pub(crate) struct Grid<T> {
    columns: usize,
    rows: usize,
    cells: OnceCell<Box<[OnceCell<T>]>>,
}

impl<T> Grid<T> {
    pub(crate) const fn new(columns: usize, rows: usize) -> Self {
        Self { columns, rows, cells: OnceCell::new() }
    }

    /// Returns the value of a cell, computing it on first use. Errors are not stored.
    #[expect(
        clippy::indexing_slicing,
        reason = "columns and rows are positions in the lists that the grid was made for"
    )]
    pub(crate) fn get_or_try<E>(
        &self,
        column: usize,
        row: usize,
        compute: impl FnOnce() -> Result<T, E>,
    ) -> Result<&T, E> {
        let cells = self.cells.get_or_init(|| {
            let count = self.columns.saturating_mul(self.rows);
            std::iter::repeat_with(OnceCell::new).take(count).collect()
        });
        let cell = &cells[column * self.rows + row];
        if let Some(known) = cell.get() {
            return Ok(known);
        }
        let computed = compute()?;
        Ok(cell.get_or_init(|| computed))
    }
}
