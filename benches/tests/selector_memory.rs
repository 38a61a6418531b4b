//! Memory of evaluations that do much work, by a heap profiler.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use benches::dear_selectors::{DRIVER, dear_selectors, large_device};
use dra_alloc::selector::{Options, Selector, SelectorInput};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// Most memory of an evaluation, with that of its value.
const LIMIT: usize = 64 << 20;

/// Of all expressions one in so many is tried, and those that were found to take most.
const EVERY: usize = if cfg!(debug_assertions) { 2_999 } else { 499 };
const LARGE: [&str; 6] = [
    "once x.split('').size() == 0 huge ",
    "once x.map(k, k.split('')).size() == 0 same-texts ",
    "kept [x, x, x].join(x) == '' huge-accents ",
    "once '%s %s %s'.format([x, x, y]) == '' map-long-keys longer",
    "made (x + x).size() == 0 most ",
    "once x.map(k, [k, k]).flatten().size() == 0 most ",
];

#[test]
fn an_evaluation_takes_at_most_64_mib() {
    let _profiler = dhat::Profiler::builder().testing().build();
    let device = large_device();
    let input = SelectorInput::new(DRIVER, &device);
    let (mut largest, mut large) = (0, 0);
    let tried = |(number, name): (usize, &str)| number.is_multiple_of(EVERY) || LARGE.contains(&name);
    for (_, dear) in dear_selectors().enumerate().filter(|(number, dear)| tried((*number, &dear.name))) {
        let Ok(selector) = Selector::compile_any(&dear.expression, &Options::stored()) else { continue };
        large += usize::from(LARGE.contains(&dear.name.as_str()));
        let before = dhat::HeapStats::get().curr_bytes;
        drop(selector.evaluate(input));
        let most = dhat::HeapStats::get().max_bytes;
        if most > largest {
            println!("{:3} MiB  {}", (most - before) >> 20, dear.name);
            largest = most;
        }
        assert!(most - before <= LIMIT, "{}: {} bytes", dear.name, most - before);
    }
    assert_eq!(large, LARGE.len());
}
