//! Tests that selectors in direct form have the results of their programs.

use std::cell::Cell;
use std::collections::BTreeMap;

use k8s_openapi::api::resource::v1::{Device, DeviceAttribute, DeviceCapacity};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestRunner;

use crate::{EvaluationError, Options, Selector, SelectorInput, Value};

const DRIVER: &str = "gpu.example";

/// Evaluates like [`Selector::matches`], without the direct form.
fn by_program(selector: &Selector, input: SelectorInput<'_>) -> Result<bool, EvaluationError> {
    match selector.evaluate(input).result? {
        Value::Bool(value) => Ok(value),
        other => panic!("{other} is no bool"),
    }
}

#[test]
fn what_has_a_direct_form() {
    let expressions = [
        "true",
        "(false || !true) && (true)",
        "device.driver == 'gpu.example'",
        "'gpu.example' != device.driver",
        "device.allowMultipleAllocations",
        "device.allowMultipleAllocations == false",
        "device.attributes['gpu.example'].healthy",
        "device.attributes['gpu.example']['healthy']",
        "device.attributes.gpu.healthy",
        "device.attributes['gpu.example'].model >= 'a100'",
        "device.attributes['gpu.example'].index > -1",
        "3 <= device.attributes['gpu.example'].index",
        "has(device.attributes['gpu.example'].model)",
        "'model' in device.attributes['gpu.example'] && 'gpu.example' in device.attributes",
        "'memory' in device.capacity['gpu.example'] && has(device.capacity['gpu.example'].memory)",
        "device.attributes['gpu.example'].?model.orValue('none') == 'h100'",
        "device.attributes['gpu.example'][?'healthy'].orValue(false)",
        "device.attributes['resource.kubernetes.io'].numaNode.includes(4)",
        "4 in device.attributes['resource.kubernetes.io'].numaNode",
        "device.attributes['gpu.example'].model in ['a100', 'h100']",
        "device.driver in []",
        "device.attributes['gpu.example'].model.matches('^h[0-9]+$')",
        "device.driver.startsWith('gpu') || device.driver.endsWith('x') || device.driver.contains('.')",
        "device.capacity['gpu.example'].memory.compareTo(quantity('40Gi')) >= 0",
        "0 < device.capacity['gpu.example'].memory.compareTo(quantity('40Gi'))",
        "device.capacity['gpu.example'].memory == quantity('40Gi')",
        "device.capacity['gpu.example'].memory.isGreaterThan(quantity('40Gi'))",
        "device.attributes['gpu.example'].version.compareTo(semver('1.2.3')) == 1",
        "device.attributes['gpu.example'].version != semver('1.2.3')",
        "!device.attributes['gpu.example'].version.isLessThan(semver('1.2.3-rc.1'))",
        "cel.bind(std, device.attributes['resource.kubernetes.io'], has(std.numaNode) && std.numaNode.includes(4))",
    ];
    for expression in expressions {
        assert!(Selector::compile(expression, &Options::stored()).unwrap().is_direct(), "{expression}");
    }
    // If one part of an expression has no direct form, the whole has none.
    for expression in [
        "device.attributes['gpu.example'].index + 1 == 2",
        "device.attributes['gpu.example'].index == 1.0",
        "device.attributes['gpu.example'].model.size() == 1",
        "device.attributes[device.driver].model == 'h100'",
        "device.attributes['gpu.example'].ids == [1]",
        "device.attributes['gpu.example'].ids.exists(i, i == 1)",
        "device.attributes['gpu.example'].version == semver('v1', true)",
        "device.capacity['gpu.example'].memory == quantity('1i')",
        "cel.bind(x, device.attributes['gpu.example'].nope, true)",
        "device.driver == 'x' || device == device",
    ] {
        assert!(!Selector::compile(expression, &Options::stored()).unwrap().is_direct(), "{expression}");
    }
}

