//! Random CEL expressions.

use super::{DRIVERS, Random, STANDARD};

/// Returns a selector. Most hold for some devices and not for others; a few are errors.
pub fn selector(random: &mut Random) -> String {
    match random.below(100) {
        0..70 => term(random),
        70..80 => format!("{} && {}", term(random), term(random)),
        80..90 => format!("{} || {}", term(random), term(random)),
        90..94 => format!("!({})", term(random)),
        94..97 => format!("{} ? {} : {}", term(random), term(random), term(random)),
        97 => format!("device.attributes[\"{STANDARD}\"].numaNode == {}", random.below(3)),
        98 => "cel.bind(a, device.attributes, a[\"none\"].size() == 0)".to_owned(),
        _ => random.pick(&["device.nothing == 1", "device.driver", "1 +"]).to_owned(),
    }
}

fn term(random: &mut Random) -> String {
    let driver = random.pick(&DRIVERS);
    let own = format!("device.attributes[\"{driver}\"]");
    let standard = format!("device.attributes[\"{STANDARD}\"]");
    let number = random.below(3);
    match random.below(12) {
        0 | 1 => format!("device.driver == \"{driver}\""),
        2 => format!("device.driver != \"{driver}\""),
        3 => format!("{own}.?model.orValue(\"a\") == \"{}\"", random.pick(&["a", "a", "b"])),
        4 => format!("!has({own}.healthy) || {own}.healthy.includes(true)"),
        5 => format!("has({standard}.numaNode) && {standard}.numaNode.includes({number})"),
        6 => format!("\"pcieRoot\" in {standard}"),
        7 => format!("!(\"{driver}\" in device.capacity) || {}", at_least(random, driver)),
        8 => at_least(random, driver),
        9 => "device.allowMultipleAllocations".to_owned(),
        10 => format!("!has({own}.revision) || {own}.revision.includes(semver(\"1.10.0\"))"),
        _ => "true".to_owned(),
    }
}

fn at_least(random: &mut Random, driver: &str) -> String {
    let memory = format!("device.capacity[\"{driver}\"].?memory");
    format!("{memory}.orValue(quantity(\"2\")).compareTo(quantity(\"{}\")) >= 0", random.pick(&["1", "3"]))
}

/// Returns the expression of a derived attribute, with a type.
pub fn derived(random: &mut Random) -> String {
    let standard = format!("device.attributes[\"{STANDARD}\"]");
    match random.below(20) {
        0..4 => "device.driver".to_owned(),
        4..8 => format!("has({standard}.numaNode) && {standard}.numaNode.includes(1)"),
        8..11 => format!("has({standard}.pcieRoot) ? \"with\" : \"without\""),
        11..14 => "device.allowMultipleAllocations ? [1, 2] : [2, 3]".to_owned(),
        14..16 => format!("{standard}.?numaNode.orValue(0)"),
        16 => "semver(\"1.0.0\")".to_owned(),
        17 => "[\"a\", device.driver]".to_owned(),
        18 => format!("{standard}.numaNode"),
        _ => random.pick(&["1.5", "device.none", "[1].filter(x, x > 1)"]).to_owned(),
    }
}
