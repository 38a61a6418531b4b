//! Grammar of the language: tokens in, tree out.
//!
//! Open constructs are a list of frames, not a recursion: the depth of brackets is limited by the language, the stack of the
//! thread does not matter.

use dra_attrs::internal::release::ListFunctions;

use super::parser::{Frame, Level, Open, Parser, Part, Stop};
use super::recovery::{ARGUMENTS, EXPRESSION, INDEX, NAMES, PRIMARY, borders};
use super::token::{Token, TokenKind, TokenSet};
use super::tree::{Element, Kind, Literal, NodeId, Tree};
use super::{lexer, literal, macros};
use crate::error::Issue;
use crate::position::Position;

/// Largest number of code points of an expression.
const MOST_CODE_POINTS: usize = 100_000;

/// Largest number of open calls of a grammar rule, and of operators on a path of the tree.
const MOST_NESTED: u16 = 250;

/// Largest number of syntax errors that are told.
const MOST_ISSUES: usize = 100;

/// Words that are no names of variables or functions.
const RESERVED: &str = "as break const continue else for function if import let loop package namespace return \
                         var void while";

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

/// Parses a text to a tree and its root; the error is what is wrong with it, in the order of the text.
pub(crate) fn parse(text: &str, functions: ListFunctions) -> Result<(Tree<'_>, NodeId), Vec<Issue>> {
    let size = text.chars().count();
    if size > MOST_CODE_POINTS {
        let message = format!("expression code point size exceeds limit: size: {size}, limit {MOST_CODE_POINTS}");
        return Err(vec![Issue::new(Position::NOWHERE, message)]);
    }
    let mut issues = Vec::new();
    let tokens = lexer::tokens(text, &mut issues);
    let (frames, tree) = (Vec::new(), Tree::default());
    let mut parser = Parser { text, tokens, next: 0, frames, rules: [1; 3], tree, issues, functions };
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

    /// Adds a node from which a path has at most `depth` operators.
    fn part(&mut self, kind: Kind<'s>, at: Position, depth: u16) -> Result<Part, Stop> {
        let node = self.tree.add(kind, at);
        self.checked(Part { node, depth })
    }

    /// Adds the call of an operator.
    fn call(&mut self, function: &'s str, arguments: Vec<NodeId>, at: Position, depth: u16) -> Result<Part, Stop> {
        self.part(Kind::Call { function, target: None, arguments }, at, depth)
    }

    fn checked(&mut self, part: Part) -> Result<Part, Stop> {
        let message = if part.depth > MOST_NESTED {
            "max recursion depth exceeded"
        } else if self.tree.full {
            "expression is too large: macros repeat parts of it too often"
        } else {
            return Ok(part);
        };
        self.issue(Position::NOWHERE, message);
        Err(Stop)
    }

    /// Opens a construct, which counts for the rules of the grammar, and reads the next part of it.
    fn open(&mut self, frame: Frame<'s>) -> Result<Next, Stop> {
        for (count, more) in self.rules.iter_mut().zip(frame.open.rules()) {
            *count += more;
        }
        self.frames.push(frame);
        if self.rules.iter().any(|count| *count > MOST_NESTED) {
            self.issue(Position::NOWHERE, format!("expression recursion limit exceeded: {MOST_NESTED}"));
            return Err(Stop);
        }
        Ok(Next::Operand(EXPRESSION))
    }

    fn pop(&mut self) -> Option<Frame<'s>> {
        let frame = self.frames.pop()?;
        for (count, fewer) in self.rules.iter_mut().zip(frame.open.rules()) {
            *count -= fewer;
        }
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
                self.open(Frame::new(Open::Group, token.at))
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
        self.open(Frame::new(Open::Prefix { function: "!_", odd }, at))
    }

    fn minus(&mut self) -> Result<Next, Stop> {
        let (at, mut odd, mut start) = (self.token().at, false, 0);
        while self.kind() == TokenKind::Minus {
            start = self.take().start;
            odd = !odd;
        }
        if !PRIMARY.has(self.kind()) || matches!(self.innermost(), Some(Open::Prefix { .. })) {
            return Err(self.no_alternative(start));
        }
        self.open(Frame::new(Open::Prefix { function: "-_", odd }, at))
    }

    fn innermost(&self) -> Option<&Open<'s>> {
        self.frames.last().map(|frame| &frame.open)
    }

    fn literal(&mut self) -> Result<Part, Stop> {
        let first = self.take();
        let negative = first.kind == TokenKind::Minus;
        let token = if negative { self.take() } else { first };
        let value = match token.kind {
            TokenKind::True => Ok(Literal::Bool(true)),
            TokenKind::False => Ok(Literal::Bool(false)),
            TokenKind::Int => literal::int(negative, token.text).map(Literal::Int).ok_or("invalid int literal"),
            TokenKind::Uint => literal::uint(token.text).map(Literal::Uint).ok_or("invalid uint literal"),
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
        let text = self.dotted(start, name, global);
        if self.kind() == TokenKind::OpenParen {
            return self.arguments(Token { text, ..name }, None, !global);
        }
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
        let open = Open::Arguments { name, target: target.map(|part| part.node), is_plain };
        let frame = Frame { depth: target.map_or(0, |part| part.depth), ..Frame::new(open, at) };
        if self.taken(TokenKind::CloseParen) { self.called(frame) } else { self.open(frame) }
    }

    /// Adds a call whose arguments are read, or what a macro makes of it.
    fn called(&mut self, Frame { open, parts: arguments, depth, at }: Frame<'s>) -> Result<Next, Stop> {
        let Open::Arguments { name, target, is_plain } = open else { return Err(Stop) };
        let depth = depth + u16::from(target.is_some());
        let expanded = if is_plain {
            macros::expand(&mut self.tree, &mut self.issues, (name.text, target, &arguments), at, self.functions)
        } else {
            None
        };
        let part = match expanded {
            Some(node) => self.checked(Part { node, depth }),
            None => self.part(Kind::Call { function: name.text, target, arguments }, at, depth),
        };
        part.map(Next::After)
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
        let mut key = None;
        if let Kind::Message { .. } = built {
            self.begin(NAMES)?;
            let name = self.field_name();
            let colon = self.expect(TokenKind::Colon, EXPRESSION)?;
            key = Some(self.tree.add(Kind::Literal(Literal::String(name.text.into())), colon.at));
        }
        self.open(Frame { depth, ..Frame::new(Open::Literal { built, key, optional }, at) })
    }

    fn field_name(&mut self) -> Token<'s> {
        let token = self.take();
        if token.kind == TokenKind::QuotedIdent {
            self.issue(token.at, "unsupported syntax: '`'");
        }
        token
    }

    /// Goes on after an operand: a member of it, an operator, or the end of what is open.
    fn after(&mut self, mut part: Part) -> Result<Next, Stop> {
        match self.kind() {
            TokenKind::Dot => return self.member(part),
            TokenKind::OpenBracket => return self.index(part),
            _ => {}
        }
        if let Some(Frame { open: Open::Prefix { function, odd }, at, .. }) = self.frames.last() {
            let (function, odd, at) = (*function, *odd, *at);
            self.pop();
            if odd {
                part = self.call(function, vec![part.node], at, part.depth)?;
            }
        }
        if let Some((_, level, function)) = BINARY.iter().find(|(kind, ..)| *kind == self.kind()) {
            return self.binary(part, *level, function);
        }
        self.reduce(part, |_| true).map(Next::Close)
    }

    fn binary(&mut self, part: Part, level: Level, function: &'static str) -> Result<Next, Stop> {
        let is_logic = level <= Level::And;
        let part = self.reduce(part, |other| other > level || (other == level && !is_logic))?;
        let at = self.take().at;
        match self.frames.last_mut() {
            Some(Frame { open: Open::Logic { level: same, operators, .. }, parts, depth, .. }) if *same == level => {
                operators.push(at);
                parts.push(part.node);
                *depth = part.depth.max(*depth);
                Ok(Next::Operand(EXPRESSION))
            }
            _ if is_logic => self.open(Frame::with(part, Open::Logic { function, level, operators: vec![at] }, at)),
            _ => self.open(Frame::with(part, Open::Binary { function, level }, at)),
        }
    }

    /// Closes the operators whose level says so, the innermost first.
    fn reduce(&mut self, mut part: Part, closes: impl Fn(Level) -> bool) -> Result<Part, Stop> {
        while let Some(Open::Binary { level, .. } | Open::Logic { level, .. }) = self.innermost()
            && closes(*level)
            && let Some(frame) = self.pop()
        {
            part = self.operation(frame, part)?;
        }
        Ok(part)
    }

    /// Adds the call of an operator whose last operand is read.
    fn operation(&mut self, frame: Frame<'s>, last: Part) -> Result<Part, Stop> {
        let Frame { open, parts, depth, at } = frame.and(last);
        let function = match open {
            Open::Logic { function, operators, .. } => {
                let node = self.balanced(function, &parts, &operators);
                return self.checked(Part { node, depth });
            }
            Open::Binary { function, .. } | Open::Index { function } => function,
            _ => "_?_:_",
        };
        self.call(function, parts, at, depth + 1)
    }

    /// Builds a balanced tree of a chain: its depth grows with the logarithm of the length.
    fn balanced(&mut self, function: &'static str, terms: &[NodeId], operators: &[Position]) -> NodeId {
        let middle = operators.len() / 2;
        let (before, [at, after @ ..]) = operators.split_at(middle) else {
            return terms.first().copied().unwrap_or_default();
        };
        let (left, right) = terms.split_at_checked(middle + 1).unwrap_or((terms, &[]));
        let arguments = vec![self.balanced(function, left, before), self.balanced(function, right, after)];
        self.tree.add(Kind::Call { function, target: None, arguments }, *at)
    }

    fn member(&mut self, operand: Part) -> Result<Next, Stop> {
        let dot = self.take();
        let depth = operand.depth + 1;
        if self.taken(TokenKind::Question) {
            self.begin(NAMES)?;
            let field = self.field_name();
            let name = self.tree.add(Kind::Literal(Literal::String(field.text.into())), field.at);
            return self.call("_?._", vec![operand.node, name], dot.at, depth).map(Next::After);
        }
        if !NAMES.has(self.kind()) {
            return Err(self.no_name(dot.start));
        }
        let name = self.field_name();
        if name.kind == TokenKind::Ident && self.kind() == TokenKind::OpenParen {
            return self.arguments(name, Some(operand), true);
        }
        let kind = Kind::Select { operand: operand.node, field: name.text, test: false };
        self.part(kind, dot.at, depth).map(Next::After)
    }

    fn index(&mut self, operand: Part) -> Result<Next, Stop> {
        let at = self.take().at;
        self.begin(INDEX)?;
        let function = if self.taken(TokenKind::Question) { "_[?_]" } else { "_[_]" };
        self.open(Frame::with(operand, Open::Index { function }, at))
    }

    /// Goes on after an expression: what is open around it tells how.
    fn close(&mut self, part: Part) -> Result<Next, Stop> {
        if self.kind() == TokenKind::Question && !matches!(self.innermost(), Some(Open::Then)) {
            let at = self.take().at;
            return self.open(Frame::with(part, Open::Then, at));
        }
        let Some(frame) = self.pop() else {
            self.expect(TokenKind::End, TokenSet::of(&[]))?;
            return Ok(Next::Done(part.node));
        };
        match &frame.open {
            Open::Then => {
                self.expect(TokenKind::Colon, EXPRESSION)?;
                self.open(Frame { open: Open::Else, ..frame.and(part) })
            }
            Open::Else => self.operation(frame, part).map(Next::Close),
            Open::Group => {
                self.expect(TokenKind::CloseParen, self.follow())?;
                Ok(Next::After(part))
            }
            Open::Index { .. } => {
                self.expect(TokenKind::CloseBracket, self.follow())?;
                self.operation(frame, part).map(Next::After)
            }
            Open::Arguments { .. } => {
                let frame = frame.and(part);
                if self.taken(TokenKind::Comma) {
                    return self.open(frame);
                }
                self.expect(TokenKind::CloseParen, self.follow())?;
                self.called(frame)
            }
            _ => self.close_element(frame, part),
        }
    }

    /// Goes on after a key or a value of a literal.
    fn close_element(&mut self, Frame { open, depth, at, .. }: Frame<'s>, part: Part) -> Result<Next, Stop> {
        let Open::Literal { mut built, key, optional } = open else { return Err(Stop) };
        let depth = depth.max(part.depth);
        if let (Kind::Map(_), None) = (&built, key) {
            self.expect(TokenKind::Colon, EXPRESSION)?;
            let open = Open::Literal { built, key: Some(part.node), optional };
            return self.open(Frame { depth, ..Frame::new(open, at) });
        }
        if let Kind::List(all) | Kind::Map(all) | Kind::Message { fields: all, .. } = &mut built {
            all.push(Element { key, value: part.node, optional });
        }
        let (_, next, closing) = borders(&built);
        if self.separated(next, closing)? {
            return self.element(built, depth, at);
        }
        self.part(built, at, depth).map(Next::After)
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
