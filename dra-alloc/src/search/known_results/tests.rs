//! Comparison of results that devices share with an evaluation on each.

use dra_attrs::Index;
use dra_device::pool::slice_devices;
use dra_selector::internal::is_sound;
use dra_selector::{Options, Selector, SelectorInput};
use k8s_openapi::api::resource::v1::ResourceSlice;

use super::{Known, KnownResults, MOST_VALUES};
use crate::oracle::random::{self, Random};

/// Number of random clusters, lower without optimisation.
const SEEDS: u64 = if cfg!(debug_assertions) { 400 } else { 5_000 };
/// Expressions that tell a missing domain from a missing attribute, or read more than attributes.
const EXPRESSIONS: [&str; 6] = [
    "device.attributes[?'gpu.example.com'].?model.orValue('a') == 'a'",
    "has(device.attributes['gpu.example.com'].model) && device.attributes['gpu.example.com'].model.matches('a|c')",
    "device.attributes['resource.kubernetes.io'].?numaNode.hasValue() && device.driver.startsWith('g')",
    "device.capacity['gpu.example.com'].?memory.optMap(m, m.compareTo(quantity('2')) > 0).orValue(false)",
    "device.allowMultipleAllocations && device.capacity['cpu.example.com'].memory.isGreaterThan(quantity('3'))",
    "device.attributes['cpu.example.com'].?revision.optMap(r, r.major() > 1).orValue(true)",
];

fn devices(slices: &[ResourceSlice]) -> impl Iterator<Item = SelectorInput<'_>> {
    let with_driver = |slice| slice_devices(slice).iter().map(move |device| (slice, device));
    let inputs = slices.iter().flat_map(with_driver);
    let inputs = inputs.map(|(slice, device)| SelectorInput::new(&slice.spec.driver, device));
    inputs.filter(|input| is_sound(input.device))
}

#[test]
fn devices_with_equal_values_have_the_result_of_each_alone() {
    let (mut shared, mut alone, mut held) = (0_u32, 0_u32, 0_u32);
    for seed in 0..SEEDS {
        let random = &mut Random::new(seed);
        let cases = [random::case(seed), random::case(seed + SEEDS), random::case(seed + 2 * SEEDS)];
        let texts = [random::expression(random), random.pick(&EXPRESSIONS).to_owned()];
        for (number, text) in texts.iter().enumerate() {
            let Ok(selector) = Selector::compile(text, &Options::stored()) else { continue };
            let (known, at) = (KnownResults::default(), Index::from(number));
            for input in cases.iter().flat_map(|case| devices(&case.slices)) {
                let own = selector.matches(input);
                if let Some(Known { holds, .. }) = known.of_values(at, &selector, input) {
                    assert_eq!(Ok(holds), own, "{text} on {:?}", input.device);
                    shared += 1;
                    held += u32::from(holds);
                } else if let Ok(holds) = own {
                    known.keep_for_values(at, input, Known { holds, parts: 0 });
                    alone += 1;
                }
            }
            let all = known.by_values.lock().unwrap();
            assert!(all.values().all(|known| known.results.len() <= MOST_VALUES));
        }
    }
    assert!(shared > 1_000 && held > 200 && alone > 1_000, "{shared} shared, {held} of them true, {alone} alone");
}