#[test]
fn what_is_large_is_left_to_the_interpreter_and_its_budget() {
    // One use of each value is far below the cost limit; several hundred uses exceed it.
    let text = DeviceAttribute { string: Some("x".repeat(100_000)), ..Default::default() };
    let list_of_texts = DeviceAttribute { strings: Some(vec!["x".repeat(1_000); 1_000]), ..Default::default() };
    let list = DeviceAttribute { ints: Some(vec![1; 20_000]), ..Default::default() };
    let many = (0..20_000).map(|number| (format!("zone.example/{number}"), text.clone()));
    let short = DeviceAttribute { string: Some("x".repeat(2_000)), ..Default::default() };
    let attributes = [("text", text.clone()), ("short", short), ("texts", list_of_texts), ("list", list)];
    let attributes = attributes.into_iter().map(|(name, value)| (name.to_owned(), value));
    let few = Device { attributes: Some(attributes.clone().collect()), ..Default::default() };
    let many = Device { attributes: Some(attributes.chain(many).collect()), ..Default::default() };
    let long_pattern = format!(r"d.short.matches(r'{}')", r"\s".repeat(200));
    let rows = [
        ("d.text=='y'", &few),
        ("d.text.contains('y')", &few),
        ("d.text in ['y']", &few),
        ("d.list.includes(2)", &few),
        ("(2 in d.list)", &few),
        ("('y' in d.texts)", &few),
        ("!has(d.list)", &few),
        ("('a' in d)", &many),
        ("('a' in device.attributes)", &many),
        (long_pattern.as_str(), &few),
    ];
    for (test, device) in rows {
        let all = vec![test; 10_000 / (test.len() + 2)].join("||");
        let selector =
            Selector::compile(&format!("cel.bind(d, device.attributes['gpu.example'], {all})"), &Options::stored())
                .unwrap();
        assert!(selector.is_direct(), "{test}");
        let input = SelectorInput::new(DRIVER, device);
        assert_eq!(selector.matches(input), by_program(&selector, input), "{test}");
    }
    let long = format!("{DRIVER}{}", "x".repeat(100_000));
    let selector = Selector::compile(&vec!["device.driver=='y'"; 500].join("||"), &Options::stored()).unwrap();
    let input = SelectorInput::new(&long, &few);
    assert_eq!(selector.matches(input), by_program(&selector, input));
}

#[test]
fn as_many_tests_as_fit_do_not_exhaust_the_budget_where_there_is_a_direct_answer() {
    // The largest values within each limit.
    let text = DeviceAttribute { string: Some("x".repeat(2_048)), ..Default::default() };
    let list_of_texts = DeviceAttribute { strings: Some(vec!["x".repeat(42); 48]), ..Default::default() };
    let rest = (0..126).map(|number| (format!("a{number}"), text.clone()));
    let attributes = rest.chain([("t".to_owned(), text.clone()), ("l".to_owned(), list_of_texts)]);
    let device = Device { attributes: Some(attributes.collect()), ..Default::default() };
    let input = SelectorInput::new(DRIVER, &device);
    let tests = ["d.t=='y'", "!has(d.l)", "'y'in d", "'y'in d.l", "''in device.attributes", "d.t.matches('y{0}z')"];
    for test in tests {
        let all = vec![test; 10_100 / (test.len() + 2)].join("||");
        let selector =
            Selector::compile(&format!("cel.bind(d,device.attributes['gpu.example'],{all})"), &Options::stored())
                .unwrap();
        assert!(selector.is_direct(), "{test}");
        assert_eq!(by_program(&selector, input), Ok(false), "{test}");
        assert_eq!(selector.matches(input), Ok(false), "{test}");
    }
}

