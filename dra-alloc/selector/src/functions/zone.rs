//! Time zones by name, from a table that is part of the program.

use std::sync::OnceLock;

use dra_attrs::Quoted;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use crate::fault::Fault;

/// Returns the seconds that a zone is east of UTC at an instant.
pub(super) fn offset(name: &str, seconds: i64) -> Result<i64, Box<Fault>> {
    if let Some((hours, minutes)) = name.split_once(':') {
        return fixed(hours, minutes);
    }
    match name {
        "" | "UTC" | "Local" => return Ok(0),
        _ if name.contains("..") || name.starts_with(['/', '\\']) => return Err("time: invalid location name".into()),
        _ => {}
    }
    let unknown = || Fault::text(format!("unknown time zone {name}"));
    let zone = named(name).ok_or_else(unknown)?;
    let at = jiff::Timestamp::from_second(seconds).map_err(|_| unknown())?;
    Ok(zone.to_offset(at).seconds().into())
}

fn named(name: &str) -> Option<TimeZone> {
    static ZONES: OnceLock<TimeZoneDatabase> = OnceLock::new();
    let zone = ZONES.get_or_init(TimeZoneDatabase::bundled).get(name).ok()?;
    // The table does not mind the case of names; the files that upstream reads do.
    (zone.iana_name() == Some(name)).then_some(zone)
}

/// Returns the seconds of an offset in hours and minutes.
fn fixed(hours: &str, minutes: &str) -> Result<i64, Box<Fault>> {
    let is_west = hours.starts_with('-');
    let (hours, minutes) = (integer(hours)?, integer(minutes)?);
    let minutes = if is_west { -minutes } else { minutes };
    let total = hours.saturating_mul(60).saturating_add(minutes);
    Ok(total.saturating_mul(60))
}

fn integer(text: &str) -> Result<i64, Box<Fault>> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let problem = if is_number { "value out of range" } else { "invalid syntax" };
    let number = text.parse().ok().filter(|_| is_number);
    number.ok_or_else(|| Fault::text(format!("strconv.Atoi: parsing {}: {problem}", Quoted(text))))
}
