//! Grammar of the language: tokens in, tree out.
//!
//! Open constructs are a list of frames, not a recursion: the depth of brackets is limited by the language, the stack of the
//! thread does not matter.

use super::recovery::{ARGUMENTS, ELEMENT, EXPRESSION, FIELD, FIELDS, INDEX, LIST, MAP, NAMES, PRIMARY};
use super::token::{Position, Token, TokenKind, TokenSet};
use super::tree::{Element, Entry, Field, Kind, Literal, NodeId, Tree};
use super::{lexer, literal, macros};
use crate::selector::error::Issue;

/// Largest number of code points of an expression.
const MOST_CODE_POINTS: usize = 100_000;

/// Largest number of open calls of a grammar rule, and of operators on a path of the tree.
const MOST_NESTED: u16 = 250;

/// Largest number of syntax errors that are told.
const MOST_ISSUES: usize = 100;

/// Words that are no names of variables or functions.
const RESERVED: &str = "as break const continue else for function if import let loop package namespace return \
                         var void while";

/// The text can't be read on.
#[derive(Debug)]
pub(super) struct Stop;

/// Part that was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) node: NodeId,
    /// Largest number of operators on a path from it.
    depth: u16,
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

const BINARY: [(TokenKind, Level, &str); 14] = [
    (TokenKind::Or, Level::Or, "_||_"),
    (TokenKind::And, Level::And, "_&&_"),
    (TokenKind::Equal, Level::Relation, "_==_"),
    (TokenKind::NotEqual, Level::Relation, "_!=_"),
    (TokenKind::In, Level::Relation, "@in"),
    (TokenKind::Less, Level::Relation, "_<_"),
    (TokenKind::LessEqual, Level::Relation, "_<=_"),
    (TokenKind::GreaterEqual, Level::Relation, "_>=_"),
    (TokenKind::Greater, Level::Relation, "_>_"),
    (TokenKind::Minus, Level::Sum, "_-_"),
    (TokenKind::Plus, Level::Sum, "_+_"),
    (TokenKind::Star, Level::Product, "_*_"),
    (TokenKind::Slash, Level::Product, "_/_"),
    (TokenKind::Percent, Level::Product, "_%_"),
];

/// Construct that is open around the part that is read.
#[derive(Debug)]
pub(super) enum Frame<'s> {
    Prefix {
        function: &'static str,
        at: Position,
        odd: bool,
    },
    Binary {
        function: &'static str,
        level: Level,
        left: Part,
        at: Position,
    },
    Logic {
        function: &'static str,
        level: Level,
        terms: Vec<Part>,
        operators: Vec<Position>,
    },
    Then {
        condition: Part,
        at: Position,
    },
    Else {
        condition: Part,
        then: Part,
        at: Position,
    },
    Group,
    Index {
        operand: Part,
        optional: bool,
        at: Position,
    },
    Arguments {
        name: Token<'s>,
        target: Option<Part>,
        is_plain: bool,
        arguments: Vec<Part>,
        at: Position,
    },
    /// Literal with elements as far as it is read.
    Literal {
        built: Kind<'s>,
        next: Begun<'s>,
        depth: u16,
        at: Position,
    },
}

/// Beginning of the next element of a literal, as far as it is read.
#[derive(Debug)]
pub(super) enum Begun<'s> {
    Element { optional: bool },
    Key { optional: bool },
    Value { key: NodeId, optional: bool },
    Field(Field<'s>),
}

/// Next step of the parser.
enum Next {
    /// Read an operand that has to begin with one of these.
    Operand(TokenSet),
    /// Go on after an operand.
    After(Part),
    /// Go on after an expression.
    Close(Part),
    /// The whole text is read.
    Done(NodeId),
}

/// Number of open calls of the grammar's rules.
#[derive(Default)]
struct Open {
    expressions: u16,
    relations: u16,
    calculations: u16,
}

pub(super) struct Parser<'s> {
    pub(super) text: &'s str,
    tokens: Vec<Token<'s>>,
    next: usize,
    pub(super) frames: Vec<Frame<'s>>,
    open: Open,
    pub(super) tree: Tree<'s>,
    pub(super) issues: Vec<Issue>,
}

