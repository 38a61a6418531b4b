//! Terms of an expression: the parts that `&&` joins, all of which must hold.

use std::ops::Range;

use super::lexer::tokens;
use super::token::{Token, TokenKind};

/// Deepest nesting of parentheses and `cel.bind` around the terms; what is deeper is one term.
const MOST_NESTED: usize = 32;

/// Returns the terms of an expression that compiles, each an expression by itself.
pub(crate) fn terms(expression: &str) -> Vec<String> {
    let tokens = tokens(expression, &mut Vec::new());
    // The last token is the end.
    let whole = 0..tokens.len().saturating_sub(1);
    let mut terms = Vec::new();
    Splitter { text: expression, tokens: &tokens }.collect(whole, &mut terms);
    terms
}

/// Splits the text of an expression at its `&&`.
struct Splitter<'s> {
    text: &'s str,
    tokens: &'s [Token<'s>],
}

/// Part of an expression whose terms are not found yet, with what is written around each of them.
struct Open {
    tokens: Range<usize>,
    before: String,
    after: String,
    depth: usize,
}

impl Splitter<'_> {
    /// Appends the terms of some tokens, in their order.
    fn collect(&self, tokens: Range<usize>, terms: &mut Vec<String>) {
        let mut open = vec![Open { tokens, before: String::new(), after: String::new(), depth: 0 }];
        while let Some(part) = open.pop() {
            let parts = self.split(part.tokens.clone());
            if parts.len() > 1 {
                let below =
                    |tokens| Open { tokens, before: part.before.clone(), after: part.after.clone(), depth: part.depth };
                open.extend(parts.into_iter().rev().map(below));
            } else if let Some(inner) = self.inner(&part).filter(|inner| self.has_terms(inner)) {
                open.push(inner);
            } else {
                terms.push(format!("{}{}{}", part.before, self.text_of(part.tokens), part.after));
            }
        }
    }

    /// Returns true if opening a part shows more than one term.
    fn has_terms(&self, part: &Open) -> bool {
        self.split(part.tokens.clone()).len() > 1 || self.inner(part).is_some()
    }

    /// Returns the parts between the `&&` that stand in no brackets; all tokens if there is none, or if `||` or `?` binds them.
    fn split(&self, tokens: Range<usize>) -> Vec<Range<usize>> {
        let (mut parts, mut begin) = (Vec::new(), tokens.start);
        for (index, kind) in self.top(tokens.clone()) {
            match kind {
                TokenKind::Or | TokenKind::Question => return vec![tokens],
                TokenKind::And => {
                    parts.push(begin..index);
                    begin = index + 1;
                }
                _ => {}
            }
        }
        parts.push(begin..tokens.end);
        parts
    }

    /// Returns the tokens that stand in no brackets.
    fn top(&self, tokens: Range<usize>) -> impl Iterator<Item = (usize, TokenKind)> {
        let mut depth = 0_usize;
        self.tokens.iter().enumerate().take(tokens.end).skip(tokens.start).filter_map(move |(index, token)| match token
            .kind
        {
            TokenKind::OpenParen | TokenKind::OpenBracket | TokenKind::OpenBrace => {
                depth += 1;
                (depth == 1).then_some((index, token.kind))
            }
            TokenKind::CloseParen | TokenKind::CloseBracket | TokenKind::CloseBrace => {
                depth = depth.saturating_sub(1);
                (depth == 0).then_some((index, token.kind))
            }
            kind => (depth == 0).then_some((index, kind)),
        })
    }

    /// Returns what stands within parentheses around all of a part, or the body of a `cel.bind` that is all of it.
    fn inner(&self, part: &Open) -> Option<Open> {
        if part.depth >= MOST_NESTED {
            return None;
        }
        let depth = part.depth + 1;
        let last = part.tokens.end.checked_sub(1)?;
        let mut top = self.top(part.tokens.clone());
        let first = top.next()?;
        if first.1 == TokenKind::OpenParen {
            let (close, _) = top.next()?;
            let tokens = first.0 + 1..last;
            let (before, after) = (part.before.clone(), part.after.clone());
            return (close == last && !tokens.is_empty()).then_some(Open { tokens, before, after, depth });
        }
        let rest: Vec<(usize, TokenKind)> = top.take(5).collect();
        let [(_, TokenKind::Dot), (name, TokenKind::Ident), (open, TokenKind::OpenParen), (close, _)] =
            *rest.as_slice()
        else {
            return None;
        };
        let is_bind = self.tokens.get(first.0)?.text == "cel" && self.tokens.get(name)?.text == "bind" && close == last;
        let commas = self.top(open + 1..close).filter(|(_, kind)| *kind == TokenKind::Comma);
        let [_, (comma, _)] = *commas.filter(|_| is_bind).collect::<Vec<_>>().as_slice() else { return None };
        let before = format!("{}{} ", part.before, self.text_of(part.tokens.start..comma + 1));
        Some(Open { tokens: comma + 1..close, before, after: format!("){}", part.after), depth })
    }

    fn text_of(&self, tokens: Range<usize>) -> &str {
        let begin = self.tokens.get(tokens.start).map_or(self.text.len(), |token| token.start);
        let last = tokens.end.checked_sub(1).and_then(|last| self.tokens.get(last));
        let end = last.map_or(begin, |last| last.start + last.text.len());
        self.text.get(begin..end).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_stand_between_the_ands_at_the_top() {
        let table: [(&str, &[&str]); 9] = [
            ("true", &["true"]),
            ("true && false", &["true", "false"]),
            ("true && (false && true)", &["true", "false", "true"]),
            ("(true && false)", &["true", "false"]),
            ("(true) && (true || false)", &["(true)", "(true || false)"]),
            ("true && true || false", &["true && true || false"]),
            ("true ? true : true && false", &["true ? true : true && false"]),
            ("'a && b' == 'a && b' && true // && false", &["'a && b' == 'a && b'", "true"]),
            (
                "cel.bind(d, device.attributes['g.example'], d.a == 1 && d.b == 2)",
                &[
                    "cel.bind(d, device.attributes['g.example'], d.a == 1)",
                    "cel.bind(d, device.attributes['g.example'], d.b == 2)",
                ],
            ),
        ];
        for (expression, expected) in table {
            assert_eq!(terms(expression), expected, "{expression}");
        }
    }

    #[test]
    fn parentheses_are_opened_to_a_limit() {
        let nested = |depth: usize| format!("{}true && false{}", "(".repeat(depth), ")".repeat(depth));
        assert_eq!(terms(&nested(30)).len(), 2);
        assert_eq!(terms(&nested(60)).len(), 1);
    }
}
