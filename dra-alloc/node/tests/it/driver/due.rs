//! Time of the next pass over a pool.

use dra_node::driver::{DueReason, Timers};
use k8s_openapi::jiff::Timestamp;

fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn with(mut timers: Timers, change: impl FnOnce(&mut Timers)) -> Timers {
    change(&mut timers);
    timers
}

fn next(timers: Timers, now: i64) -> Option<(i64, DueReason)> {
    timers.due(second(now)).map(|(at, reason)| (at.as_millisecond(), reason))
}

#[test]
fn the_earliest_reason_counts() {
    let at = |seconds: i64| Some(second(seconds));
    assert_eq!(next(Timers::default(), 5), None);
    let all = with(Timers::default(), |timers| {
        timers.first_foreign_event_at = at(100);
        timers.own_slice_vanished_at = at(110);
        timers.has_quick_repair = true;
        timers.last_unconfirmed_write_at = at(60);
        timers.failures = 1;
        timers.failed_at = at(119);
    });
    assert_eq!(next(all, 90), Some((112_000, DueReason::Vanished)));
    assert_eq!(
        next(
            with(all, |timers| {
                timers.has_quick_repair = false;
            }),
            90
        ),
        Some((119_005, DueReason::Retry))
    );
    assert_eq!(
        next(
            with(all, |timers| {
                timers.desired_changed_at = at(80);
            }),
            90
        ),
        Some((90_000, DueReason::Desired))
    );
    let synced = with(all, |timers| {
        timers.synced_at = at(115);
        timers.failures = 0;
    });
    assert_eq!(next(synced, 115), Some((120_000, DueReason::Confirm)));
    assert_eq!(
        next(
            with(synced, |timers| {
                timers.synced_at = at(121);
            }),
            121
        ),
        None
    );
}

#[test]
fn failures_double_the_delay_up_to_a_thousand_seconds() {
    for (failures, delay) in [(0, None), (1, Some(5)), (2, Some(10)), (18, Some(655_360)), (19, Some(1_000_000))] {
        let timers = with(Timers::default(), |timers| {
            timers.failures = failures;
            timers.failed_at = Some(second(0));
        });
        assert_eq!(next(timers, 0).map(|(at, _)| at), delay, "{failures}");
    }
    let timers = with(Timers::default(), |timers| {
        timers.failures = u32::MAX;
        timers.failed_at = Some(Timestamp::MAX);
    });
    assert_eq!(timers.due(second(0)), Some((Timestamp::MAX, DueReason::Retry)));
}