#[test]
fn every_order_of_versions_and_quantities() {
    let versions = ["1.2.3", "1.2.3-rc.1", "1.2.3-rc.2+b", "1.2.3+b", "1.2.4", "1.10.0", "0.9.9", "2.0.0"];
    let quantities = ["1", "1000m", "1Ki", "1024", "1.5Gi", "1536Mi", "40Gi", "9E", "8Ei", "9223372036854775807", "1u"];
    let forms = ["compareTo({}) >= 0", "compareTo({}) < 1", "isLessThan({})", "isGreaterThan({})"];
    let forms = forms.map(|form| format!(".{form}")).into_iter().chain([" == {}".to_owned(), " != {}".to_owned()]);
    let forms: Vec<_> = forms.collect();
    let check = |expression: String, device: &Device| {
        let selector = Selector::compile(&expression, &Options::stored()).unwrap();
        let input = SelectorInput::new(DRIVER, device);
        assert!(selector.is_direct(), "{expression}");
        assert!(selector.matches(input).is_ok(), "{expression} {device:?}");
        assert_eq!(selector.matches(input), by_program(&selector, input), "{expression} {device:?}");
    };
    for (form, own) in forms.iter().flat_map(|form| versions.map(|own| (form, own))) {
        let attribute = DeviceAttribute { version: Some(own.to_owned()), ..Default::default() };
        let device = Device { attributes: Some([("v".to_owned(), attribute)].into()), ..Default::default() };
        for bound in versions {
            let call = form.replace("{}", &format!("semver('{bound}')"));
            check(format!("device.attributes['{DRIVER}'].v{call}"), &device);
        }
    }
    for (form, own) in forms.iter().flat_map(|form| quantities.map(|own| (form, own))) {
        let amount = DeviceCapacity { value: Quantity(own.to_owned()), ..Default::default() };
        let device = Device { capacity: Some([("m".to_owned(), amount)].into()), ..Default::default() };
        for bound in quantities {
            let call = form.replace("{}", &format!("quantity('{bound}')"));
            check(format!("device.capacity['{DRIVER}'].m{call}"), &device);
        }
    }
}

/// Generates a literal that an attribute can be compared with, or an odd one.
fn literal() -> impl Strategy<Value = String> {
    let odd = select(vec!["1.0", "1u", "null", "[1]", "device.driver"]);
    let usual = select(vec!["1", "-2", "0", "7", "'a'", "'ab'", "'b1'", "''", "'1.2.3'", "true", "false"]);
    prop_oneof![20 => usual, 1 => odd].prop_map(str::to_owned)
}

fn domain() -> impl Strategy<Value = &'static str> {
    select(vec![
        "gpu.example",
        "gpu.example",
        "gpu.example",
        "gpu.example",
        "zone.example",
        "zone.example/rack",
        "nope",
        "int",
    ])
}

fn id() -> impl Strategy<Value = &'static str> {
    select(vec!["a", "b", "c", "d", "l", "m", "a", "b", "c", "l", "m", "rack/a", "nope"])
}

/// Generates a domain of attributes, or the variable that `cel.bind` gives to it.
fn container(part: &'static str) -> impl Strategy<Value = String> {
    let bound = if part == "attributes" { "x" } else { "y" };
    prop_oneof![
        4 => domain().prop_map(move |domain| format!("device.{part}['{domain}']")),
        1 => Just(bound.to_owned()),
        1 => Just(format!("device.{part}.int")),
    ]
}

fn value(part: &'static str) -> impl Strategy<Value = String> {
    (container(part), id(), any::<bool>()).prop_map(|(container, id, select)| {
        if select && !id.contains('/') { format!("{container}.{id}") } else { format!("{container}['{id}']") }
    })
}

fn scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => value("attributes"),
        2 => Just("device.driver".to_owned()),
        1 => Just("device.allowMultipleAllocations".to_owned()),
        1 => value("capacity"),
        2 => (container("attributes"), id(), literal())
            .prop_map(|(container, id, otherwise)| format!("{container}[?'{id}'].orValue({otherwise})")),
        1 => (container("attributes"), literal())
            .prop_map(|(container, otherwise)| format!("{container}.?a.orValue({otherwise})")),
    ]
}

