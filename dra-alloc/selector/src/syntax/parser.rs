//! State of the parser: the tokens that are left, the constructs that are open, the tree so far.

use dra_attrs::internal::release::ListFunctions;

use super::token::{Token, TokenKind};
use super::tree::{Kind, NodeId, Tree};
use crate::error::Issue;
use crate::position::Position;

/// The text can't be read on.
#[derive(Debug)]
pub(super) struct Stop;

/// Part that was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) node: NodeId,
    /// Largest number of operators on a path from it.
    pub(super) depth: u16,
}

/// Strength with which an operator binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Or,
    And,
    Relation,
    Sum,
    Product,
}

/// Construct that is open around the part that is read.
#[derive(Debug)]
pub(super) struct Frame<'s> {
    pub(super) open: Open<'s>,
    /// Operands or arguments that are read.
    pub(super) parts: Vec<NodeId>,
    /// Largest number of operators on a path from what is read.
    pub(super) depth: u16,
    pub(super) at: Position,
}

/// Kind of an open construct. Of a literal it has the elements that are read, and the beginning of the next.
#[derive(Debug)]
pub(super) enum Open<'s> {
    Prefix { function: &'static str, odd: bool },
    Binary { function: &'static str, level: Level },
    Logic { function: &'static str, level: Level, operators: Vec<Position> },
    Then,
    Else,
    Group,
    Index { function: &'static str },
    Arguments { name: Token<'s>, target: Option<NodeId>, is_plain: bool },
    Literal { built: Kind<'s>, key: Option<NodeId>, optional: bool },
}

/// Parser of a text.
pub(super) struct Parser<'s> {
    pub(super) text: &'s str,
    pub(super) tokens: Vec<Token<'s>>,
    pub(super) next: usize,
    pub(super) frames: Vec<Frame<'s>>,
    /// Number of open calls of the grammar's rules for expressions, relations and calculations.
    pub(super) rules: [u16; 3],
    pub(super) tree: Tree<'s>,
    pub(super) issues: Vec<Issue>,
    pub(super) functions: ListFunctions,
}

impl<'s> Parser<'s> {
    pub(super) fn token(&self) -> Token<'s> {
        let end = Token { kind: TokenKind::End, text: "", start: self.text.len(), at: Position::NOWHERE };
        self.tokens.get(self.next).copied().unwrap_or(end)
    }

    pub(super) fn kind(&self) -> TokenKind {
        self.token().kind
    }

    /// Returns the kind of the token after the next one.
    pub(super) fn kind_after(&self) -> TokenKind {
        self.kind_at(self.next + 1)
    }

    pub(super) fn kind_at(&self, index: usize) -> TokenKind {
        self.tokens.get(index).map_or(TokenKind::End, |token| token.kind)
    }

    pub(super) fn take(&mut self) -> Token<'s> {
        let token = self.token();
        self.next = (self.next + 1).min(self.tokens.len().saturating_sub(1));
        token
    }

    pub(super) fn taken(&mut self, kind: TokenKind) -> bool {
        let is_there = self.kind() == kind;
        if is_there {
            self.take();
        }
        is_there
    }

    pub(super) fn issue(&mut self, at: Position, message: impl Into<String>) {
        self.issues.push(Issue::new(at, message.into()));
    }
}

impl<'s> Frame<'s> {
    pub(super) const fn new(open: Open<'s>, at: Position) -> Self {
        Self { open, parts: Vec::new(), depth: 0, at }
    }

    pub(super) fn with(first: Part, open: Open<'s>, at: Position) -> Self {
        Self::new(open, at).and(first)
    }

    pub(super) fn and(mut self, part: Part) -> Self {
        self.parts.push(part.node);
        Self { depth: self.depth.max(part.depth), ..self }
    }
}

impl Open<'_> {
    /// Returns how many calls of the rules for expressions, relations and calculations a construct keeps open.
    pub(super) const fn rules(&self) -> [u16; 3] {
        match self {
            Self::Prefix { .. } | Self::Logic { .. } | Self::Then => [0, 0, 0],
            Self::Binary { level: Level::Relation, .. } => [0, 1, 0],
            Self::Binary { .. } => [0, 0, 1],
            Self::Else => [1, 0, 0],
            _ => [1, 1, 1],
        }
    }
}
