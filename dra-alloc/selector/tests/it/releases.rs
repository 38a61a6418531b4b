//! Tests of the environment of expressions by release.

use dra_attrs::{Gate, GateSet, Profile};
use dra_selector::{Options, Selector};

/// A further release needs an answer in each row.
const RELEASES: [Profile; 4] = Profile::RELEASES;

/// Releases in which an expression compiles: that is stored, that is new, and that is new while the gate of lists is off.
fn compiles(expression: &str) -> [String; 3] {
    let off = GateSet::all().without(Gate::ListTypeAttributes);
    [Options::stored(), Options::new_expression(GateSet::all()), Options::new_expression(off)].map(|options| {
        let compiles = |profile: &Profile| Selector::compile(expression, &options.with_profile(*profile)).is_ok();
        RELEASES.iter().filter(|profile| compiles(profile)).map(|profile| profile.name()).collect::<Vec<_>>().join(" ")
    })
}

#[test]
fn an_expression_compiles_in_the_releases_that_know_its_functions() {
    let (every, lists, later) = ("v1.34 v1.35 v1.36 v1.37", "v1.36 v1.37", "v1.35 v1.36 v1.37");
    let rows = [
        ("[1].min() == 1", [every; 3]),
        ("device.attributes['a.b'].c", [every; 3]),
        ("device.attributes['a.b'].c.includes(1)", [lists, lists, ""]),
        ("device.attributes['a.b'].c.exists(x, x == 1)", [lists, lists, ""]),
        ("1 in lists.range(3)", [every, later, later]),
        ("[1, 2].slice(0, 1) == [1]", [every, later, later]),
        ("[[1]].flatten() == [1]", [every, later, later]),
        ("[1].sort() == [1]", [every, later, later]),
        ("[1].sortBy(e, e) == [1]", [every, later, later]),
        ("[1].distinct() == [1]", [every, later, later]),
        ("[1].reverse() == [1]", [every, later, later]),
    ];
    for (expression, expected) in rows {
        assert_eq!(compiles(expression), expected, "{expression}");
    }
}

#[test]
fn a_macro_that_a_release_lacks_is_a_function_that_is_not_declared() {
    let options = Options::new_expression(GateSet::of(Profile::V1_34)).with_profile(Profile::V1_34);
    let error = Selector::compile("[1].sortBy(e, e) == [1]", &options).unwrap_err().to_string();
    assert!(error.contains("undeclared reference to 'sortBy'") && error.contains("undeclared reference to 'e'"));
}
