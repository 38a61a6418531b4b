//! Registration: the table of states, and a rolling update of two instances.

use std::collections::{BTreeSet, VecDeque};

use dra_node::driver::{LastOutcome, PluginInfo, PluginService, Registration, RegistrationEvent, RegistrationReply};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

fn failed(error: &str) -> Registration {
    after(&[RegistrationEvent::Notified(Err(error.to_owned()))])
}

fn after(events: &[RegistrationEvent]) -> Registration {
    let mut registration = Registration::default();
    for event in events {
        registration.apply(event.clone());
    }
    registration
}

#[test]
fn the_table() {
    use RegistrationEvent::{GetInfo, Notified, Stop};
    let refused = || Notified(Err("no handler registered for plugin type".to_owned()));
    let table: [(&[RegistrationEvent], RegistrationEvent, RegistrationReply); 9] = [
        (&[], GetInfo, RegistrationReply::Info),
        (&[GetInfo], Notified(Ok(())), RegistrationReply::Acknowledge),
        (&[GetInfo], refused(), RegistrationReply::Acknowledge),
        (&[GetInfo, refused()], Notified(Ok(())), RegistrationReply::Acknowledge),
        (&[GetInfo, Notified(Ok(()))], refused(), RegistrationReply::Acknowledge),
        (&[GetInfo, Notified(Ok(()))], GetInfo, RegistrationReply::Info),
        (&[GetInfo, Notified(Ok(()))], Stop, RegistrationReply::RemoveSocket),
        (&[Stop], GetInfo, RegistrationReply::Unavailable),
        (&[Stop], Notified(Ok(())), RegistrationReply::Unavailable),
    ];
    let states = [
        Registration::Asked { last: LastOutcome::None },
        Registration::Registered,
        failed("no handler registered for plugin type"),
        Registration::Registered,
        failed("no handler registered for plugin type"),
        Registration::Asked { last: LastOutcome::Registered },
        Registration::Stopped,
        Registration::Stopped,
        Registration::Stopped,
    ];
    for ((before, event, reply), next) in table.into_iter().zip(states) {
        let mut registration = after(before);
        assert_eq!(registration.apply(event.clone()), reply, "{before:?} {event:?}");
        assert_eq!(registration, next, "{before:?} {event:?}");
    }
}

#[test]
fn probes() {
    let start = Timestamp::UNIX_EPOCH;
    let soon = start + SignedDuration::from_secs(121);
    let late = start + SignedDuration::from_secs(122);
    let live = |registration: &Registration| [soon, late].map(|now| registration.is_live(start, now));
    assert_eq!(live(&Registration::Waiting), [true, false]);
    assert_eq!(live(&after(&[RegistrationEvent::GetInfo])), [true, false]);
    assert_eq!(live(&after(&[RegistrationEvent::Notified(Ok(()))])), [true, true]);
    let asked_again = after(&[RegistrationEvent::Notified(Ok(())), RegistrationEvent::GetInfo]);
    assert_eq!(live(&asked_again), [true, true], "the kubelet restarted: the last answer counts");
    assert_eq!(live(&failed("x")), [false, false]);
}

#[test]
fn services_are_named_best_first() {
    use PluginService::{DraV1, DraV1beta1, HealthV1, HealthV1alpha1};
    let info = PluginInfo::new("d", "/s", &[HealthV1alpha1, DraV1beta1, HealthV1, DraV1]);
    let wanted = ["v1.DRAPlugin", "v1beta1.DRAPlugin", "v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"];
    assert_eq!((info.plugin_type, info.supported_versions.as_slice()), ("DRAPlugin", wanted.as_slice()));
}

/// Two instances of a driver and a kubelet, as far as registration goes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Update {
    /// States by their names; an instance that has not started has none.
    instances: [Option<String>; 2],
    /// Instances that the kubelet has taken, the newest last.
    taken: Vec<usize>,
}

/// In a rolling update the new instance starts, registers, and then the old one stops. At every order of the kubelet's
/// questions and restarts a call finds an instance that serves, once one was taken.
#[test]
fn a_rolling_update_leaves_no_gap() {
    use RegistrationEvent::{GetInfo, Notified, Stop};
    type State = ([Option<Registration>; 2], Vec<usize>);
    let start: State = ([Some(Registration::default()), None], Vec::new());
    let (mut seen, mut open) = (BTreeSet::new(), VecDeque::from([start]));
    while let Some((instances, taken)) = open.pop_front() {
        let name = |state: &Option<Registration>| state.as_ref().map(|state| format!("{state:?}"));
        let shown = Update { instances: [name(&instances[0]), name(&instances[1])], taken: taken.clone() };
        if !seen.insert(shown) {
            continue;
        }
        let serves = |number: usize| instances[number].as_ref().is_some_and(|state| *state != Registration::Stopped);
        // A kubelet that restarts has taken nothing, and asks all sockets again.
        open.push_back((instances.clone(), Vec::new()));
        for number in [0, 1] {
            let mut next = instances.clone();
            let Some(state) = &mut next[number] else {
                next[number] = Some(Registration::default());
                open.push_back((next, taken.clone()));
                continue;
            };
            let asked = *state != Registration::Stopped && state.apply(GetInfo) == RegistrationReply::Info;
            if asked {
                open.push_back((next.clone(), taken.clone()));
                let state = next[number].as_mut().unwrap();
                assert_eq!(state.apply(Notified(Ok(()))), RegistrationReply::Acknowledge);
                let taken = taken.iter().copied().filter(|other| *other != number).chain([number]).collect();
                open.push_back((next.clone(), taken));
            }
        }
        // The old one stops only when the new one is registered; its socket goes, and the kubelet forgets it.
        if instances[1] == Some(Registration::Registered) {
            let mut next = instances.clone();
            assert_eq!(next[0].as_mut().unwrap().apply(Stop), RegistrationReply::RemoveSocket);
            let taken: Vec<usize> = taken.iter().copied().filter(|number| *number != 0).collect();
            open.push_back((next, taken));
        }
        if let Some(newest) = taken.last() {
            assert!(serves(*newest), "the kubelet calls an instance that has stopped");
        }
        assert!(serves(0) || serves(1));
    }
    assert!(seen.len() > 20, "{} states", seen.len());
}
