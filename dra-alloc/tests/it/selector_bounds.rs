//! Tests that every selector terminates with bounded memory and stack.

use std::thread;

use dra_alloc::selector::{CompileError, EvaluationError, Selector, SelectorInput};
use k8s_openapi::api::resource::v1::Device;

use crate::selector::{DRIVER, evaluate, gpu, int, ints};

/// Returns expressions that would not terminate, or would exceed the memory, without a cost limit.
fn endless() -> Vec<String> {
    let range = "lists.range(200)";
    let nested = |body: &str| format!("{range}.all(a, {range}.all(b, {range}.all(c, {range}.all(d, {body}))))");
    let doubling = |step: &str| {
        let binds = format!("cel.bind(s, {step}, ").repeat(5);
        format!("cel.bind(s, '{}', {binds}s.size() > 0{}", "a".repeat(100), ")".repeat(6))
    };
    let long = "x".repeat(5_000);
    vec![
        nested("true"),
        nested("a + b + c + d >= 0"),
        nested("1 / 0 == 1"),
        format!("{range}.map(a, {range}.map(b, {range}.map(c, {range}))).size() == 0"),
        format!("{range}.filter(a, {range}.filter(b, {range}.filter(c, true).size() > 0).size() > 0).size() == 0"),
        format!("{range}.exists_one(a, {range}.exists_one(b, {range}.exists_one(c, true)))"),
        nested(&format!("!'{long}'.contains('xy')")),
        nested(&format!("!'{long}'.matches('(x+x+)+y')")),
        nested(&format!("!(a + 2 in [{}])", "1,".repeat(1_000).trim_end_matches(','))),
        nested("{'a': 1, 'b': 2}.size() == 2"),
        nested(&["1 + 1 == 2"; 700].join("&&")),
        nested(&["device.driver != 'x'"; 400].join("&&")),
        doubling("s + s + s + s + s + s + s + s + s + s"),
        doubling("s.replace('a', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa')"),
        doubling("[s, s, s, s, s, s, s, s, s, s].join(s)"),
        "lists.range(9223372036854775807).size() > 0".to_owned(),
        "lists.range(100000).map(a, lists.range(100000)).size() > 0".to_owned(),
        format!("{range}.all(a, !'x'.matches(string(a) + '{}'))", "[a-z]{9}".repeat(500)),
        "cel.bind(l, lists.range(2000), l.map(x, l).flatten().distinct().size() > 0)".to_owned(),
        "cel.bind(l, lists.range(2000), sets.equivalent(l, l.reverse()) && sets.equivalent(l, l))".to_owned(),
        "cel.bind(l, lists.range(900000), l.sort().size() > 0)".to_owned(),
    ]
}

#[test]
fn exhaustion_is_an_error_whatever_the_result() {
    let gpu = gpu();
    for (number, expression) in endless().into_iter().enumerate() {
        let absorbed = [format!("({expression}) || true"), format!("!(({expression}) && false)")];
        // `||` and `&&` absorb errors alike in all expressions: the first three suffice.
        let variants = absorbed.into_iter().take(if number < 3 { 2 } else { 0 });
        for expression in variants.chain([expression]) {
            let selector = Selector::compile(&expression).unwrap_or_else(|error| panic!("{error}: {expression}"));
            let result = selector.matches(SelectorInput { driver: DRIVER, device: &gpu });
            assert_eq!(result, Err(EvaluationError::CostExceeded), "{expression}");
        }
    }
}

#[test]
fn a_device_larger_than_the_api_allows_is_not_walked_for_ever() {
    let names = (0..100_000).map(|number| (format!("name-{number}"), int(1)));
    let list = [("list".to_owned(), ints(&vec![1; 100_000]))];
    let large = Device { attributes: Some(names.chain(list).collect()), ..Default::default() };
    let range = "lists.range(1000)";
    for body in [
        "!('zone.example' in device.attributes)",
        "device.attributes.size() > 0",
        "device.attributes['gpu.example'].size() > 0",
        "device.attributes['gpu.example'].all(k, true)",
        "device.attributes['gpu.example'].list.size() > 0",
        "device.attributes == device.attributes",
    ] {
        let expression = format!("{range}.all(a, {range}.all(b, {body}))");
        assert_eq!(evaluate(&expression, &large), Err(EvaluationError::CostExceeded.to_string()), "{body}");
    }
}

