//! Random histories: the queue and the second implementation agree after each step.

use std::collections::BTreeMap;
use std::slice;

use dra_alloc::queue::{QueueAttempt, Refusal, Remedy, WhenIdle};
use proptest::prelude::*;

use super::model::Model;
use super::objects::{at, pod, queue, remedy, show};

/// Pods with their priorities and groups.
const PODS: [(&str, i32, Option<&str>); 6] =
    [("a", 0, None), ("b", 0, None), ("c", 5, None), ("d", 0, Some("g")), ("e", 1, Some("g")), ("f", 1, Some("h"))];

const REMEDIES: [&str; 5] = ["room", "devices:x", "devices:y", "any-devices", "members"];

/// Steps of time in milliseconds.
const TIMES: [i64; 6] = [0, 1, 400, 1_000, 7_500, 300_000];

fn play(is_patient: bool, steps: &[(u8, u8)]) {
    let mut queue = queue(if is_patient { WhenIdle::Wait } else { WhenIdle::TryBackingOff });
    let mut model = Model::new(is_patient);
    let mut attempts: BTreeMap<usize, QueueAttempt> = BTreeMap::new();
    let mut now = 0;
    for &(step, choice) in steps {
        let choice = usize::from(choice);
        let (name, priority, group) = PODS[choice % PODS.len()];
        let brought = remedy(REMEDIES[choice % 4]);
        let object = pod(name, priority, group);
        let number = attempts.keys().nth(choice % attempts.len().max(1)).copied();
        match step % 9 {
            0 | 1 => {
                show(&mut queue, None, Some(&object), at(now));
                model.add(name, priority, group, now);
            }
            2 if choice % 4 == 0 => {
                show(&mut queue, Some(&object), None, at(now));
                model.delete(name, now);
            }
            2 | 3 => {
                let attempt = queue.pop(at(now), |_| Ok(()));
                let names = |attempt: &QueueAttempt| {
                    attempt.pods().iter().filter_map(|pod| pod.metadata.name.clone()).collect()
                };
                let found: Vec<String> = attempt.as_ref().map(names).unwrap_or_default();
                assert_eq!(found, model.pop(now));
                attempts.extend(attempt.map(|attempt| (model.number(&found[0]), attempt)));
            }
            4 => {
                let Some(number) = number else { continue };
                let waits_for: Vec<Remedy> = [choice % 5, choice / 5 % 5].map(|index| remedy(REMEDIES[index])).into();
                queue.refused(attempts.remove(&number).unwrap(), Refusal::new(waits_for.clone()), at(now));
                model.refuse(number, &waits_for, now);
            }
            5 => {
                let Some(number) = number else { continue };
                let attempt = attempts.remove(&number).unwrap();
                let pods: Vec<String> = attempt.pods().iter().filter_map(|pod| pod.metadata.name.clone()).collect();
                if choice % 2 == 0 {
                    queue.failed(attempt, at(now));
                    model.fail(number, now);
                } else {
                    queue.done(attempt);
                    model.done(number, &pods);
                }
            }
            6 => assert_eq!(queue.wake(slice::from_ref(&brought), at(now)), model.wake(&brought, now)),
            7 if choice % 5 == 0 => {
                queue.activate(name);
                model.activate(name);
            }
            _ => now += TIMES[choice % TIMES.len()],
        }
        for (name, ..) in PODS {
            assert_eq!(queue.place(name), model.place(name), "pod {name} after step {step}, {choice} at {now}");
        }
        assert_eq!(queue.next_at(), model.next_at().map(at));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_queue_and_the_model_agree(is_patient: bool, steps in prop::collection::vec(any::<(u8, u8)>(), 1..120)) {
        play(is_patient, &steps);
    }
}
