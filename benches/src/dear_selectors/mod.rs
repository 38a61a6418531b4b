//! Selectors that take much time or memory: functions and operations on values of several sizes, alone and in loops that end
//! by the limits of an evaluation.

use k8s_openapi::api::resource::v1::Device;
use serde_json::{Map, Value, from_value, json};

/// A kind, a name and an expression a line.
const VALUES: &str = include_str!("values.txt");

/// A kind of values and an expression over `x`, such a value, and perhaps `y`, a second value, a line.
const BODIES: &str = include_str!("bodies.txt");

/// Driver of the device that selectors look at.
pub const DRIVER: &str = "gpu.example";

/// Kind of bodies that take all values.
const ANY: &str = "any";

/// Kinds of lists with elements of one type.
const LISTS: [&str; 2] = ["texts", "lists"];

/// Names of second values.
const SECOND: [&str; 4] = ["short", "longer", "thousands", "map-hundred"];

/// Texts around a body: alone, in many rounds, kept for each round, and with an error in each round.
const LOOPS: [(&str, &str, &str); 4] = [
    ("once", "", ""),
    ("rounds", "lists.range(1000).map(i, lists.range(1000).all(j, (", ") || true))"),
    ("kept", "lists.range(200000).map(i, ", ")"),
    (
        "errors",
        "lists.range(300).all(i, lists.range(300).all(j, lists.range(300).exists(k, (",
        ") && 1 / 0 == 1)) || true)",
    ),
];

/// Selector that takes much.
#[derive(Debug)]
pub struct DearSelector {
    /// Loop, body, and the names of its values.
    pub name: String,
    /// Expression, of any type.
    pub expression: String,
}

/// Returns all of them, about 20,000. Some do not compile, as not each body fits each value of its kind.
pub fn dear_selectors() -> impl Iterator<Item = DearSelector> {
    BODIES.lines().filter_map(|line| line.split_once(' ')).flat_map(|(kind, body)| {
        let fits = move |of: &str| kind == ANY || kind == of || (kind == "list" && LISTS.contains(&of));
        let second = if has_second(body) { SECOND.as_slice() } else { &[""] };
        let pairs = values()
            .filter(move |(of, ..)| fits(of))
            .flat_map(|(_, name, value)| second.iter().map(move |second| (name, value, *second)));
        pairs.flat_map(move |(name, value, second)| in_loops(body, (name, value), second))
    })
}

/// Returns a device as large as the API allows: 32 attributes, long values, lists.
#[must_use]
pub fn large_device() -> Device {
    let text = "v".repeat(64);
    let named = |number: usize| {
        (format!("zone{number}.example.com/a-name-as-long-as-names-may-be{number}"), json!({"string": text}))
    };
    let mut attributes: Map<String, Value> = (0..29).map(named).collect();
    let texts: Vec<String> = (0..64).map(|number| format!("{number:064}")).collect();
    let ints: Vec<i64> = (0..64).collect();
    attributes.insert("list".to_owned(), json!({"ints": ints}));
    attributes.insert("texts".to_owned(), json!({"strings": texts}));
    attributes.insert("version".to_owned(), json!({"version": "1.2.3-alpha.1.beta.2+build"}));
    let capacity: Map<String, Value> =
        (0..32).map(|number| (format!("capacity{number}"), json!({"value": format!("{number}23456789Gi")}))).collect();
    from_value(json!({"name": "device", "attributes": attributes, "capacity": capacity})).expect("a device")
}

fn values() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    VALUES.lines().filter_map(|line| {
        let mut words = line.splitn(3, ' ');
        Some((words.next()?, words.next()?, words.next()?))
    })
}

/// Returns true if a body has `y` as a word.
fn has_second(body: &str) -> bool {
    body.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == "y")
}

fn in_loops(body: &str, (name, value): (&str, &str), second: &str) -> Vec<DearSelector> {
    let other = values().find(|(_, name, _)| *name == second).map(|(.., value)| value);
    let bound = |inner: &str| match other {
        Some(other) => format!("cel.bind(x, {value}, cel.bind(y, {other}, {inner}))"),
        None => format!("cel.bind(x, {value}, {inner})"),
    };
    let named = |how: &str, inner: &str| DearSelector {
        name: format!("{how} {body} {name} {second}"),
        expression: bound(inner),
    };
    // What a body makes before it is compared is kept, too.
    let made = body.strip_suffix(".size() == 0").or_else(|| body.strip_suffix(" == ''"));
    let made = made.map(|made| named("made", &format!("lists.range(100000).map(i, {made})")));
    LOOPS.iter().map(|(how, open, close)| named(how, &format!("{open}{body}{close}"))).chain(made).collect()
}
