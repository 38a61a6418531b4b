//! Plays any history of a queue: nothing panics, each pod that waits has one place, a bound one has none, and an empty cluster
//! leaves nothing behind.
#![no_main]

use std::collections::BTreeSet;
use std::sync::Arc;

use dra_alloc::queue::{
    ClusterEvent, ObjectChange, Place, PrioritySort, QueueAttempt, QueueOptions, Refusal, Remedy, SchedulingQueue,
    WhenIdle,
};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use libfuzzer_sys::fuzz_target;
use serde_json::{from_value, json};

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

const OWN: [Remedy; 3] = [Remedy::Members, Remedy::OwnClaims, Remedy::OwnLabels];

fn pod(name: usize, version: u64, options: u8) -> Arc<Pod> {
    let group = (options & 1 != 0).then(|| json!({"podGroupName": if name < 3 { "g" } else { "h" }}));
    let gates =
        if options & 2 != 0 && version.is_multiple_of(2) { json!([{"name": "example.com/gate"}]) } else { json!([]) };
    let node = (options & 0b1111 == 0b1100).then_some("n");
    Arc::new(
        from_value(json!({"metadata": {"namespace": "ns", "name": NAMES[name], "uid": NAMES[name],
            "resourceVersion": version.to_string(), "labels": {"a": (options >> 4).to_string()}},
            "spec": {"containers": [], "priority": options >> 6, "schedulingGroup": group, "schedulingGates": gates,
                "nodeName": node}}))
        .unwrap(),
    )
}

fn remedy(choice: u8) -> Remedy {
    match choice % 5 {
        0 => Remedy::Room,
        1 => Remedy::AnyDevices,
        2 => OWN[usize::from(choice / 5) % OWN.len()].clone(),
        driver => Remedy::Devices { driver: driver.to_string() },
    }
}

fuzz_target!(|bytes: &[u8]| {
    let idle = if bytes.first().is_some_and(|byte| byte % 2 == 0) { WhenIdle::Wait } else { WhenIdle::TryBackingOff };
    let mut queue = SchedulingQueue::new(PrioritySort, QueueOptions::default().when_idle(idle));
    let mut attempts: Vec<QueueAttempt> = Vec::new();
    let mut last: [Option<Arc<Pod>>; 5] = [const { None }; 5];
    let (mut now, mut version) = (Timestamp::UNIX_EPOCH, 0);
    for step in bytes.chunks_exact(2) {
        version += 1;
        let (name, choice) = (usize::from(step[1]) % NAMES.len(), step[1]);
        match step[0] % 9 {
            0 | 1 => {
                let new = pod(name, version, step[0] / 9);
                let event = match &last[name] {
                    Some(old) => ObjectChange::Updated { old, new: &new },
                    None => ObjectChange::Added(&new),
                };
                queue.observe(&ClusterEvent::Pod(event), now).unwrap();
                last[name] = Some(new);
            }
            2 => {
                let Some(old) = last[name].take() else { continue };
                queue.observe(&ClusterEvent::Pod(ObjectChange::Deleted(&old)), now).unwrap();
                assert_eq!(queue.place(NAMES[name]), None);
            }
            3 => {
                let refuse = choice & 8 != 0;
                let check = |_: &[Arc<Pod>]| if refuse { Err(Refusal::new([remedy(choice)])) } else { Ok(()) };
                attempts.extend(queue.pop(now, check));
            }
            4 if !attempts.is_empty() => {
                let attempt = attempts.swap_remove(usize::from(choice) % attempts.len());
                match choice / 5 % 4 {
                    0 => queue.done(attempt),
                    1 => queue.failed(attempt, now),
                    _ => queue.refused(attempt, Refusal::new([remedy(choice), remedy(choice / 7)]), now),
                }
            }
            5 => drop(queue.wake(&[remedy(choice)], now)),
            6 => drop(queue.activate(NAMES[name])),
            7 => now = queue.next_at().unwrap_or(now).max(now),
            _ => now = now.checked_add(SignedDuration::from_millis(i64::from(choice) * 37)).unwrap_or(now),
        }
        let places: BTreeSet<Place> = NAMES.iter().filter_map(|name| queue.place(name)).collect();
        for place in [Place::Active, Place::BackingOff, Place::Unschedulable, Place::Gated] {
            assert_eq!(queue.count(place) > 0, places.contains(&place), "{place:?}");
        }
    }
    attempts.into_iter().for_each(|attempt| queue.failed(attempt, now));
    queue.retain_listed([], now);
    assert_eq!((queue.remembered(), queue.next_at()), (0, None), "something leaks");
});
