//! Any sequence of kubelet steps: no panic, devices do not accumulate, and no reference remains at the end.
#![no_main]

use std::collections::BTreeMap;

use dra_alloc::kubelet::ClaimCache;
use dra_attrs::{Component, Gate, Profile};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use libfuzzer_sys::fuzz_target;

type Input = (Pod, Vec<ResourceClaim>, Vec<(u8, BTreeMap<String, Result<(), String>>)>);

fuzz_target!(|text: &[u8]| {
    let Ok((pod, claims, steps)) = serde_json::from_slice::<Input>(text) else { return };
    let (mut cache, mut settings) = (ClaimCache::default(), Component::of(Profile::V1_37));
    for (step, answers) in steps {
        let answer = |driver: &str| {
            if driver.len() % 2 == usize::from(step % 2) {
                Ok(answers.clone().into_iter().collect())
            } else {
                Err(String::new())
            }
        };
        match step % 6 {
            0 => settings = Component::new(settings.profile(), settings.gates().with(Gate::OptionalNodeOperations)),
            1 => settings = Component::new(settings.profile(), settings.gates().without(Gate::OptionalNodeOperations)),
            2 => cache = ClaimCache::from_checkpoint(cache.to_checkpoint(Profile::V1_37).as_bytes()).expect("readable"),
            3 | 4 => {
                let Ok(mut plan) = cache.plan_prepare(&pod, &claims, |driver| driver.len() < 8, settings) else {
                    continue;
                };
                for (driver, claims) in plan.calls().clone() {
                    let devices =
                        claims.iter().map(|claim| (claim.uid.clone(), Ok(vec![Default::default()]))).collect();
                    let _ = cache.apply_prepare(&mut plan, &driver, answer(&driver).map(|_| devices));
                }
                let _ = cache.finish_prepare(plan);
            }
            _ => {
                let Ok(mut plan) = cache.plan_unprepare(&pod, |_| true, settings) else { continue };
                for driver in plan.calls().clone().into_keys() {
                    let _ = cache.apply_unprepare(&mut plan, &driver, answer(&driver));
                }
                let ended = cache.finish_unprepare(plan).is_ok();
                assert!(!ended || !cache.may_need_unprepare(pod.metadata.uid.as_deref().unwrap_or_default()));
            }
        }
        let states = cache.claims().values().flat_map(|info| info.drivers.values());
        assert!(states.clone().all(|state| state.devices.len() <= 1), "devices pile up");
    }
});
