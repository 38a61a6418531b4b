//! Metrics of a program, in the text format of Prometheus. Counts are whole numbers; only durations have fractions.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Largest number of combinations of label values that a metric tells apart.
const MOST: usize = 1000;

/// Label value of everything beyond [`MOST`].
const OTHER: &str = "other";

/// All metrics of a program.
///
/// ```
/// use dra_live::metrics::Metrics;
/// use std::time::Duration;
/// let metrics = Metrics::default();
/// let attempts = metrics.counter("attempts_total", "Attempts, by result", &["result"]);
/// attempts.add(&["good"], 2);
/// let durations = metrics.histogram("attempt_seconds", "Time of an attempt", &[], [1, 10].map(Duration::from_secs));
/// durations.observe(&[], Duration::from_millis(1500));
/// let text = "\
/// ## HELP attempts_total Attempts, by result
/// ## TYPE attempts_total counter
/// attempts_total{result=\"good\"} 2
/// ## HELP attempt_seconds Time of an attempt
/// ## TYPE attempt_seconds histogram
/// attempt_seconds_bucket{le=\"1\"} 0
/// attempt_seconds_bucket{le=\"10\"} 1
/// attempt_seconds_bucket{le=\"+Inf\"} 1
/// attempt_seconds_sum 1.5
/// attempt_seconds_count 1
/// ";
/// assert_eq!(metrics.text(), text);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Metrics(Arc<Mutex<Vec<Arc<Family>>>>);

/// Counter or gauge, with a value for each combination of its labels.
#[derive(Clone, Debug)]
pub struct Series(Arc<Family>);

/// Histogram of durations.
#[derive(Clone, Debug)]
pub struct Histogram(Arc<Family>);

#[derive(Debug)]
struct Family {
    name: &'static str,
    help: &'static str,
    kind: Kind,
    labels: &'static [&'static str],
    samples: Mutex<BTreeMap<Vec<String>, Sample>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Counter,
    Gauge,
    /// Upper bounds, ascending.
    Histogram(Vec<Duration>),
}

/// Value of a series, or number of durations.
#[derive(Clone, Debug, Default)]
struct Sample {
    value: u64,
    sum: Duration,
    /// Number of durations up to each bound.
    below: Vec<u64>,
}

impl Metrics {
    /// Adds a number that only grows, until the program ends.
    #[must_use]
    pub fn counter(&self, name: &'static str, help: &'static str, labels: &'static [&'static str]) -> Series {
        Series(self.add(name, help, Kind::Counter, labels))
    }

    /// Adds a number that grows and shrinks.
    #[must_use]
    pub fn gauge(&self, name: &'static str, help: &'static str, labels: &'static [&'static str]) -> Series {
        Series(self.add(name, help, Kind::Gauge, labels))
    }

    /// Adds a histogram of durations. The `bounds` of its buckets ascend.
    #[must_use]
    pub fn histogram(
        &self,
        name: &'static str,
        help: &'static str,
        labels: &'static [&'static str],
        bounds: impl IntoIterator<Item = Duration>,
    ) -> Histogram {
        Histogram(self.add(name, help, Kind::Histogram(bounds.into_iter().collect()), labels))
    }

    fn add(&self, name: &'static str, help: &'static str, kind: Kind, labels: &'static [&'static str]) -> Arc<Family> {
        let family = Arc::new(Family { name, help, kind, labels, samples: Mutex::default() });
        lock(&self.0).push(Arc::clone(&family));
        family
    }

    /// Returns all metrics as `/metrics` serves them, in the order in which they were added.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for family in lock(&self.0).iter() {
            // Writing to a String can't fail.
            let _ = family.write(&mut text);
        }
        text
    }
}

impl Series {
    /// Adds to the value of some labels, which are given in the order of their names.
    pub fn add(&self, labels: &[&str], more: u64) {
        self.0.change(labels, |sample| sample.value = sample.value.saturating_add(more));
    }

    /// Sets the value of some labels: a gauge, or a counter that somebody else keeps.
    pub fn set(&self, labels: &[&str], value: u64) {
        self.0.change(labels, |sample| sample.value = value);
    }

    /// Replaces all values, of a gauge whose labels come and go.
    pub fn replace(&self, values: impl IntoIterator<Item = (Vec<String>, u64)>) {
        lock(&self.0.samples).clear();
        for (labels, value) in values {
            self.set(&labels.iter().map(String::as_str).collect::<Vec<_>>(), value);
        }
    }
}

impl Histogram {
    /// Counts a duration.
    pub fn observe(&self, labels: &[&str], duration: Duration) {
        let Kind::Histogram(bounds) = &self.0.kind else { return };
        self.0.change(labels, |sample| {
            sample.value = sample.value.saturating_add(1);
            sample.sum = sample.sum.saturating_add(duration);
            sample.below.resize(bounds.len(), 0);
            for (count, bound) in sample.below.iter_mut().zip(bounds) {
                *count = count.saturating_add((duration <= *bound).into());
            }
        });
    }
}

impl Family {
    fn change(&self, labels: &[&str], change: impl FnOnce(&mut Sample)) {
        let mut samples = lock(&self.samples);
        let mut key: Vec<String> = labels.iter().map(|&value| value.to_owned()).collect();
        if samples.len() >= MOST && !samples.contains_key(&key) {
            key.fill(OTHER.to_owned());
        }
        change(samples.entry(key).or_default());
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        let Self { name, help, kind, .. } = self;
        writeln!(text, "# HELP {name} {help}\n# TYPE {name} {}", kind.name())?;
        for (values, sample) in lock(&self.samples).iter() {
            let pairs: Vec<String> = self.labels.iter().zip(values).map(|(label, value)| pair(label, value)).collect();
            let Kind::Histogram(bounds) = kind else {
                writeln!(text, "{name}{} {}", braces(&pairs), sample.value)?;
                continue;
            };
            let counts = bounds.iter().map(|bound| bound.as_secs_f64().to_string()).zip(&sample.below);
            for (bound, count) in counts.chain([("+Inf".to_owned(), &sample.value)]) {
                let pairs = [pairs.as_slice(), &[pair("le", &bound)]].concat();
                writeln!(text, "{name}_bucket{} {count}", braces(&pairs))?;
            }
            let labels = braces(&pairs);
            writeln!(text, "{name}_sum{labels} {}", sample.sum.as_secs_f64())?;
            writeln!(text, "{name}_count{labels} {}", sample.value)?;
        }
        Ok(())
    }
}

impl Kind {
    const fn name(&self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram(_) => "histogram",
        }
    }
}

fn pair(label: &str, value: &str) -> String {
    let escaped = value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
    format!("{label}=\"{escaped}\"")
}

fn braces(pairs: &[String]) -> String {
    if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