#[test]
fn long_and_deep_expressions_do_not_exhaust_the_stack() {
    // Runs on the default stack of a thread, also in a build without optimization.
    let room = 10_240;
    let nested = |open: &str, inner: &str, close: &str| {
        let times = (room - inner.len()) / (open.len() + close.len());
        format!("{}{inner}{}", open.repeat(times), close.repeat(times))
    };
    let chain = move |first: &str, link: &str| format!("{first}{}", link.repeat((room - first.len()) / link.len()));
    let refused = [
        nested("(", "true", ")"),
        nested("!(", "true", ")"),
        nested("[", "1", "]"),
        nested("{1:", "1", "}"),
        nested("size(", "'a'", ")"),
        nested("[1].all(x,", "true", ")"),
        nested("[1].map(x,", "true", ")"),
        nested("cel.bind(x,1,", "true", ")"),
        nested("has(", "a.b", ")"),
        chain("device.attributes", ".b"),
        chain("device.attributes", ".?b"),
        chain("device.attributes", "['b']"),
        chain("'a'", ".trim()"),
        chain("1", "+1"),
        chain("1", "-1"),
        chain("1", "==1"),
        chain("1", " in 1"),
        chain("'a'", "+'||'"),
        chain("'a'", "+r'\\'"),
        chain("'a'", "+\"&&\""),
        chain("true", "?true:true"),
        chain("", "("),
        chain("", "["),
        chain("", ")("),
    ];
    let fine =
        [chain("true", "||true"), chain("true", "&&true"), vec!["device.driver == 'gpu.example'"; 300].join("||")];
    let run = move || {
        let device = gpu();
        for expression in refused {
            let refusal = Selector::compile(&expression).map(|_| "compiled");
            assert_eq!(refusal, Err(CompileError::TooComplex), "{}", &expression[..40]);
        }
        let unknown = Selector::compile(&chain("", "\u{1F600}"));
        assert!(matches!(unknown, Err(CompileError::Syntax { .. })), "{unknown:?}");
        for expression in fine {
            assert_eq!(evaluate(&expression, &device), Ok(true), "{}", &expression[..40]);
        }
        for sign in ["!", "-"] {
            let _ = Selector::compile(&chain("", sign));
            let _ = Selector::compile(&format!("{}true", sign.repeat(10_000)));
        }
        // The deepest expressions that compile must also be evaluated.
        for (open, inner, close) in [
            ("(", "true", ")"),
            ("!(", "true", ")"),
            ("[1].all(x,", "true", ")"),
            ("[1].exists_one(x,", "true", ")"),
            ("[1].map(x,", "1", ")"),
            ("[1].filter(x, x > 0 && ", "1", ".size() > 0)"),
            ("cel.bind(x, 1, ", "true", ")"),
            ("size([", "1", "])"),
        ] {
            let deepest = (1..12).rev().find_map(|times| {
                let expression = format!("{}{inner}{}", open.repeat(times), close.repeat(times));
                Selector::compile_derived(&format!("dyn({expression})")).ok()
            });
            let _ = deepest.map(|selector| selector.derive(SelectorInput { driver: DRIVER, device: &device }));
        }
        for (first, link) in [("1", "+1"), ("'a'", ".trim()"), ("dyn([1])", "[0]"), ("dyn({})", ".?a"), ("1", "-1")] {
            let deepest = (1..60)
                .rev()
                .find_map(|times| Selector::compile_derived(&format!("dyn({first}{})", link.repeat(times))).ok());
            let _ = deepest.unwrap().derive(SelectorInput { driver: DRIVER, device: &device });
        }
    };
    thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap();
}