/// Parses a text to a tree and its root; the error is what is wrong with it, in the order of the text.
pub(in crate::selector) fn parse(text: &str) -> Result<(Tree<'_>, NodeId), Vec<Issue>> {
    let size = text.chars().count();
    if size > MOST_CODE_POINTS {
        let message = format!("expression code point size exceeds limit: size: {size}, limit {MOST_CODE_POINTS}");
        return Err(vec![Issue::new(Position::NOWHERE, message)]);
    }
    let mut issues = Vec::new();
    let tokens = lexer::tokens(text, &mut issues);
    let (frames, open, tree) = (Vec::new(), Open { expressions: 1, relations: 1, calculations: 1 }, Tree::default());
    let mut parser = Parser { text, tokens, next: 0, frames, open, tree, issues };
    let root = parser.run();
    let Parser { tree, mut issues, .. } = parser;
    issues.sort_by_key(|issue| issue.at);
    if issues.len() > MOST_ISSUES {
        issues.truncate(MOST_ISSUES);
        let message = format!("Syntax error: More than {MOST_ISSUES} syntax errors");
        issues.push(Issue::new(Position::NOWHERE, message));
    }
    match root {
        Ok(root) if issues.is_empty() => Ok((tree, root)),
        _ => Err(issues),
    }
}

