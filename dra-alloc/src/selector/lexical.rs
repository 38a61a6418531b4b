//! Checks on the text before parsing: the parser recurses, so that its input must be bounded.

use super::error::CompileError;

/// Largest number of operators, selections and calls without a bracket, a comma, `&&`, `||` or `?:` between them,
/// summed over the open brackets. (The evaluation's own limit is lower and is checked afterwards.)
const LONGEST_CHAIN: usize = 200;

/// Largest nesting depth of map literals: the parser needs more stack for them than for other brackets.
const DEEPEST_MAP: usize = 5;

/// Rejects unterminated literals, and chains that are too long to be parsed.
pub(super) fn check_chains(expression: &str) -> Result<(), CompileError> {
    let mut rest = expression;
    // Each open bracket with the chain length before it; and the chain length in the innermost one.
    let mut open: Vec<(char, usize)> = Vec::new();
    let (mut outer, mut chain) = (0_usize, 0_usize);
    while let Some(first) = rest.chars().next() {
        if let Some(comment) = rest.strip_prefix("//") {
            rest = comment.find('\n').and_then(|end| comment.get(end..)).unwrap_or("");
            continue;
        }
        if first == '"' || first == '\'' {
            let before = expression.get(..expression.len() - rest.len()).unwrap_or_default();
            let after = is_raw(before).and_then(|raw| after_literal(rest, raw));
            rest = after.ok_or_else(|| CompileError::Syntax {
                message: "Syntax error: a string literal is not terminated, or has an invalid prefix or escape"
                    .to_owned(),
            })?;
            continue;
        }
        if let Some(after) = after_quoted_name(rest) {
            rest = after;
            continue;
        }
        let separates = rest.starts_with("&&") || rest.starts_with("||");
        let two = separates || rest.starts_with(".?");
        rest = rest.get(if two { 2 } else { first.len_utf8() }..).unwrap_or_default();
        match first {
            '(' | '[' | '{' => {
                chain += 1;
                outer += chain;
                open.push((first, std::mem::take(&mut chain)));
            }
            ')' | ']' | '}' => {
                chain = open.pop().map_or(0, |(_, chain)| chain);
                outer = outer.saturating_sub(chain);
            }
            ',' | '?' | ':' => chain = 0,
            _ if separates => chain = 0,
            '.' | '+' | '-' | '*' | '/' | '%' | '<' | '>' | '=' | '!' => chain += 1,
            // Maybe the operator `in`.
            'i' if rest.starts_with('n') => chain += 1,
            _ => {}
        }
        let maps = open.iter().filter(|(bracket, _)| *bracket == '{').count();
        if outer + chain > LONGEST_CHAIN || maps > DEEPEST_MAP {
            return Err(CompileError::TooComplex);
        }
    }
    Ok(())
}

/// Returns true if the prefix of a quote makes a raw literal; `None` if it is no prefix of a literal.
fn is_raw(before: &str) -> Option<bool> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let start = before.trim_end_matches(is_word).len();
    match before.get(start..)? {
        "" | "b" | "B" | "in" => Some(false),
        "r" | "R" | "br" | "bR" | "Br" | "BR" => Some(true),
        _ => None,
    }
}

/// Returns the text after a name in backticks. Characters that such a name can't have are left to the parser.
fn after_quoted_name(text: &str) -> Option<&str> {
    let (name, after) = text.strip_prefix('`')?.split_once('`')?;
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_.-/ ".contains(c);
    (!name.is_empty() && name.chars().all(is_part)).then_some(after)
}

/// Returns the text after a string literal.
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

/// Returns the text after an escape, given the text after its backslash.
fn after_escape(text: &str) -> Option<&str> {
    let (digits, radix) = match text.chars().next()? {
        'a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '"' | '\'' | '\\' | '?' | '`' => return text.get(1..),
        'x' | 'X' => (1..3, 16),
        'u' => (1..5, 16),
        'U' => (1..9, 16),
        '0'..='3' => (0..3, 8),
        _ => return None,
    };
    let end = digits.end;
    let valid = text.get(digits)?.chars().all(|c| c.is_digit(radix));
    text.get(end..).filter(|_| valid)
}

#[cfg(test)]
mod tests {
    use super::check_chains;

    #[test]
    fn literals_and_comments_hide_nothing() {
        let links = "+1".repeat(300);
        let hidden = [
            format!("\"{links}\""),
            format!(r"'\'{links}'"),
            format!("'''\n'{links}\\'''{links}'''"),
            format!("r'{links}\\'"),
            format!("br\"\"\"{links}\"\\\"\"\""),
            format!("1 // {links}"),
            format!("a.`{}`", "b/.c-".repeat(300)),
        ];
        for text in hidden {
            assert_eq!(check_chains(&text), Ok(()), "{text}");
        }
        let shown = [
            format!("''{links}''"),
            format!(r"r'\'{links}"),
            format!("'''a'''{links}"),
            format!("1 // \r '''\n{links} '''"),
            format!("'||'{}", "+'||'".repeat(300)),
            format!("a.`b//c`{links}"),
            format!("a.`b+c{links}`"),
            format!("f(','{})", "+','".repeat(300)),
            format!("a{}", ".?b".repeat(300)),
            format!("1{}", " in 1".repeat(300)),
        ];
        for text in shown {
            assert!(check_chains(&text).is_err(), "{text}");
        }
        for text in [r"1r'\'", "rb''", r"'\q'", r"'\x0'", r"'\08a'", "'", "'''", "'\n'", r"'\u00'", "a''"] {
            assert!(check_chains(text).is_err(), "{text}");
        }
    }
}
