//! IP addresses, as Go reads them.

use std::net::IpAddr;

use crate::fault::quoted;

/// Parses an address. Those with a zone and IPv4 addresses in IPv6 form are refused.
pub(crate) fn parse(text: &str) -> Result<IpAddr, String> {
    let whole = quoted(text);
    let (address, zone) = text.split_once('%').map_or((text, None), |(address, zone)| (address, Some(zone)));
    match (address.parse(), zone) {
        (Ok(IpAddr::V6(_)), Some(zone)) if !zone.is_empty() => {
            Err(format!("IP address {whole} with zone value is not allowed"))
        }
        (Ok(IpAddr::V6(address)), None) if address.to_ipv4_mapped().is_some() => {
            Err(format!("IPv4-mapped IPv6 address {whole} is not allowed"))
        }
        (Ok(address), None) => Ok(address),
        _ => Err(format!("IP Address {whole} parse error during conversion from string: {}", unreadable(text))),
    }
}

/// Problem of an address, and the text at which it shows.
type Problem<'t> = (&'static str, &'t str);

/// Says why a text is no address, in the words of Go's parser.
pub(super) fn unreadable(text: &str) -> String {
    let (problem, at) = problem(text);
    let place = if at.is_empty() { String::new() } else { format!(" (at {})", quoted(at)) };
    format!("ParseAddr({}): {problem}{place}", quoted(text))
}

fn problem(text: &str) -> Problem<'_> {
    match text.find(['.', ':', '%']).and_then(|at| text.as_bytes().get(at)) {
        Some(b'.') => ipv4_problem(text).unwrap_or(("unable to parse IP", "")),
        Some(b':') => {
            let (address, zone) = text.split_once('%').map_or((text, None), |(address, zone)| (address, Some(zone)));
            if zone == Some("") {
                return ("zone must be a non-empty string", "");
            }
            ipv6_problem(address)
        }
        Some(b'%') => ("missing IPv6 address", ""),
        _ => ("unable to parse IP", ""),
    }
}

/// Finds the first thing that is wrong with four numbers and dots.
fn ipv4_problem(text: &str) -> Option<Problem<'_>> {
    let mut fields = 0;
    let mut field = String::new();
    for (at, character) in text.char_indices() {
        let rest = text.get(at..).unwrap_or_default();
        match character {
            '0'..='9' if field == "0" => return Some(("IPv4 field has octet with leading zero", "")),
            '0'..='9' => {
                field.push(character);
                if field.parse::<u8>().is_err() {
                    return Some(("IPv4 field has value >255", ""));
                }
            }
            '.' if field.is_empty() || rest.len() == 1 => {
                return Some(("IPv4 field must have at least one digit", rest));
            }
            '.' if fields == 3 => return Some(("IPv4 address too long", "")),
            '.' => {
                fields += 1;
                field.clear();
            }
            _ => return Some(("unexpected character", rest)),
        }
    }
    (fields < 3).then_some(("IPv4 address too short", ""))
}

/// Finds the first thing that is wrong with groups of digits and colons.
fn ipv6_problem(text: &str) -> Problem<'_> {
    let mut rest = text.strip_prefix("::").unwrap_or(text);
    let mut shortened = rest.len() < text.len();
    let mut groups = 0;
    while groups < 8 {
        let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        match digits {
            0 => return ("each colon-separated field must have at least one digit", rest),
            1..=4 => {}
            _ => return ("each group must have 4 or less digits", rest),
        }
        let after = rest.get(digits..).unwrap_or_default();
        if after.starts_with('.') {
            return embedded_problem(rest, groups, shortened);
        }
        groups += 1;
        if after.is_empty() {
            rest = after;
            break;
        }
        let Some(next) = after.strip_prefix(':') else { return ("unexpected character, want colon", after) };
        if next.is_empty() {
            return ("colon must be followed by more characters", after);
        }
        rest = next;
        if let Some(next) = rest.strip_prefix(':') {
            if shortened {
                return ("multiple :: in address", rest);
            }
            shortened = true;
            rest = next;
            if rest.is_empty() {
                break;
            }
        }
    }
    match rest {
        "" if shortened => ("the :: must expand to at least one field of zeros", ""),
        "" => ("address string too short", ""),
        rest => ("trailing garbage after address", rest),
    }
}

/// Finds what is wrong with an IPv4 address at the end of groups.
fn embedded_problem(text: &str, groups: usize, shortened: bool) -> Problem<'_> {
    if !shortened && groups != 6 {
        return ("embedded IPv4 address must replace the final 2 fields of the address", text);
    }
    if groups > 6 {
        return ("too many hex fields to fit an embedded IPv4 at the end of the address", text);
    }
    ipv4_problem(text).unwrap_or(("the :: must expand to at least one field of zeros", ""))
}
