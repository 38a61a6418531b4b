//! Processor time of the dearest selectors: `cargo run --release -p benches --example dearest_selectors -- [COUNT [EVERY]]`
//! evaluates each `EVERY`th (97th) of those in `benches::dear_selectors` on a large device, and prints the `COUNT` (20) that
//! took longest. An evaluation may take 50 ms.
#![expect(clippy::expect_used, reason = "an example stops where its input is wrong")]

use std::time::{Duration, Instant};

use benches::dear_selectors::{DRIVER, dear_selectors, large_device};
use dra_alloc::selector::{Options, Selector, SelectorInput};

/// Attempts of which the fastest counts.
const ATTEMPTS: usize = 3;

/// Time below which one attempt will do.
const FAST: Duration = Duration::from_millis(40);

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>().expect("a number"));
    let (count, every) = (arguments.next().unwrap_or(20), arguments.next().unwrap_or(97));
    let device = large_device();
    let input = SelectorInput::new(DRIVER, &device);
    let mut times = Vec::new();
    for dear in dear_selectors().step_by(every) {
        let Ok(selector) = Selector::compile_any(&dear.expression, &Options::stored()) else { continue };
        let mut attempts = (0..ATTEMPTS).map(|_| {
            let begin = Instant::now();
            let evaluation = selector.evaluate(input);
            (begin.elapsed(), evaluation.result.map_or_else(|error| error.to_string(), |_| "a value".to_owned()))
        });
        let first = attempts.next().filter(|(time, _)| *time < FAST);
        if let Some((time, end)) = first.or_else(|| attempts.min()) {
            times.push((time, dear.name, end));
        }
    }
    times.sort_by(|one, other| other.cmp(one));
    println!("{} evaluated", times.len());
    for (time, name, end) in times.iter().take(count) {
        println!("{:4} ms  {name}: {end}", time.as_millis());
    }
}
