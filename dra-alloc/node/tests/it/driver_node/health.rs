//! Health stream: when the list is sent, and what is in it.

use dra_node::driver::{DeviceHealth, HealthReporter, HealthStatus};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use proptest::collection::vec;
use proptest::prelude::*;

fn at(millisecond: i64) -> Timestamp {
    Timestamp::from_millisecond(millisecond).unwrap()
}

fn device(name: &str, timeout: Option<i64>) -> DeviceHealth {
    let timeout = timeout.map(SignedDuration::from_secs);
    DeviceHealth {
        pool: "p".into(),
        device: name.into(),
        health: HealthStatus::Healthy,
        timeout,
        message: String::new(),
    }
}

#[test]
fn a_third_of_the_smallest_timeout() {
    for (timeouts, wanted) in [
        (&[][..], 10_000),
        (&[None], 10_000),
        (&[Some(60)], 20_000),
        (&[Some(60), None], 10_000),
        (&[Some(6), None], 2_000),
        (&[Some(0), Some(-5)], 10_000),
        (&[Some(1)], 333),
    ] {
        let devices = timeouts.iter().map(|timeout| device("d", *timeout)).collect();
        let mut reporter = HealthReporter::new(devices);
        assert_eq!(reporter.next_due(), None, "due at once");
        assert!(reporter.poll(at(0)).is_some());
        assert_eq!(reporter.next_due().unwrap().as_millisecond(), wanted, "{timeouts:?}");
        assert!(reporter.poll(at(wanted - 1)).is_none(), "{timeouts:?}");
        assert!(reporter.poll(at(wanted + 1)).is_some(), "{timeouts:?}");
    }
}

#[test]
fn only_what_differs_is_a_change() {
    let mut reporter = HealthReporter::new(vec![device("a", None), device("b", None)]);
    assert_eq!(reporter.poll(at(0)).unwrap().len(), 2);
    reporter.set_devices(vec![device("a", None), device("b", None)]);
    assert!(reporter.poll(at(1)).is_none(), "the same list");
    reporter.set_devices(vec![device("b", None)]);
    assert_eq!(reporter.poll(at(1)).unwrap().len(), 1, "the whole list, without the device that is gone");
    assert!(reporter.poll(at(2)).is_none());
    assert!(reporter.poll(at(0)).is_some(), "the clock went back: better once too often than never again");
}

#[test]
fn messages_are_cut_at_a_character() {
    for (text, wanted) in [
        ("x".repeat(1024), 1024),
        ("x".repeat(1025), 1024),
        ("é".repeat(513), 1023),
        (format!("x{}", "é".repeat(512)), 1024),
        ("🦀".repeat(300), 1023),
    ] {
        let reporter = &mut HealthReporter::new(vec![DeviceHealth { message: text.clone(), ..device("a", None) }]);
        let message = &reporter.poll(at(0)).unwrap()[0].message;
        assert_eq!(message.len(), wanted);
        assert!(text == *message || text.starts_with(message.strip_suffix("...").unwrap()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Polled whenever it is due, the kubelet never waits for a third of the timeout, and hears of each change at once.
    #[test]
    fn the_kubelet_never_waits(steps in vec((0_i64..5_000, any::<bool>()), 1..60), message in "\\PC*") {
        let mut reporter = HealthReporter::new(vec![device("a", None)]);
        let (mut now, mut sent, mut messages) = (0, None, 0_usize);
        for (pause, change) in steps {
            now += pause;
            if let Some(due) = reporter.next_due() {
                now = now.min(due.as_millisecond());
            }
            if change {
                messages += 1;
                let message = format!("{messages}{message}");
                reporter.set_devices(vec![DeviceHealth { message, ..device("a", None) }]);
            }
            let message = reporter.poll(at(now)).map(|list| list[0].message.clone());
            prop_assert!(!change || message.is_some());
            prop_assert!(message.is_none_or(|text| text.len() <= 1024));
            if reporter.next_due().is_some_and(|due| due == at(now) + SignedDuration::from_secs(10)) {
                sent = Some(now);
            }
            prop_assert!(now - sent.unwrap_or(now) <= 10_000);
        }
    }
}