fn ordered() -> impl Strategy<Value = String> {
    let versions = vec!["1.2.3", "1.2.3", "1.2.3-rc.1", "1.2.3+b", "1.10.0", "1.2", "99999999999999999999.0.0"];
    let version = select(versions).prop_map(|text| format!("semver('{text}')"));
    let amounts = vec!["1", "1000m", "1Ki", "1.5Gi", "40Gi", "9E", "8Ei", " 1", "1i"];
    let amount = select(amounts).prop_map(|text| format!("quantity('{text}')"));
    let bound = prop_oneof![version.clone(), amount.clone()];
    let usual = prop_oneof![
        (container("attributes"), version).prop_map(|(container, bound)| (format!("{container}.d"), bound)),
        (container("capacity"), amount).prop_map(|(container, bound)| (format!("{container}.a"), bound)),
    ];
    let odd = (scalar(), bound);
    (prop_oneof![9 => usual, 1 => odd], 0..8, comparison(), -1..3).prop_map(
        |((value, bound), form, operator, number)| match form {
            0 => format!("{value}.isGreaterThan({bound})"),
            1 => format!("{value}.isLessThan({bound})"),
            2 => format!("{value} {operator} {bound}"),
            3 => format!("{number} {operator} {value}.compareTo({bound})"),
            _ => format!("{value}.compareTo({bound}) {operator} {number}"),
        },
    )
}

/// Generates a condition on an attribute of the type that its name usually has.
fn typed() -> impl Strategy<Value = String> {
    let text = || select(vec!["'a'", "'ab'", "'b1'", "''"]);
    let number = || select(vec!["-1", "0", "7"]);
    let attribute = || container("attributes");
    prop_oneof![
        (attribute(), comparison(), text()).prop_map(|(x, op, text)| format!("{x}.a {op} {text}")),
        (attribute(), comparison(), number()).prop_map(|(x, op, number)| format!("{number} {op} {x}.b")),
        attribute().prop_map(|x| format!("{x}.c")),
        (attribute(), number()).prop_map(|(x, number)| format!("{x}.l.includes({number})")),
        (attribute(), number()).prop_map(|(x, number)| format!("{number} in {x}.l")),
        (attribute(), text()).prop_map(|(x, text)| format!("{text} in {x}.m")),
        (attribute(), text(), text()).prop_map(|(x, first, second)| format!("{x}.a in [{first}, {second}]")),
        (attribute(), text()).prop_map(|(x, text)| format!("{x}.?a.orValue({text}) == {text}")),
    ]
}

fn comparison() -> impl Strategy<Value = &'static str> {
    select(vec!["==", "!=", "<", "<=", ">", ">="])
}

fn test() -> impl Strategy<Value = String> {
    let about_text = select(vec!["startsWith", "endsWith", "contains", "startsWith", "contains", "matches", "find"]);
    let text = prop_oneof![9 => select(vec!["'a'", "'b'", "'1'", "''"]).prop_map(str::to_owned), 1 => literal()];
    let presence = select(vec!["attributes", "capacity"]);
    prop_oneof![
        1 => select(vec!["true", "false"]).prop_map(str::to_owned),
        2 => scalar(),
        6 => (scalar(), comparison(), literal()).prop_map(|(left, op, right)| format!("{left} {op} {right}")),
        3 => (literal(), comparison(), scalar()).prop_map(|(left, op, right)| format!("{left} {op} {right}")),
        4 => (scalar(), about_text, text).prop_map(|(text, test, part)| format!("{text}.{test}({part})")),
        2 => (scalar(), literal()).prop_map(|(value, element)| format!("{value}.includes({element})")),
        2 => scalar().prop_map(|text| format!("{text}.matches('^a?b*[0-9]$')")),
        2 => (literal(), scalar()).prop_map(|(element, list)| format!("{element} in {list}")),
        2 => (scalar(), prop::collection::vec(literal(), 0..3))
            .prop_map(|(element, list)| format!("{element} in [{}]", list.join(", "))),
        2 => presence.prop_flat_map(|part| (container(part), id()))
            .prop_map(|(container, id)| format!("'{id}' in {container}")),
        1 => (presence_of_domain(), domain()).prop_map(|(part, domain)| format!("'{domain}' in device.{part}")),
        2 => prop_oneof![container("attributes"), container("capacity")]
            .prop_map(|container| format!("has({container}.a)")),
        9 => ordered(),
        16 => typed(),
    ]
}

