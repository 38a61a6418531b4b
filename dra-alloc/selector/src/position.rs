//! Positions in the text of an expression.

/// Position of a part of an expression: line from 1, column in code points from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    pub(super) line: i32,
    pub(super) column: i32,
}

impl Position {
    /// Place of a message about the whole expression.
    pub(super) const NOWHERE: Self = Self { line: -1, column: -1 };
}
