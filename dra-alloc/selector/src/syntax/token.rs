//! Tokens of the language and how messages show them.

use crate::position::Position;

/// Writes the kinds of tokens, and a list of them with their names in messages.
macro_rules! kinds {
    ($($kind:ident $name:literal,)*) => {
        /// Kind of a token. The order is that of sets in messages.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub(super) enum TokenKind { $($kind),* }

        /// Kinds with their names in messages. Those of operators are the operators in quotes.
        pub(super) const KINDS: &[(TokenKind, &str)] = &[$((TokenKind::$kind, $name)),*];
    };
}

kinds! {
    End "<EOF>",
    Equal "'=='", NotEqual "'!='", In "'in'", Less "'<'", LessEqual "'<='", GreaterEqual "'>='", Greater "'>'",
    And "'&&'", Or "'||'",
    OpenBracket "'['", CloseBracket "']'", OpenBrace "'{'", CloseBrace "'}'", OpenParen "'('", CloseParen "')'",
    Dot "'.'", Comma "','", Minus "'-'", Not "'!'", Question "'?'", Colon "':'",
    Plus "'+'", Star "'*'", Slash "'/'", Percent "'%'",
    True "'true'", False "'false'", Null "'null'",
    Float "NUM_FLOAT", Int "NUM_INT", Uint "NUM_UINT", Text "STRING", Bytes "BYTES",
    Ident "IDENTIFIER", QuotedIdent "ESC_IDENTIFIER",
}

/// Set of token kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TokenSet(u64);

impl TokenSet {
    pub(super) const fn of(kinds: &[TokenKind]) -> Self {
        let (mut bits, mut rest) = (0, kinds);
        while let [first, tail @ ..] = rest {
            bits |= 1 << (*first as u64);
            rest = tail;
        }
        Self(bits)
    }

    /// Returns the kinds from one through another, in their order.
    pub(super) const fn through(first: TokenKind, last: TokenKind) -> Self {
        Self((2 << (last as u64)) - (1 << (first as u64)))
    }

    pub(super) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn has(self, kind: TokenKind) -> bool {
        self.0 & (1 << (kind as u64)) != 0
    }
}

impl std::fmt::Display for TokenSet {
    /// Writes one kind bare and several in braces.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = KINDS.iter().filter(|(kind, _)| self.has(*kind)).map(|(_, name)| *name).collect();
        match names.as_slice() {
            [one] => f.write_str(one),
            several => write!(f, "{{{}}}", several.join(", ")),
        }
    }
}

impl From<TokenKind> for TokenSet {
    fn from(kind: TokenKind) -> Self {
        Self::of(&[kind])
    }
}

/// Token with its place in the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'s> {
    pub(super) kind: TokenKind,
    pub(super) text: &'s str,
    /// Offset of the first byte.
    pub(super) start: usize,
    pub(super) at: Position,
}

impl Token<'_> {
    /// Returns the token as messages show it, in quotes.
    pub(super) fn shown(&self) -> String {
        if self.kind == TokenKind::End { "'<EOF>'".to_owned() } else { format!("'{}'", escaped(self.text)) }
    }
}

/// Returns a text with line ends and tabs escaped.
pub(super) fn escaped(text: &str) -> String {
    text.replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t")
}
