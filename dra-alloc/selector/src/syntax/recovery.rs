//! Expected tokens by place, and messages for others.

use super::parser::{Open, Parser, Stop};
use super::token::{Token, TokenKind, TokenSet, escaped};
use super::tree::Kind;
use crate::error::Issue;

/// First tokens of an operand without a sign.
pub(super) const PRIMARY: TokenSet = TokenSet::through(TokenKind::True, TokenKind::Ident).or(TokenSet::of(&[
    TokenKind::OpenBracket,
    TokenKind::OpenBrace,
    TokenKind::OpenParen,
    TokenKind::Dot,
]));
/// First tokens of an expression.
pub(super) const EXPRESSION: TokenSet = PRIMARY.or(TokenSet::of(&[TokenKind::Minus, TokenKind::Not]));
const SEPARATORS: TokenSet = TokenSet::of(&[TokenKind::Question, TokenKind::Comma]);
pub(super) const ARGUMENTS: TokenSet = EXPRESSION.or(TokenSet::of(&[TokenKind::CloseParen]));
/// First tokens of an index, and of a list's or a map's next element.
pub(super) const INDEX: TokenSet = EXPRESSION.or(TokenSet::of(&[TokenKind::Question]));
const LIST: TokenSet = EXPRESSION.or(SEPARATORS).or(TokenSet::of(&[TokenKind::CloseBracket]));
const MAP: TokenSet = EXPRESSION.or(SEPARATORS).or(TokenSet::of(&[TokenKind::CloseBrace]));
pub(super) const NAMES: TokenSet = TokenSet::of(&[TokenKind::Ident, TokenKind::QuotedIdent]);
const FIELDS: TokenSet = NAMES.or(SEPARATORS).or(TokenSet::of(&[TokenKind::CloseBrace]));
/// First tokens of a message's next field.
const FIELD: TokenSet = NAMES.or(TokenSet::of(&[TokenKind::Question]));
/// Tokens that go on after an operand, besides `?` and `:`.
const OPERATORS: TokenSet = TokenSet::through(TokenKind::Equal, TokenKind::Or)
    .or(TokenSet::through(TokenKind::Plus, TokenKind::Percent))
    .or(TokenSet::of(&[TokenKind::Dot, TokenKind::OpenBracket, TokenKind::Minus]));

/// Returns the tokens that a literal's elements begin with, those that the next of them begins with, and the last.
pub(super) const fn borders(literal: &Kind<'_>) -> (TokenSet, TokenSet, TokenKind) {
    match literal {
        Kind::List(_) => (LIST, INDEX, TokenKind::CloseBracket),
        Kind::Map(_) => (MAP, INDEX, TokenKind::CloseBrace),
        _ => (FIELDS, FIELD, TokenKind::CloseBrace),
    }
}

impl<'s> Parser<'s> {
    fn extraneous(&mut self, expected: TokenSet) {
        let token = self.take();
        self.tell(token, &format!("extraneous input {} expecting {expected}", token.shown()));
    }

    fn mismatched(&mut self, expected: TokenSet) -> Stop {
        let token = self.token();
        self.tell(token, &format!("mismatched input {} expecting {expected}", token.shown()));
        Stop
    }

    fn tell(&mut self, token: Token<'s>, message: &str) {
        self.issues.push(Issue::new(token.at, format!("Syntax error: {message}")));
    }

    /// Lets something begin that has to start with one of a set. One token too many is dropped.
    pub(super) fn begin(&mut self, expected: TokenSet) -> Result<(), Stop> {
        if expected.has(self.kind()) {
            return Ok(());
        }
        if self.kind() != TokenKind::End && expected.has(self.kind_after()) {
            self.extraneous(expected);
            return Ok(());
        }
        Err(self.mismatched(expected))
    }

    /// Takes a token that has to come. One token too many is dropped; a missing one is put in where the text can go on.
    pub(super) fn expect(&mut self, kind: TokenKind, follow: TokenSet) -> Result<Token<'s>, Stop> {
        if self.kind() == kind {
            return Ok(self.take());
        }
        if self.kind_after() == kind {
            self.extraneous(kind.into());
            return Ok(self.take());
        }
        if !follow.has(self.kind()) {
            return Err(self.mismatched(kind.into()));
        }
        let token = self.token();
        self.tell(token, &format!("missing {} at {}", TokenSet::from(kind), token.shown()));
        Ok(token)
    }

    /// Drops what can't follow a `!`.
    pub(super) fn begin_negated(&mut self) -> Result<(), Stop> {
        while !EXPRESSION.has(self.kind()) {
            let is_end = self.kind() == TokenKind::End;
            self.extraneous(EXPRESSION);
            if is_end {
                return Err(Stop);
            }
        }
        Ok(())
    }

    /// Refuses the text from the byte `start` through the next token.
    pub(super) fn no_alternative(&mut self, start: usize) -> Stop {
        let token = self.token();
        let end = token.start + token.text.len();
        let text = self.text.get(start..end).unwrap_or_default();
        self.tell(token, &format!("no viable alternative at input '{}'", escaped(text)));
        Stop
    }

    /// Refuses a word where a name has to come.
    pub(super) fn no_name(&mut self, start: usize) -> Stop {
        match self.kind() {
            TokenKind::True | TokenKind::False | TokenKind::Null => self.mismatched(TokenKind::Ident.into()),
            _ => self.no_alternative(start),
        }
    }

    /// Returns what may follow an operand within the open frames.
    pub(super) fn follow(&self) -> TokenSet {
        let mut follow = OPERATORS;
        for frame in self.frames.iter().rev() {
            let closing = match &frame.open {
                Open::Prefix { .. } | Open::Binary { .. } | Open::Logic { .. } => continue,
                Open::Then => return follow.or(TokenKind::Colon.into()),
                Open::Else => {
                    follow = follow.or(TokenKind::Question.into());
                    continue;
                }
                Open::Group => TokenKind::CloseParen.into(),
                Open::Index { .. } => TokenKind::CloseBracket.into(),
                Open::Arguments { .. } => TokenSet::of(&[TokenKind::CloseParen, TokenKind::Comma]),
                Open::Literal { built: Kind::Map(_), key: None, .. } => TokenKind::Colon.into(),
                Open::Literal { built, .. } => TokenSet::of(&[borders(built).2, TokenKind::Comma]),
            };
            return follow.or(closing).or(TokenKind::Question.into());
        }
        follow.or(TokenSet::of(&[TokenKind::Question, TokenKind::End]))
    }
}
