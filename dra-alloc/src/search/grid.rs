//! Table of `columns × rows` values, each computed on first use.

use std::cell::OnceCell;
use std::marker::PhantomData;

use dra_attrs::Ix;

/// Table of `columns × rows` cells, filled on first use, with columns of kind `C` and rows of kind `R`. Allocates memory
/// with the first stored value.
#[derive(Debug)]
pub(crate) struct Grid<C, R, T> {
    columns: usize,
    rows: usize,
    cells: OnceCell<Box<[OnceCell<T>]>>,
    kinds: PhantomData<fn(C) -> R>,
}

impl<C, R, T> Grid<C, R, T> {
    /// Creates the table for columns and rows before the given positions.
    pub(crate) fn new(columns: Ix<C>, rows: Ix<R>) -> Self {
        Self { columns: columns.into(), rows: rows.into(), cells: OnceCell::new(), kinds: PhantomData }
    }

    /// Returns the value of a cell, computing it on first use. Errors are not stored.
    #[expect(
        clippy::indexing_slicing,
        reason = "columns and rows are positions in the lists that the grid was made for"
    )]
    pub(crate) fn get_or_try<E>(
        &self,
        column: Ix<C>,
        row: Ix<R>,
        compute: impl FnOnce() -> Result<T, E>,
    ) -> Result<&T, E> {
        let cells = self.cells.get_or_init(|| {
            let count = self.columns.saturating_mul(self.rows);
            std::iter::repeat_with(OnceCell::new).take(count).collect()
        });
        let cell = &cells[usize::from(column) * self.rows + usize::from(row)];
        if let Some(known) = cell.get() {
            return Ok(known);
        }
        let computed = compute()?;
        Ok(cell.get_or_init(|| computed))
    }
}
