//! Table of `columns × rows` values, each computed on first use.

use std::cell::OnceCell;
use std::marker::PhantomData;

use dra_attrs::Index;

/// Number of rows of a page. Tables with more rows are made page by page.
const PAGE: usize = 128;

/// Table of `columns × rows` cells, filled on first use, with columns of kind `C` and rows of kind `R`. Allocates memory
/// with the first stored value; of a table with many rows, for the pages only that have a value.
#[derive(Debug)]
pub(crate) struct Grid<C, R, T> {
    columns: usize,
    rows: usize,
    cells: OnceCell<Cells<T>>,
    kinds: PhantomData<fn(C) -> R>,
}

#[derive(Debug)]
enum Cells<T> {
    Whole(Page<T>),
    Pages(Box<[OnceCell<Page<T>>]>),
}

type Page<T> = Box<[OnceCell<T>]>;

impl<C, R, T> Grid<C, R, T> {
    /// Creates the table for columns and rows before the given positions.
    pub(crate) fn new(columns: Index<C>, rows: Index<R>) -> Self {
        Self { columns: columns.into(), rows: rows.into(), cells: OnceCell::new(), kinds: PhantomData }
    }

    /// Returns the value of a cell, computing it on first use. Errors are not stored.
    pub(crate) fn get_or_try<E>(
        &self,
        column: Index<C>,
        row: Index<R>,
        compute: impl FnOnce() -> Result<T, E>,
    ) -> Result<&T, E> {
        let cell = self.cell(column.into(), row.into());
        if let Some(known) = cell.get() {
            return Ok(known);
        }
        let computed = compute()?;
        Ok(cell.get_or_init(|| computed))
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "columns and rows are positions in the lists that the grid was made for"
    )]
    fn cell(&self, column: usize, row: usize) -> &OnceCell<T> {
        let cells = self.cells.get_or_init(|| {
            if self.rows <= PAGE {
                Cells::Whole(empty(self.columns.saturating_mul(self.rows)))
            } else {
                Cells::Pages(empty(self.columns.saturating_mul(self.rows.div_ceil(PAGE))))
            }
        });
        match cells {
            Cells::Whole(cells) => &cells[column * self.rows + row],
            Cells::Pages(pages) => {
                let page = &pages[column * self.rows.div_ceil(PAGE) + row / PAGE];
                &page.get_or_init(|| empty(PAGE))[row % PAGE]
            }
        }
    }
}

fn empty<T>(count: usize) -> Box<[OnceCell<T>]> {
    std::iter::repeat_with(OnceCell::new).take(count).collect()
}
