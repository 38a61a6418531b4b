//! Tests that every selector terminates with bounded memory and stack.

use std::thread;

use dra_selector::{CompileError, EvaluationError, Options, Selector, SelectorInput};
use k8s_openapi::api::resource::v1::Device;

use crate::matching::{DRIVER, evaluate, gpu, int, ints};

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
        // Lists that share their parts have more elements than memory.
        sharing("b59.isSorted() || true"),
        sharing("b59.indexOf(1) < 0"),
        sharing("b59 == b59"),
        // What has no price is work.
        format!("{range}.all(a, {range}.all(b, {}))", ["true"; 1_500].join("&&")),
        format!("cel.bind(s, {}, lists.range(90000).all(a, int(s) > 0 || true))", long_text()),
        format!("cel.bind(l, {range}.map(a, {} + string(a)), {range}.all(a, dyn(l).sort().size() > 0))", long_text()),
    ]
}

/// Returns an expression over lists of which each has the one before twice.
fn sharing(body: &str) -> String {
    let bind = |number: usize| match number {
        0 => "cel.bind(b0, [1, 2], ".to_owned(),
        _ => format!("cel.bind(b{number}, [dyn(b{before}), dyn(b{before})], ", before = number - 1),
    };
    let binds: String = (0..60).map(bind).collect();
    format!("{binds}{body}{}", ")".repeat(60))
}

/// Returns an expression of a text of 40,000 characters.
fn long_text() -> String {
    format!("'{}'.replace('1', '{}')", "1".repeat(400), "1".repeat(100))
}

#[test]
fn values_that_share_their_parts_are_not_copied_without_end() {
    let selector = Selector::compile_any(&sharing("b59"), &Options::stored()).unwrap();
    let evaluation = selector.evaluate(SelectorInput::new(DRIVER, &gpu()));
    assert_eq!(evaluation.result, Err(EvaluationError::CostExceeded));
}

#[test]
fn numbers_without_order_can_be_sorted() {
    let doubles = "lists.range(60).map(a, a % 3 == 0 ? double('NaN') : 1.0 / double(a % 7))";
    assert_eq!(evaluate(&format!("{doubles}.sort().size() == 60"), &gpu()), Ok(true));
}

