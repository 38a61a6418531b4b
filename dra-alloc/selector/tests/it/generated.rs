//! Property tests of random selectors: none panics, and each has the same result twice.

use dra_selector::{Options, Selector, SelectorInput};
use proptest::prelude::*;

use super::matching::{DRIVER, gpu};

const LEAVES: [&str; 29] = [
    "true",
    "0",
    "-1",
    "9223372036854775807",
    "1.5",
    "1u",
    "''",
    "'ä,b'",
    "b'a'",
    "null",
    "x",
    "y",
    "int",
    "[]",
    "{}",
    "[1, 2]",
    "{'a': 1}",
    "device",
    "device.driver",
    "device.attributes",
    "device.attributes['gpu.example']",
    "device.attributes['gpu.example'].ids",
    "device.attributes['gpu.example'].?model",
    "device.capacity['gpu.example'].memory",
    "quantity('1Ki')",
    "semver('1.2.3')",
    "ip('10.0.0.1')",
    "cidr('2001:db8::1/32')",
    "optional.none()",
];

const METHODS: [&str; 43] = [
    "includes",
    "contains",
    "matches",
    "find",
    "findAll",
    "split",
    "join",
    "replace",
    "substring",
    "charAt",
    "indexOf",
    "lastIndexOf",
    "trim",
    "reverse",
    "sum",
    "min",
    "max",
    "isSorted",
    "slice",
    "flatten",
    "distinct",
    "sort",
    "compareTo",
    "isGreaterThan",
    "add",
    "sub",
    "sign",
    "asInteger",
    "asApproximateFloat",
    "major",
    "family",
    "containsIP",
    "containsCIDR",
    "masked",
    "ip",
    "orValue",
    "or",
    "value",
    "hasValue",
    "size",
    "a",
    "startsWith",
    "lowerAscii",
];

/// Generates expressions that are nearly valid.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(&LEAVES[..]);
    // `dyn` hides most leaves from the type checker, so that they reach the evaluation.
    let leaf = (leaf, 0..4).prop_map(|(leaf, shown)| if shown == 0 { leaf.to_owned() } else { format!("dyn({leaf})") });
    leaf.prop_recursive(3, 16, 3, |inner| {
        let binary = prop::sample::select(vec!["&&", "||", "==", "!=", "<", ">=", "+", "-", "*", "/", "%", "in"]);
        let unary = prop::sample::select(vec![
            "!",
            "-",
            "has",
            "size",
            "dyn",
            "string",
            "int",
            "type",
            "optional.of",
            "lists.range",
            "quantity",
        ]);

        let macros = prop::sample::select(vec!["all", "exists", "exists_one", "map", "filter", "sortBy", "optMap"]);
        let two_variables = prop::sample::select(vec!["all", "exists", "existsOne", "transformList"]);
        prop_oneof![
            (inner.clone(), binary, inner.clone()).prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            (unary, inner.clone()).prop_map(|(op, a)| format!("{op}({a})")),
            (inner.clone(), prop::sample::select(&METHODS[..]), prop::collection::vec(inner.clone(), 0..3))
                .prop_map(|(a, method, b)| format!("{a}.{method}({})", b.join(", "))),
            (inner.clone(), macros, inner.clone()).prop_map(|(a, name, b)| format!("{a}.{name}(x, {b})")),
            (inner.clone(), two_variables, inner.clone()).prop_map(|(a, name, b)| format!("{a}.{name}(x, y, {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("cel.bind(y, {a}, {b})")),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a} ? {b} : {c})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a}[{b}]")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a}[?{b}]")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("[{a}, {b}]")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("{{{a}: {b}}}")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn generated_expressions_never_panic_and_answer_the_same_twice(expression in expression()) {
        // In the scope of both variables, or of none.
        for expression in [format!("cel.bind(x, 'a', cel.bind(y, [1], dyn({expression})))"), expression] {
            let device = gpu();
            let input = SelectorInput::new(DRIVER, &device);
            if let Ok(selector) = Selector::compile(&expression, &Options::stored()) {
                prop_assert_eq!(selector.matches(input), selector.matches(input));
            }
            if let Ok(selector) = Selector::compile_derived(&expression, &Options::stored()) {
                prop_assert_eq!(selector.derive(input), selector.derive(input));
            }
        }
    }

    #[test]
    fn arbitrary_text_never_panics(text in "\\PC{0,60}", tokens in prop::collection::vec(
        prop::sample::select(vec!["(", ")", "[", "]", "{", "}", ".", "?", ":", "'", "\"", "'''", "\\", "r'", "//", "\n", "a",
            "device", "in", "&&", "||", "+", "-", "!", "1", ",", "all", "cel.bind", "@fuel", "`"]), 0..40)) {
        let device = gpu();
        let input = SelectorInput::new(DRIVER, &device);
        for text in [text, tokens.concat(), tokens.join(" ")] {
            if let Ok(selector) = Selector::compile(&text, &Options::stored()) {
                let _ = selector.matches(input);
            }
        }
    }
}