impl<'s> Parser<'s> {
    pub(super) fn token(&self) -> Token<'s> {
        let end = Token { kind: TokenKind::End, text: "", start: self.text.len(), at: Position::NOWHERE };
        self.tokens.get(self.next).or_else(|| self.tokens.last()).copied().unwrap_or(end)
    }

    pub(super) fn kind(&self) -> TokenKind {
        self.token().kind
    }

    /// Returns the kind of the token after the next one.
    pub(super) fn kind_after(&self) -> TokenKind {
        self.kind_at(self.next + 1)
    }

    fn kind_at(&self, index: usize) -> TokenKind {
        self.tokens.get(index).map_or(TokenKind::End, |token| token.kind)
    }

    pub(super) fn take(&mut self) -> Token<'s> {
        let token = self.token();
        self.next = (self.next + 1).min(self.tokens.len().saturating_sub(1));
        token
    }

    fn taken(&mut self, kind: TokenKind) -> bool {
        let is_there = self.kind() == kind;
        if is_there {
            self.take();
        }
        is_there
    }

    pub(super) fn issue(&mut self, at: Position, message: impl Into<String>) {
        self.issues.push(Issue::new(at, message.into()));
    }

    fn run(&mut self) -> Result<NodeId, Stop> {
        let mut next = Next::Operand(EXPRESSION);
        loop {
            next = match next {
                Next::Operand(expected) => self.operand(expected)?,
                Next::After(part) => self.after(part)?,
                Next::Close(part) => self.close(part)?,
                Next::Done(root) => return Ok(root),
            };
        }
    }

    /// Adds a node above parts of which the deepest has `depth` operators on a path.
    fn operator(&mut self, kind: Kind<'s>, at: Position, depth: u16) -> Result<Part, Stop> {
        self.part(kind, at, depth + 1)
    }

    fn part(&mut self, kind: Kind<'s>, at: Position, depth: u16) -> Result<Part, Stop> {
        let node = self.tree.add(kind, at);
        self.checked(Part { node, depth })
    }

    fn checked(&mut self, part: Part) -> Result<Part, Stop> {
        let message = if part.depth > MOST_NESTED {
            "max recursion depth exceeded"
        } else if self.tree.is_full() {
            "expression is too large: macros repeat parts of it too often"
        } else {
            return Ok(part);
        };
        self.issue(Position::NOWHERE, message);
        Err(Stop)
    }

    pub(super) fn call(&mut self, function: &'s str, arguments: &[NodeId], at: Position) -> NodeId {
        self.tree.add(Kind::Call { function, target: None, arguments: arguments.to_vec() }, at)
    }

    /// Opens a frame, which counts for the rules of the grammar.
    fn push(&mut self, frame: Frame<'s>) -> Result<(), Stop> {
        let (expressions, relations, calculations) = frame.opens();
        self.frames.push(frame);
        let open = &mut self.open;
        open.expressions += expressions;
        open.relations += relations;
        open.calculations += calculations;
        if open.expressions.max(open.relations).max(open.calculations) > MOST_NESTED {
            self.issue(Position::NOWHERE, format!("expression recursion limit exceeded: {MOST_NESTED}"));
            return Err(Stop);
        }
        Ok(())
    }

    fn pop(&mut self) -> Option<Frame<'s>> {
        let frame = self.frames.pop()?;
        let (expressions, relations, calculations) = frame.opens();
        self.open.expressions -= expressions;
        self.open.relations -= relations;
        self.open.calculations -= calculations;
        Some(frame)
    }

    fn operand(&mut self, expected: TokenSet) -> Result<Next, Stop> {
        self.begin(expected)?;
        let token = self.token();
        match token.kind {
            TokenKind::Not => self.negated(),
            TokenKind::Minus if !matches!(self.kind_after(), TokenKind::Int | TokenKind::Float) => self.minus(),
            TokenKind::OpenParen => {
                self.take();
                self.push(Frame::Group)?;
                Ok(Next::Operand(EXPRESSION))
            }
            TokenKind::OpenBracket => self.elements(Kind::List(Vec::new())),
            TokenKind::OpenBrace => self.elements(Kind::Map(Vec::new())),
            TokenKind::Dot | TokenKind::Ident => self.name(),
            _ => self.literal().map(Next::After),
        }
    }

    fn negated(&mut self) -> Result<Next, Stop> {
        let (at, mut odd) = (self.token().at, false);
        while self.taken(TokenKind::Not) {
            odd = !odd;
        }
        self.begin_negated()?;
        self.push(Frame::Prefix { function: "!_", at, odd })?;
        Ok(Next::Operand(EXPRESSION))
    }

    fn minus(&mut self) -> Result<Next, Stop> {
        let (at, mut odd, mut start) = (self.token().at, false, 0);
        while self.kind() == TokenKind::Minus {
            start = self.take().start;
            odd = !odd;
        }
        if !PRIMARY.has(self.kind()) || matches!(self.frames.last(), Some(Frame::Prefix { .. })) {
            return Err(self.no_alternative(start));
        }
        self.push(Frame::Prefix { function: "-_", at, odd })?;
        Ok(Next::Operand(EXPRESSION))
    }

    fn literal(&mut self) -> Result<Part, Stop> {
        let first = self.take();
        let negative = first.kind == TokenKind::Minus;
        let token = if negative { self.take() } else { first };
        let value = match token.kind {
            TokenKind::True => Ok(Literal::Bool(true)),
            TokenKind::False => Ok(Literal::Bool(false)),
            TokenKind::Int => literal::int(negative, token.text).map(Literal::Int).ok_or("invalid int literal"),
            TokenKind::Uint => {
                let digits = token.text.trim_end_matches(['u', 'U']);
                literal::uint(digits).map(Literal::Uint).ok_or("invalid uint literal")
            }
            TokenKind::Float => {
                let value = token.text.parse::<f64>().ok().filter(|value| value.is_finite());
                let signed = value.map(|value| Literal::Double(value.copysign(if negative { -1.0 } else { 1.0 })));
                signed.ok_or("invalid double literal")
            }
            TokenKind::Text => literal::string(token.text).map(Literal::String),
            TokenKind::Bytes => literal::bytes(token.text).map(Literal::Bytes),
            _ => Ok(Literal::Null),
        };
        let value = value.unwrap_or_else(|message| {
            self.issue(first.at, message);
            Literal::Null
        });
        self.part(Kind::Literal(value), first.at, 0)
    }

    /// Reads a variable, a call or a message literal, each perhaps with a leading dot.
    fn name(&mut self) -> Result<Next, Stop> {
        let start = self.token().start;
        let global = self.taken(TokenKind::Dot);
        if self.kind() != TokenKind::Ident {
            return Err(self.no_name(start));
        }
        if let Some(name) = self.message_name(global) {
            return self.elements(Kind::Message { name, fields: Vec::new() });
        }
        let name = self.take();
        if RESERVED.split(' ').any(|word| word == name.text) {
            self.issue(name.at, format!("reserved identifier: {}", name.text));
        }
        if self.kind() == TokenKind::OpenParen {
            let name = Token { text: self.dotted(start, name, global), ..name };
            return self.arguments(name, None, !global);
        }
        let text = self.dotted(start, name, global);
        self.part(Kind::Ident { name: text, global }, name.at, 0).map(Next::After)
    }

    /// Returns a name with its leading dot, if nothing stands between them.
    fn dotted(&self, start: usize, name: Token<'s>, global: bool) -> &'s str {
        let whole = self.text.get(start..name.start + name.text.len()).unwrap_or(name.text);
        if global && whole.len() == name.text.len() + 1 { whole } else { name.text }
    }

    /// Takes the name of a message literal: names with dots between them and a brace behind.
    fn message_name(&mut self, global: bool) -> Option<String> {
        let mut end = self.next + 1;
        while self.kind_at(end) == TokenKind::Dot && self.kind_at(end + 1) == TokenKind::Ident {
            end += 2;
        }
        if self.kind_at(end) != TokenKind::OpenBrace {
            return None;
        }
        let start = self.next - usize::from(global);
        let name = self.tokens.get(start..end)?.iter().map(|token| token.text).collect();
        self.next = end;
        Some(name)
    }

    fn arguments(&mut self, name: Token<'s>, target: Option<Part>, is_plain: bool) -> Result<Next, Stop> {
        let at = self.take().at;
        self.begin(ARGUMENTS)?;
        if self.taken(TokenKind::CloseParen) {
            return self.called(name, target, is_plain, &[], at).map(Next::After);
        }
        self.push(Frame::Arguments { name, target, is_plain, arguments: Vec::new(), at })?;
        Ok(Next::Operand(EXPRESSION))
    }

    fn called(
        &mut self,
        name: Token<'s>,
        target: Option<Part>,
        is_plain: bool,
        arguments: &[Part],
        at: Position,
    ) -> Result<Part, Stop> {
        let depth = target.iter().chain(arguments).map(|part| part.depth).max().unwrap_or_default();
        let depth = depth + u16::from(target.is_some());
        let arguments: Vec<NodeId> = arguments.iter().map(|part| part.node).collect();
        let target = target.map(|part| part.node);
        let expanded = if is_plain { macros::expand(self, name.text, target, &arguments, at) } else { None };
        match expanded {
            Some(node) => self.checked(Part { node, depth }),
            None => self.part(Kind::Call { function: name.text, target, arguments }, at, depth),
        }
    }

    /// Reads the beginning of a list, a map or a message literal.
    fn elements(&mut self, empty: Kind<'s>) -> Result<Next, Stop> {
        let at = self.take().at;
        let (first, _, closing) = borders(&empty);
        self.begin(first)?;
        if self.taken(TokenKind::Comma) {
            self.expect(closing, self.follow())?;
        } else if !self.taken(closing) {
            return self.element(empty, 0, at);
        }
        self.part(empty, at, 0).map(Next::After)
    }

    fn element(&mut self, built: Kind<'s>, depth: u16, at: Position) -> Result<Next, Stop> {
        let optional = self.taken(TokenKind::Question);
        let next = match &built {
            Kind::List(_) => Begun::Element { optional },
            Kind::Map(_) => Begun::Key { optional },
            _ => {
                self.begin(NAMES)?;
                let token = self.field_name();
                let colon = self.expect(TokenKind::Colon, EXPRESSION)?;
                Begun::Field(Field { name: token.text, value: NodeId::default(), optional, at: colon.at })
            }
        };
        self.push(Frame::Literal { built, next, depth, at })?;
        Ok(Next::Operand(EXPRESSION))
    }

    fn field_name(&mut self) -> Token<'s> {
        let token = self.take();
        if token.kind == TokenKind::QuotedIdent {
            self.issue(token.at, "unsupported syntax: '`'");
        }
        token
    }

    /// Goes on after an operand: a member of it, an operator, or the end of what is open.
    fn after(&mut self, part: Part) -> Result<Next, Stop> {
        match self.kind() {
            TokenKind::Dot => return self.member(part),
            TokenKind::OpenBracket => return self.index(part),
            _ => {}
        }
        let mut part = part;
        if let Some(Frame::Prefix { function, at, odd }) = self.frames.last() {
            let (function, at, odd) = (*function, *at, *odd);
            self.pop();
            if odd {
                let arguments = vec![part.node];
                part = self.part(Kind::Call { function, target: None, arguments }, at, part.depth)?;
            }
        }
        if let Some((_, level, function)) = BINARY.iter().find(|(kind, ..)| *kind == self.kind()) {
            return self.binary(part, *level, function);
        }
        self.reduce(part, Level::Or).map(Next::Close)
    }

    fn binary(&mut self, part: Part, level: Level, function: &'static str) -> Result<Next, Stop> {
        let is_logic = level <= Level::And;
        let part = self.reduce_above(part, level)?;
        let at = self.take().at;
        if let Some(Frame::Logic { level: same, terms, operators, .. }) = self.frames.last_mut()
            && *same == level
        {
            terms.push(part);
            operators.push(at);
        } else if is_logic {
            self.push(Frame::Logic { function, level, terms: vec![part], operators: vec![at] })?;
        } else {
            let left = self.reduce(part, level)?;
            self.push(Frame::Binary { function, level, left, at })?;
        }
        Ok(Next::Operand(EXPRESSION))
    }

    /// Closes the operators that bind more strongly than a level, or as strongly when they are no chains of `&&` and
    /// `||`.
    fn reduce_above(&mut self, part: Part, level: Level) -> Result<Part, Stop> {
        match [Level::Or, Level::And, Level::Relation, Level::Sum, Level::Product]
            .into_iter()
            .find(|other| *other > level)
        {
            Some(stronger) => self.reduce(part, stronger),
            None => Ok(part),
        }
    }

    /// Closes the operators that bind at least as strongly as a level.
    fn reduce(&mut self, part: Part, weakest: Level) -> Result<Part, Stop> {
        let mut part = part;
        loop {
            match self.frames.last() {
                Some(Frame::Binary { level, .. } | Frame::Logic { level, .. }) if *level >= weakest => {}
                _ => return Ok(part),
            }
            part = match self.pop() {
                Some(Frame::Binary { function, left, at, .. }) => {
                    let arguments = vec![left.node, part.node];
                    let kind = Kind::Call { function, target: None, arguments };
                    self.operator(kind, at, left.depth.max(part.depth))?
                }
                Some(Frame::Logic { function, mut terms, operators, .. }) => {
                    terms.push(part);
                    self.balanced(function, &terms, &operators)?
                }
                _ => return Ok(part),
            };
        }
    }

    /// Builds a balanced tree of a chain: its depth grows with the logarithm of the length.
    fn balanced(&mut self, function: &'static str, terms: &[Part], operators: &[Position]) -> Result<Part, Stop> {
        let middle = operators.len() / 2;
        let (Some(at), [_, _, ..]) = (operators.get(middle).copied(), terms) else {
            return terms.first().copied().ok_or(Stop);
        };
        let (left, right) = terms.split_at(middle + 1);
        let left = self.balanced(function, left, operators.get(..middle).unwrap_or_default())?;
        let right = self.balanced(function, right, operators.get(middle + 1..).unwrap_or_default())?;
        let arguments = vec![left.node, right.node];
        self.part(Kind::Call { function, target: None, arguments }, at, left.depth.max(right.depth))
    }

    fn member(&mut self, operand: Part) -> Result<Next, Stop> {
        let dot = self.take();
        if self.taken(TokenKind::Question) {
            self.begin(NAMES)?;
            let field = self.field_name();
            let text = Literal::String(field.text.into());
            let name = self.tree.add(Kind::Literal(text), field.at);
            let kind = Kind::Call { function: "_?._", target: None, arguments: vec![operand.node, name] };
            return self.operator(kind, dot.at, operand.depth).map(Next::After);
        }
        if !NAMES.has(self.kind()) {
            return Err(self.no_name(dot.start));
        }
        let name = self.field_name();
        if name.kind == TokenKind::Ident && self.kind() == TokenKind::OpenParen {
            return self.arguments(name, Some(operand), true);
        }
        let kind = Kind::Select { operand: operand.node, field: name.text, test: false };
        self.operator(kind, dot.at, operand.depth).map(Next::After)
    }

    fn index(&mut self, operand: Part) -> Result<Next, Stop> {
        let at = self.take().at;
        self.begin(INDEX)?;
        let optional = self.taken(TokenKind::Question);
        self.push(Frame::Index { operand, optional, at })?;
        Ok(Next::Operand(EXPRESSION))
    }

    /// Goes on after an expression: what is open around it tells how.
    fn close(&mut self, part: Part) -> Result<Next, Stop> {
        if self.kind() == TokenKind::Question && !matches!(self.frames.last(), Some(Frame::Then { .. })) {
            let at = self.take().at;
            self.push(Frame::Then { condition: part, at })?;
            return Ok(Next::Operand(EXPRESSION));
        }
        match self.pop() {
            None => {
                self.end()?;
                Ok(Next::Done(part.node))
            }
            Some(Frame::Then { condition, at }) => {
                self.expect(TokenKind::Colon, EXPRESSION)?;
                self.push(Frame::Else { condition, then: part, at })?;
                Ok(Next::Operand(EXPRESSION))
            }
            Some(Frame::Else { condition, then, at }) => {
                let depth = condition.depth.max(then.depth).max(part.depth);
                let arguments = vec![condition.node, then.node, part.node];
                let kind = Kind::Call { function: "_?_:_", target: None, arguments };
                self.operator(kind, at, depth).map(Next::Close)
            }
            Some(Frame::Group) => {
                self.expect(TokenKind::CloseParen, self.follow())?;
                Ok(Next::After(part))
            }
            Some(Frame::Index { operand, optional, at }) => {
                self.expect(TokenKind::CloseBracket, self.follow())?;
                let function = if optional { "_[?_]" } else { "_[_]" };
                let kind = Kind::Call { function, target: None, arguments: vec![operand.node, part.node] };
                self.operator(kind, at, operand.depth.max(part.depth)).map(Next::After)
            }
            Some(frame) => self.close_element(frame, part),
        }
    }

    /// Goes on after an element of a list, a map, a message or arguments.
    fn close_element(&mut self, frame: Frame<'s>, part: Part) -> Result<Next, Stop> {
        match frame {
            Frame::Arguments { name, target, is_plain, mut arguments, at } => {
                arguments.push(part);
                if self.taken(TokenKind::Comma) {
                    self.push(Frame::Arguments { name, target, is_plain, arguments, at })?;
                    return Ok(Next::Operand(EXPRESSION));
                }
                self.expect(TokenKind::CloseParen, self.follow())?;
                self.called(name, target, is_plain, &arguments, at).map(Next::After)
            }
            Frame::Literal { built, next: Begun::Key { optional }, depth, at } => {
                self.expect(TokenKind::Colon, EXPRESSION)?;
                let next = Begun::Value { key: part.node, optional };
                self.push(Frame::Literal { built, next, depth: depth.max(part.depth), at })?;
                Ok(Next::Operand(EXPRESSION))
            }
            Frame::Literal { mut built, next, depth, at } => {
                let (value, depth) = (part.node, depth.max(part.depth));
                match (&mut built, next) {
                    (Kind::List(all), Begun::Element { optional }) => all.push(Element { node: value, optional }),
                    (Kind::Map(all), Begun::Value { key, optional }) => all.push(Entry { key, value, optional }),
                    (Kind::Message { fields, .. }, Begun::Field(field)) => fields.push(Field { value, ..field }),
                    _ => {}
                }
                let (_, next, closing) = borders(&built);
                if self.separated(next, closing)? {
                    return self.element(built, depth, at);
                }
                self.part(built, at, depth).map(Next::After)
            }
            _ => Err(Stop),
        }
    }

    /// Takes a comma before another element, or the end of the elements with or without a comma before it.
    fn separated(&mut self, element: TokenSet, closing: TokenKind) -> Result<bool, Stop> {
        if self.kind() == TokenKind::Comma && element.has(self.kind_after()) {
            self.take();
            return Ok(true);
        }
        self.begin(TokenSet::of(&[TokenKind::Comma, closing]))?;
        self.taken(TokenKind::Comma);
        self.expect(closing, self.follow())?;
        Ok(false)
    }
}

/// Returns the tokens that a literal's elements begin with, those that the next of them begins with, and the last.
const fn borders(literal: &Kind<'_>) -> (TokenSet, TokenSet, TokenKind) {
    match literal {
        Kind::List(_) => (LIST, ELEMENT, TokenKind::CloseBracket),
        Kind::Map(_) => (MAP, ELEMENT, TokenKind::CloseBrace),
        _ => (FIELDS, FIELD, TokenKind::CloseBrace),
    }
}

impl Frame<'_> {
    /// Returns how many calls of the rules for expressions, relations and calculations a frame keeps open.
    const fn opens(&self) -> (u16, u16, u16) {
        match self {
            Self::Prefix { .. } | Self::Logic { .. } | Self::Then { .. } => (0, 0, 0),
            Self::Binary { level: Level::Relation, .. } => (0, 1, 0),
            Self::Binary { .. } => (0, 0, 1),
            Self::Else { .. } => (1, 0, 0),
            _ => (1, 1, 1),
        }
    }
}
