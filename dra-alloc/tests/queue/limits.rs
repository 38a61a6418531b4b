//! Bad input, bounds of memory, and an order of the caller's own.

use std::sync::Arc;

use dra_alloc::queue::{
    ClusterEvent, ObjectChange, Place, QueueError, QueueOptions, QueueOptionsError, QueueOrder, Refusal, Remedy,
    SchedulingQueue, WhenIdle,
};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::objects::{at, pod, queue, read, remedy, show};

#[test]
fn a_pod_without_a_uid_is_refused_and_changes_nothing() {
    let mut queue = queue(WhenIdle::Wait);
    let mut object = pod("a", 0, None);
    object["metadata"]["uid"] = json!("");
    let found = queue.observe(&ClusterEvent::Pod(ObjectChange::Added(&read(&object))), at(0));
    assert_eq!(found, Err(QueueError::NoUid { pod: "ns/a".to_owned() }));
    assert_eq!(queue.count(Place::Active), 0);
}

#[test]
fn an_older_version_of_a_pod_changes_nothing() {
    let mut queue = queue(WhenIdle::Wait);
    let [mut old, mut new] = [pod("a", 0, None), pod("a", 9, None)];
    (old["metadata"]["resourceVersion"], new["metadata"]["resourceVersion"]) = (json!("1"), json!("2"));
    show(&mut queue, None, Some(&pod("b", 5, None)), at(0));
    show(&mut queue, None, Some(&new), at(0));
    show(&mut queue, None, Some(&old), at(0));
    let first = queue.pop(at(0), |_| Ok(())).unwrap();
    assert_eq!(first.pods()[0].metadata.name.as_deref(), Some("a"), "the newer version has the higher priority");
}

#[test]
fn times_that_are_none_are_refused() {
    let (seconds, options) = (SignedDuration::from_secs, QueueOptions::default());
    assert_eq!(options.with_backoff(seconds(-1), seconds(1)), Err(QueueOptionsError::InitialBackoff));
    assert_eq!(options.with_backoff(seconds(2), seconds(1)), Err(QueueOptionsError::MaxBackoff));
    assert_eq!(options.with_flush_after(seconds(0)), Err(QueueOptionsError::FlushAfter));
}

/// An attempt that never ends costs a bounded memory, and misses nothing.
#[test]
fn an_attempt_that_takes_long_does_not_grow() {
    let mut queue = queue(WhenIdle::Wait);
    show(&mut queue, None, Some(&pod("a", 0, None)), at(0));
    let attempt = queue.pop(at(0), |_| Ok(())).unwrap();
    for number in 0..100_000 {
        queue.wake(&[remedy(&format!("claim:{number}"))], at(0));
        assert!(queue.remembered() <= 4_096);
    }
    queue.refused(attempt, Refusal::new([remedy("claim:0")]), at(0));
    assert_eq!((queue.place("a"), queue.remembered()), (Some(Place::BackingOff), 0), "claim 0 has come, too");
}

/// Pods come and go all day: nothing stays.
#[test]
fn memory_follows_the_pods_that_are_there() {
    let mut queue = queue(WhenIdle::Wait);
    for number in 0..1_000 {
        let object = pod(&format!("p{number}"), 0, (number % 3 == 0).then_some("g"));
        show(&mut queue, None, Some(&object), at(number));
        let attempt = queue.pop(at(number), |_| Ok(())).unwrap();
        match number % 2 {
            0 => queue.done(attempt),
            _ => queue.refused(attempt, Refusal::new([Remedy::Room]), at(number)),
        }
        show(&mut queue, Some(&object), None, at(number));
    }
    let places = [Place::Active, Place::BackingOff, Place::Unschedulable, Place::Gated, Place::InFlight];
    assert_eq!(places.map(|place| queue.count(place)), [0; 5]);
    assert_eq!((queue.remembered(), queue.next_at()), (0, None));
}

/// The pod with the most containers first.
#[derive(Debug)]
struct Largest;

impl QueueOrder for Largest {
    type Rank = std::cmp::Reverse<usize>;

    fn rank(&self, pods: &[Arc<Pod>], _: Timestamp) -> Self::Rank {
        std::cmp::Reverse(pods.iter().flat_map(|pod| &pod.spec).map(|spec| spec.containers.len()).sum())
    }
}

#[test]
fn the_caller_may_have_an_order_of_its_own() {
    let mut queue = SchedulingQueue::new(Largest, QueueOptions::default());
    for (name, containers) in [("small", 1), ("large", 3), ("medium", 2)] {
        let mut object = pod(name, 0, None);
        object["spec"]["containers"] = json!(vec![json!({"name": "c"}); containers]);
        queue.observe(&ClusterEvent::Pod(ObjectChange::Added(&read(&object))), at(0)).unwrap();
    }
    let mut names = Vec::new();
    while let Some(attempt) = queue.pop(at(0), |_| Ok(())) {
        names.push(attempt.pods()[0].metadata.name.clone().unwrap());
    }
    assert_eq!(names, ["large", "medium", "small"]);
}
