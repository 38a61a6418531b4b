//! Time of eviction by one taint.

use dra_device::taint::tolerates;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::resource::v1::{DeviceTaint, DeviceToleration};

/// Effect of the taints that evict.
pub(super) const NO_EXECUTE: &str = "NoExecute";

/// Longest delay that is counted, about 292 years: that of a Go duration. A longer one is for ever.
const LONGEST_DELAY: i64 = i64::MAX / 1_000_000_000;

/// Consequence of one evicting taint for an allocated device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Consequence {
    /// The taint is tolerated for ever.
    Tolerated,
    /// The taint evicts at a time. A taint without a time evicts only together with one that has it.
    Evicts(Option<Timestamp>),
}

/// Returns the consequence of a taint with the effect `NoExecute` for a result with tolerations. Only tolerations with
/// exactly this effect count; of several, one without seconds, else the one with the fewest.
pub(super) fn consequence(taint: &DeviceTaint, tolerations: &[DeviceToleration]) -> Consequence {
    let is_meant = |toleration: &&DeviceToleration| {
        toleration.effect.as_deref() == Some(NO_EXECUTE) && tolerates(toleration, taint)
    };
    let added = taint.time_added.as_ref().map(|time| time.0);
    let mut shortest: Option<i64> = None;
    for toleration in tolerations.iter().filter(is_meant) {
        let Some(seconds) = toleration.toleration_seconds else { return Consequence::Tolerated };
        shortest = Some(shortest.map_or(seconds, |shortest| shortest.min(seconds)));
    }
    let delay = shortest.unwrap_or_default().max(0);
    if delay > LONGEST_DELAY {
        return Consequence::Tolerated;
    }
    match added.map(|added| added.checked_add(SignedDuration::from_secs(delay))) {
        Some(Err(_)) => Consequence::Tolerated,
        Some(Ok(at)) => Consequence::Evicts(Some(at)),
        None => Consequence::Evicts(None),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    fn taint(added: Option<i64>) -> DeviceTaint {
        let time_added = added.map(|second| Time(Timestamp::from_second(second).unwrap()));
        DeviceTaint { key: "k".to_owned(), effect: NO_EXECUTE.to_owned(), time_added, ..DeviceTaint::default() }
    }

    fn toleration(effect: &str, seconds: Option<i64>) -> DeviceToleration {
        DeviceToleration {
            operator: Some("Exists".to_owned()),
            effect: Some(effect.to_owned()),
            toleration_seconds: seconds,
            ..DeviceToleration::default()
        }
    }

    /// Time of the taint, effects and seconds of tolerations, and what follows.
    type Row<'a> = (Option<i64>, &'a [(&'a str, Option<i64>)], Consequence);

    #[test]
    fn times_of_one_taint() {
        let at = |second: i64| Consequence::Evicts(Some(Timestamp::from_second(second).unwrap()));
        let rows: [Row<'_>; 12] = [
            (Some(7), &[], at(7)),
            (Some(7), &[(NO_EXECUTE, None)], Consequence::Tolerated),
            (Some(7), &[(NO_EXECUTE, Some(5)), (NO_EXECUTE, Some(3))], at(10)),
            (Some(7), &[(NO_EXECUTE, Some(5)), (NO_EXECUTE, None)], Consequence::Tolerated),
            (Some(7), &[(NO_EXECUTE, Some(-5))], at(7)),
            (Some(7), &[("", None)], at(7)),
            (Some(7), &[("NoSchedule", None)], at(7)),
            (None, &[], Consequence::Evicts(None)),
            (None, &[(NO_EXECUTE, Some(5))], Consequence::Evicts(None)),
            (Some(7), &[(NO_EXECUTE, Some(LONGEST_DELAY))], at(7 + LONGEST_DELAY)),
            (Some(7), &[(NO_EXECUTE, Some(LONGEST_DELAY + 1))], Consequence::Tolerated),
            (Some(253_402_200_000), &[(NO_EXECUTE, Some(LONGEST_DELAY))], Consequence::Tolerated),
        ];
        for (added, tolerations, expected) in rows {
            let tolerations: Vec<_> =
                tolerations.iter().map(|(effect, seconds)| toleration(effect, *seconds)).collect();
            assert_eq!(consequence(&taint(added), &tolerations), expected, "{added:?} {tolerations:?}");
        }
    }
}