fn presence_of_domain() -> impl Strategy<Value = &'static str> {
    select(vec!["attributes", "capacity"])
}

fn expression() -> impl Strategy<Value = String> {
    test().prop_recursive(3, 6, 2, |inner| {
        prop_oneof![
            9 => (inner.clone(), select(vec!["&&", "||"]), inner.clone())
                .prop_map(|(left, op, right)| format!("({left} {op} {right})")),
            3 => inner.clone().prop_map(|operand| format!("!({operand})")),
            3 => (inner.clone(), select(vec!["x", "x", "x", "y", "int", "device"]), container("attributes"))
                .prop_map(|(body, name, domain)| format!("cel.bind({name}, {domain}, {body})")),
            1 => (inner, scalar()).prop_map(|(body, value)| format!("cel.bind(x, {value}, {body})")),
        ]
    })
}

/// Puts an expression into the scope of the variables that it may use.
fn in_scope(expression: &str) -> String {
    let inner = format!("cel.bind(x, device.attributes['zone.example'], {expression})");
    format!("cel.bind(y, device.capacity['gpu.example'], {inner})")
}

fn version() -> impl Strategy<Value = String> {
    let usual = select(vec!["1.2.3", "1.2.3-rc.1", "1.2.3+build.5", "1.2.3-rc.1+build", "0.0.0", "1.10.0", "2.0.0"]);
    let odd = select(vec!["18446744073709551615.0.0", "999999999999999999.1.1", "1.2", "1.2.03", "v1.2.3", ""]);
    prop_oneof![60 => usual, 1 => odd].prop_map(str::to_owned)
}

fn attribute() -> impl Strategy<Value = DeviceAttribute> {
    let text = || select(vec!["", "a", "ab", "b1", "1", "1.2.3", "ä", DRIVER]).prop_map(str::to_owned);
    let number = || prop_oneof![-2..3_i64, Just(i64::MAX), Just(i64::MIN)];
    let of = || DeviceAttribute::default();
    let texts = prop::collection::vec(text(), 0..4);
    let one = prop_oneof![
        4 => any::<bool>().prop_map(move |value| DeviceAttribute { bool: Some(value), ..of() }),
        4 => number().prop_map(move |value| DeviceAttribute { int: Some(value), ..of() }),
        4 => text().prop_map(move |value| DeviceAttribute { string: Some(value), ..of() }),
        4 => version().prop_map(move |value| DeviceAttribute { version: Some(value), ..of() }),
        2 => prop::collection::vec(number(), 0..4).prop_map(move |list| DeviceAttribute { ints: Some(list), ..of() }),
        1 => prop::collection::vec(any::<bool>(), 0..4).prop_map(move |list| DeviceAttribute { bools: Some(list), ..of() }),
        2 => texts.prop_map(move |list| DeviceAttribute { strings: Some(list), ..of() }),
        1 => prop::collection::vec(version(), 0..3).prop_map(move |list| DeviceAttribute { versions: Some(list), ..of() }),
        1 => (45..52_usize).prop_map(move |length| DeviceAttribute { ints: Some(vec![7; length]), ..of() }),
    ];
    let several = (one.clone(), one.clone()).prop_map(|(first, second)| DeviceAttribute {
        bool: first.bool.or(second.bool),
        int: first.int.or(second.int),
        string: first.string.or(second.string),
        version: first.version.or(second.version),
        ints: first.ints.or(second.ints),
        bools: first.bools.or(second.bools),
        strings: first.strings.or(second.strings),
        versions: first.versions.or(second.versions),
    });
    prop_oneof![40 => one, 3 => several, 1 => Just(of())]
}

