//! A look at the text before it is parsed: the parser recurses, and must not be given what exhausts the stack.

use super::error::CompileError;

/// How many operators, selections and calls may hang together without a bracket, a comma, `&&`, `||` or `?:` between
/// them, summed over the brackets that are open. (What the evaluation bears is less and is checked afterwards.)
const LONGEST_CHAIN: usize = 200;

/// Refuses unterminated literals, and chains that are too long to be parsed.
pub(super) fn check_chains(expression: &str) -> Result<(), CompileError> {
    let mut rest = expression;
    // Chain length before each open bracket, and in the innermost one.
    let mut open: Vec<usize> = Vec::new();
    let (mut outer, mut chain) = (0_usize, 0_usize);
    while let Some(first) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("//") {
            rest = after.find(['\n', '\r']).and_then(|end| after.get(end..)).unwrap_or("");
            continue;
        }
        if first == '"' || first == '\'' {
            let seen = expression.strip_suffix(rest).unwrap_or_default();
            rest = after_literal(rest, is_raw(seen)).ok_or_else(|| CompileError::Syntax {
                message: "Syntax error: a string literal is not terminated or has an invalid escape".to_owned(),
            })?;
            continue;
        }
        let separates = rest.starts_with("&&") || rest.starts_with("||");
        let two = separates || rest.starts_with(".?");
        rest = rest.get(if two { 2 } else { first.len_utf8() }..).unwrap_or_default();
        match first {
            '(' | '[' | '{' => {
                chain += 1;
                outer += chain;
                open.push(std::mem::take(&mut chain));
            }
            ')' | ']' | '}' => {
                chain = open.pop().unwrap_or(0);
                outer = outer.saturating_sub(chain);
            }
            ',' | '?' | ':' => chain = 0,
            _ if separates => chain = 0,
            '.' | '+' | '-' | '*' | '/' | '%' | '<' | '>' | '=' | '!' | 'i' => chain += 1,
            _ => {}
        }
        // An `i` may begin the operator `in`; only that is counted.
        if first == 'i' && !rest.starts_with('n') {
            chain = chain.saturating_sub(1);
        }
        if outer + chain > LONGEST_CHAIN {
            return Err(CompileError::TooComplex);
        }
    }
    Ok(())
}

/// Whether the letters before a quote make the literal a raw one.
fn is_raw(before: &str) -> bool {
    let prefix = before.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let letters = before.strip_prefix(prefix).unwrap_or_default();
    letters.eq_ignore_ascii_case("r") || letters.eq_ignore_ascii_case("br") || letters.eq_ignore_ascii_case("rb")
}

/// What follows the string literal at the beginning of a text.
fn after_literal(text: &str, raw: bool) -> Option<&str> {
    let quote = text.get(..1)?;
    let triple = text.get(..3).filter(|start| start.chars().all(|c| quote.starts_with(c)));
    let end = triple.unwrap_or(quote);
    let mut rest = text.get(end.len()..)?;
    loop {
        if let Some(after) = rest.strip_prefix(end) {
            return Some(after);
        }
        let first = rest.chars().next()?;
        if triple.is_none() && (first == '\n' || first == '\r') {
            return None;
        }
        let escape = first == '\\' && !raw;
        rest = if escape { after_escape(rest.get(1..)?)? } else { rest.get(first.len_utf8()..)? };
    }
}

/// What follows an escape, given what follows its backslash.
fn after_escape(text: &str) -> Option<&str> {
    let digits = match text.chars().next()? {
        'a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '"' | '\'' | '\\' | '?' | '`' => return text.get(1..),
        'x' | 'X' => text.get(1..3),
        'u' => text.get(1..5),
        'U' => text.get(1..9),
        '0'..='3' => text.get(..3),
        _ => None,
    }?;
    digits.bytes().all(|c| c.is_ascii_hexdigit()).then_some(())?;
    text.split_once(digits).map(|(_, rest)| rest)
}
