//! Semantic versions.

use std::sync::Arc;

use dra_attrs::{Quoted, Version};

use super::function::functions;
use crate::fault::Fault;
use crate::meter::Meter;
use crate::value::{Answer, Value};

functions! { meter;
    "semver" {
        "(string) -> Semver" Parse: [Value::String(text)] => version(read(meter, text, false)?);
        "(string, bool) -> Semver" Parse:
            [Value::String(text), Value::Bool(normalizes)] => version(read(meter, text, *normalizes)?);
    }
    "isSemver" {
        "(string) -> bool" Parse: [Value::String(text)] => Ok(Value::Bool(read(meter, text, false)?.is_ok()));
        "(string, bool) -> bool" Parse:
            [Value::String(text), Value::Bool(normalizes)] => Ok(Value::Bool(read(meter, text, *normalizes)?.is_ok()));
    }
    "major" { "Semver.() -> int" One: [Value::Version(version)] => Ok(Value::Int(version.major().cast_signed())); }
    "minor" { "Semver.() -> int" One: [Value::Version(version)] => Ok(Value::Int(version.minor().cast_signed())); }
    "patch" { "Semver.() -> int" One: [Value::Version(version)] => Ok(Value::Int(version.patch().cast_signed())); }
}

/// Longest version that is read, in bytes: comparing two has the price 1, however long they are.
const LONGEST: usize = 512;

fn read(meter: &mut Meter<'_>, text: &str, normalizes: bool) -> Result<Result<Version, String>, Box<Fault>> {
    if text.len() > LONGEST {
        return Err(Fault::too_much());
    }
    meter.work(60 + text.len())?;
    Ok(if normalizes { normalized(text).and_then(|text| parse(&text)) } else { parse(text) })
}

fn version<'v>(read: Result<Version, String>) -> Answer<'v> {
    Ok(Value::Version(Arc::new(read.map_err(Fault::text)?)))
}

/// Parses a version; the error is that of upstream's parser.
fn parse(text: &str) -> Result<Version, String> {
    text.parse().map_err(|_| reason(text).unwrap_or_else(|| format!("invalid version {}", Quoted(text))))
}

/// Says what is wrong with a version.
fn reason(text: &str) -> Option<String> {
    if text.is_empty() {
        return Some("Version string empty".to_owned());
    }
    let mut parts = text.splitn(3, '.');
    let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return Some("No Major.Minor.Patch elements found".to_owned());
    };
    // The build data end the pre-release, which ends the patch number.
    let (before, build) = rest.split_once('+').map_or((rest, None), |(before, build)| (before, Some(build)));
    let (patch, prerelease) =
        before.split_once('-').map_or((before, None), |(patch, prerelease)| (patch, Some(prerelease)));
    let numbers = [("Major", major), ("Minor", minor), ("Patch", patch)];
    let of_numbers = numbers.iter().find_map(|(name, part)| wrong_number(name, part));
    of_numbers
        .or_else(|| prerelease?.split('.').find_map(wrong_prerelease))
        .or_else(|| build?.split('.').find_map(wrong_build))
}

fn wrong_number(name: &str, part: &str) -> Option<String> {
    if !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(format!("Invalid character(s) found in {} number {}", name.to_ascii_lowercase(), Quoted(part)));
    }
    if part.len() > 1 && part.starts_with('0') {
        return Some(format!("{name} number must not contain leading zeroes {}", Quoted(part)));
    }
    unreadable(part)
}

fn unreadable(part: &str) -> Option<String> {
    let problem = match part {
        "" => "invalid syntax",
        _ if part.parse::<u64>().is_err() => "value out of range",
        _ => return None,
    };
    Some(format!("strconv.ParseUint: parsing {}: {problem}", Quoted(part)))
}

fn wrong_prerelease(part: &str) -> Option<String> {
    if part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return wrong_part(part, "Prerelease", "prerelease");
    }
    if part.len() > 1 && part.starts_with('0') {
        let problem = "Numeric PreRelease version must not contain leading zeroes";
        return Some(format!("{problem} {}", Quoted(part)));
    }
    unreadable(part)
}

fn wrong_build(part: &str) -> Option<String> {
    wrong_part(part, "Build meta data", "build meta data")
}

fn wrong_part(part: &str, title: &str, name: &str) -> Option<String> {
    if part.is_empty() {
        return Some(format!("{title} is empty"));
    }
    let is_part = part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    (!is_part).then(|| format!("Invalid character(s) found in {name} {}", Quoted(part)))
}

/// Completes a version that people write: `v1.2`.
fn normalized(version: &str) -> Result<String, String> {
    let version = version.strip_prefix('v').unwrap_or(version);
    let mut parts: Vec<String> = version.splitn(3, '.').map(without_leading_zeros).collect();
    if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
        return Err("short version cannot contain PreRelease/Build meta data".to_owned());
    }
    parts.resize(3, "0".to_owned());
    Ok(parts.join("."))
}

fn without_leading_zeros(part: &str) -> String {
    if part.len() < 2 {
        return part.to_owned();
    }
    let digits = part.trim_start_matches('0');
    if digits.starts_with(|c: char| c.is_ascii_digit()) { digits.to_owned() } else { format!("0{digits}") }
}