#[test]
fn exhaustion_is_an_error_whatever_the_result() {
    let gpu = gpu();
    for (number, expression) in endless().into_iter().enumerate() {
        let absorbed = [format!("({expression}) || true"), format!("!(({expression}) && false)")];
        // `||` and `&&` absorb errors alike in all expressions: the first three suffice.
        let variants = absorbed.into_iter().take(if number < 3 { 2 } else { 0 });
        for expression in variants.chain([expression]) {
            let selector = Selector::compile(&expression, &Options::stored())
                .unwrap_or_else(|error| panic!("{error}: {expression}"));
            let result = selector.matches(SelectorInput::new(DRIVER, &gpu));
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

/// Stack on which everything has to be compiled and evaluated, also in a build without optimization.
const STACK: usize = 512 << 10;

fn on_a_small_stack(run: impl FnOnce() + Send + 'static) {
    thread::Builder::new().stack_size(STACK).spawn(run).unwrap().join().unwrap();
}

/// Returns an expression with as many levels as the language allows.
fn nested(levels: usize, open: &str, inner: &str, close: &str) -> String {
    format!("{}{inner}{}", open.repeat(levels), close.repeat(levels))
}

#[test]
fn the_limits_of_nesting_are_those_of_the_language() {
    on_a_small_stack(|| {
        let device = gpu();
        for (levels, open, inner, close) in [
            (249, "(", "true", ")"),
            (249, "!(", "true", ")"),
            (249, "[", "1", "]"),
            (249, "dyn(", "true", ")"),
            (248, "{1:", "1", "}"),
            (240, "[1].all(x,", "true", ")"),
            (240, "[1].map(x,", "1", ")"),
            (240, "[1].filter(x, x > 0 && ", "1", ".size() > 0)"),
            (240, "cel.bind(x,1,", "true", ")"),
            (120, "cel.bind(x, [[[[[[[[1]]]]]]]],", "true", ")"),
            (124, "(1+", "1", ")"),
            (200, "true ? true : ", "true", ""),
            (250, "", "1", "+1"),
            (250, "", "device.attributes", ".b"),
            (250, "", "dyn({})", ".?b"),
            (250, "", "'a'", ".trim()"),
            (20_000, "!", "true", ""),
            (20_000, "", "true", "||true"),
            (20_000, "", "[1", ",1"),
        ] {
            let expression = nested(levels, open, inner, close);
            if let Ok(selector) = Selector::compile_any(&expression, &Options::stored()) {
                let evaluation = selector.evaluate(SelectorInput::new(DRIVER, &device));
                assert!(evaluation.cost < 1_000_000, "{levels} times {open}{close}");
            }
            let deeper = nested(levels * 20, open, inner, close);
            let _ = Selector::compile_any(&deeper, &Options::stored());
        }
        let deepest = nested(249, "(", "true", ")");
        assert_eq!(evaluate(&deepest, &device), Ok(true));
        let too_deep = Selector::compile(&nested(250, "(", "true", ")"), &Options::stored());
        let Err(CompileError::Syntax { report }) = too_deep else { panic!("{too_deep:?}") };
        assert_eq!(report.issues().next().unwrap().1, "expression recursion limit exceeded: 250");
    });
}

#[test]
fn the_value_of_a_derived_attribute_is_small() {
    let (device, many) = (gpu(), format!("['{}'].map(x, x + x)", "x".repeat(9_000)));
    for (expression, fits) in [
        ("lists.range(48)", true),
        ("lists.range(5000)", false),
        (&format!("'{}'", "x".repeat(9_000)), true),
        (&long_text(), false),
        (&many, false),
    ] {
        let selector = Selector::compile_derived(expression, &Options::stored()).unwrap();
        let derived = selector.derive(SelectorInput::new(DRIVER, &device));
        assert_eq!(derived.is_ok(), fits, "{}", expression.get(..20).unwrap_or(expression));
    }
}

#[test]
fn long_chains_are_evaluated() {
    let device = gpu();
    for link in ["||true", "&&true"] {
        assert_eq!(evaluate(&format!("true{}", link.repeat(10_000)), &device), Ok(true), "{link}");
    }
    assert_eq!(evaluate(&vec!["device.driver == 'gpu.example'"; 300].join("||"), &device), Ok(true));
    for size in [100_000, 100_001] {
        let compiled = Selector::compile_any(&format!("'{}'", "x".repeat(size - 2)), &Options::stored());
        assert_eq!(compiled.is_ok(), size == 100_000, "{size}");
    }
}

#[test]
fn patterns_pay_for_what_they_search() {
    let device = gpu();
    let texts = "'A'.replace('A', 'B'.replace('B', 'A'.replace('A', '".to_owned() + &"A".repeat(400) + "')))";
    let quadratic = format!("lists.range(600).map(i, {texts}).join('').findAll('.*[^A-Z]|[A-Z]').size() > 0");
    assert_eq!(evaluate(&quadratic, &device), Err(EvaluationError::CostExceeded.to_string()));
    let computed = format!("'x'.matches('{}'.replace('A', '(?i:\\\\pL)(?i:\\\\pL)'))", "A".repeat(300));
    assert_eq!(evaluate(&computed, &device), Err(EvaluationError::CostExceeded.to_string()));
}

#[test]
fn the_patterns_of_an_expression_have_a_limited_size() {
    let search = |length: usize| format!("'x'.matches('^\\\\S{{{length}}}$')");
    let different = |count: usize| (100..100 + count).map(search).collect::<Vec<_>>().join("||");
    assert!(Selector::compile(&different(10), &Options::stored()).is_ok());
    let many = Selector::compile(&different(100), &Options::stored());
    let Err(CompileError::Type { report }) = many else { panic!("{many:?}") };
    assert_eq!(report.issues().next().unwrap().1, "error parsing regexp: expression too large");
    // A pattern that is repeated counts once.
    assert!(Selector::compile(&vec![search(100); 100].join("||"), &Options::stored()).is_ok());
}

#[test]
fn reports_are_bounded_by_the_expression() {
    let deep = |uses: &str| format!("[{}1{}].all(x, {})", "[".repeat(100), "]".repeat(100), [uses; 100].join("||"));
    let expressions = [
        vec!["a"; 3_000].join("||"),
        "?".repeat(10_000),
        vec!["ä"; 2_000].join("||"),
        vec!["'é'+1"; 1_000].join("\n||"),
        deep("x + 1"),
        "a".repeat(10_000),
        format!("{}||b", "a".repeat(60)),
        "?".to_owned(),
    ];
    for expression in expressions {
        let error = Selector::compile(&expression, &Options::stored()).unwrap_err();
        let (CompileError::Syntax { report } | CompileError::Type { report }) = &error else { panic!("{error}") };
        let text = report.to_string();
        let start: String = expression.chars().take(20).collect();
        assert!(text.len() <= 2_048 + 3 * expression.len(), "{start}: {} bytes", text.len());
        assert_eq!(text.matches("ERROR: <input>").count(), report.issues().count(), "{start}");
    }
}

#[test]
fn lines_are_cut_around_the_mark_where_they_do_not_fit() {
    let expression = [["a"; 200].join("||"), "b".to_owned(), ["a"; 200].join("||")].join("&&");
    let error = Selector::compile(&expression, &Options::stored()).unwrap_err().to_string();
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines[1], format!(" | {expression}"), "the first one is whole");
    let cut: Vec<&&str> = lines.iter().filter(|line| line.starts_with(" | a") && line.len() <= 203).collect();
    assert!(!cut.is_empty(), "{error}");
    let (last, shown) = (lines.last().unwrap(), error.matches("ERROR").count());
    assert_eq!(**last, format!("{} more errors were truncated", 401 - shown));
}
