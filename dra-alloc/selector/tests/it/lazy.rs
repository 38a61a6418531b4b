//! Tests of lazy evaluation: values are evaluated only when they are needed.

use dra_selector::{Options, Selector};

use super::matching::{evaluate, gpu};

#[test]
fn a_bound_value_that_fails_counts_where_it_is_used() {
    let fails = "device.attributes['gpu.example'].nope";
    let rows = [
        ("true", Ok(true)),
        ("m == 1 || true", Ok(true)),
        ("m == 1 && false", Ok(false)),
        ("has(device.attributes['gpu.example'].nope) && m == 1", Ok(false)),
        ("device.driver == '' ? m == 1 : true", Ok(true)),
        ("[1, 2].exists(x, m == x || x == 2)", Ok(true)),
        ("[1].all(m, m == 1)", Ok(true)),
        ("cel.bind(n, m, n == 1 || true)", Ok(true)),
        ("cel.bind(n, m + 1, device.driver == '' && n == 1)", Ok(false)),
        ("optional.of(1).orValue(m) == 1", Ok(true)),
        ("m == 1", Err(())),
        ("m == 1 || m == 2", Err(())),
        ("m == 1 || false", Err(())),
        ("[1].exists(x, x == m)", Err(())),
        ("cel.bind(m, m, m == 1)", Err(())),
    ];
    for (body, expected) in rows {
        let expression = format!("cel.bind(m, {fails}, {body})");
        let result = evaluate(&expression, &gpu());
        let result = result.map_err(|error| {
            assert!(error.contains("no such key: nope"), "{error}");
        });
        assert_eq!(result, expected, "{body}");
    }
    // A bound value keeps its meaning in any scope, and a variable named `device` is not the device.
    for expression in [
        "[{'a': 1}].exists(device, cel.bind(x, device.attributes, true || x == 1))",
        "[{'attributes': {'a': 1}}].exists(device, optional.of(3).orValue(device.attributes['b']) == 3)",
        "[1, 2].all(x, cel.bind(y, 6 / x, [10].all(x, x == 10 || y == x)))",
        "[3].all(x, cel.bind(y, 6 / x, device.driver == '' || [5].all(z, z + y == 7)))",
        "optional.of(2).optMap(o, optional.of(o / 1).optMap(o, o == 2 || o == 3).value() && (o == 2 || o == 5)).value()",
    ] {
        assert_eq!(evaluate(expression, &gpu()), Ok(true), "{expression}");
    }
}

#[test]
fn an_alternative_is_evaluated_where_it_is_needed() {
    for expression in [
        "device.attributes['gpu.example'].?model.orValue(device.attributes['gpu.example'].nope) == 'a100'",
        "device.attributes['gpu.example'].?nope.orValue(device.attributes['gpu.example'].model) == 'a100'",
        "optional.of(1).or(optional.of(1 / 0)).value() == 1",
        "optional.none().or(optional.of(4 / 2)).value() == 2",
        "optional.none().orValue(optional.none().orValue(4 / 2)) == 2",
    ] {
        assert_eq!(evaluate(expression, &gpu()), Ok(true), "{expression}");
    }
    assert!(evaluate("optional.none().orValue(1 / 0) == 1", &gpu()).unwrap_err().contains("division by zero"));
}

#[test]
fn bound_values_do_not_make_an_expression_grow_without_bounds() {
    let doubling = |levels: usize| {
        let binds = "cel.bind(a, a / 1 == 1 || a / 1 == 2 || a / 1 == 3 ? 1 : a, ".repeat(levels);
        format!("cel.bind(a, 1 / 1, {binds} a == 1 || true{}", ")".repeat(levels + 1))
    };
    assert!(Selector::compile(&doubling(1), &Options::stored()).is_ok());
    let uses = format!("{} || true", vec!["a == 1"; 600].join("||"));
    let value = vec!["1 / 1 == 1"; 300].join("&&");
    // Too large to be inlined, so that the value is evaluated first.
    assert_eq!(evaluate(&format!("cel.bind(a, dyn({value} ? 1 : 2), {uses})"), &gpu()), Ok(true));
    // A loop does not evaluate a bound value in each iteration.
    let numbers = (0..100).map(|number| number.to_string()).collect::<Vec<_>>().join(", ");
    let sum = format!("[{numbers}].map(i, [{numbers}].map(j, i * j).sum()).sum()");
    assert_eq!(evaluate(&format!("cel.bind(h, {sum}, [{numbers}].all(x, h >= x))"), &gpu()), Ok(true));
    for levels in 2..8 {
        let _ = Selector::compile(&doubling(levels), &Options::stored());
    }
}