/// Generates an attribute of the type that its name usually has.
fn attribute_of(name: &str) -> BoxedStrategy<DeviceAttribute> {
    let of = DeviceAttribute::default;
    let words = select(vec!["", "a", "ab", "b1", "1.2.3"]).prop_map(str::to_owned);
    let usual = match name.as_bytes().last() {
        Some(b'a') => words.prop_map(move |word| DeviceAttribute { string: Some(word), ..of() }).boxed(),
        Some(b'b') => (-2..3_i64).prop_map(move |number| DeviceAttribute { int: Some(number), ..of() }).boxed(),
        Some(b'c') => any::<bool>().prop_map(move |value| DeviceAttribute { bool: Some(value), ..of() }).boxed(),
        Some(b'd') => version().prop_map(move |version| DeviceAttribute { version: Some(version), ..of() }).boxed(),
        Some(b'l') => (prop_oneof![0..4_usize, 46..52_usize])
            .prop_map(move |length| DeviceAttribute { ints: Some(vec![7; length]), ..of() })
            .boxed(),
        _ => prop::collection::vec(words, 0..4)
            .prop_map(move |list| DeviceAttribute { strings: Some(list), ..of() })
            .boxed(),
    };
    prop_oneof![4 => usual, 1 => attribute()].boxed()
}

fn device() -> impl Strategy<Value = Device> {
    let driver = vec!["a", "b", "c", "d", "l", "m", "gpu.example/a", "gpu.example/c", "gpu.example/d", "gpu.example/l"];
    let other =
        vec!["zone.example/a", "zone.example/b", "zone.example/rack/a", "int/a", "rack/a", "gpu.example/rack/a"];
    let names = prop_oneof![3 => select(driver), 1 => select(other)];
    let attributes = names.clone().prop_flat_map(|name| (Just(name.to_owned()), attribute_of(name)));
    let attributes = prop::collection::vec(attributes, 3..12).prop_map(BTreeMap::from_iter);
    let usual = select(vec!["1", "1000m", "1Ki", "1024", "1.5Gi", "40Gi", "9E", "8Ei", "80Gi", "0", " 1Ki "]);
    let odd = select(vec!["1i", "", "-1", "1e3", "007", "99999999999E", "9999999999999999999999999999E", "9Ei"]);
    let quantity = prop_oneof![60 => usual, 1 => odd]
        .prop_map(|text| DeviceCapacity { value: Quantity(text.to_owned()), ..Default::default() });
    (
        prop::option::weighted(0.95, attributes),
        prop::option::weighted(0.95, prop::collection::btree_map(names.prop_map(str::to_owned), quantity, 0..6)),
        any::<Option<bool>>(),
    )
        .prop_map(|(attributes, capacity, allow_multiple_allocations)| Device {
            attributes,
            capacity,
            allow_multiple_allocations,
            ..Default::default()
        })
}

#[test]
fn the_answer_is_that_of_the_interpreter() {
    let drivers = select(vec![DRIVER, DRIVER, "zone.example", "zone.example/rack", "other"]);
    let (direct, answered, held) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let count = |counter: &Cell<u32>, counts: bool| counter.set(counter.get() + u32::from(counts));
    let cases = 4_000;
    let mut runner = TestRunner::new(ProptestConfig { cases, failure_persistence: None, ..Default::default() });
    let law = |(expression, device, driver): (String, Device, &str)| {
        let compiled = Selector::compile(&expression, &Options::stored())
            .or_else(|_| Selector::compile(&in_scope(&expression), &Options::stored()));
        let Ok(selector) = compiled else { return Ok(()) };
        let input = SelectorInput::new(driver, &device);
        let answer = selector.matches(input);
        count(&direct, selector.is_direct());
        count(&answered, selector.is_direct() && answer.is_ok());
        count(&held, selector.is_direct() && answer == Ok(true));
        prop_assert_eq!(answer, by_program(&selector, input));
        Ok(())
    };
    let result = runner.run(&(expression(), device(), drivers), law);
    assert!(result.is_ok(), "{}", result.unwrap_err());
    // The test is significant: many expressions have a direct form, and both results and errors are frequent among
    // them.
    let counts = (direct.get(), answered.get(), held.get());
    let (direct, answered, held) = counts;
    assert!(direct > cases / 3 && answered > cases / 10 && held > cases / 50, "{counts:?}");
    assert!(direct - answered > cases / 10 && answered - held > cases / 50, "{counts:?}");
}
