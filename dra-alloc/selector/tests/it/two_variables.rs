//! Tests of CEL macros with two variables: one for the key or index, one for the value.

use dra_selector::{Options, Selector};

use super::matching::{evaluate, gpu};

#[test]
fn loops_over_keys_and_values() {
    let holds = [
        "[1, 2, 3].all(i, v, v == i + 1) && ![1, 2, 4].all(i, v, v == i + 1) && [].all(i, v, false)",
        "['a', 'b'].exists(i, v, i == 1 && v == 'b') && ![1, 2].exists(i, v, i == v)",
        "[1, 2, 1, 3].existsOne(i, v, i == 3 || v == 3) && ![1, 1].exists_one(i, v, v == 1)",
        "[1, 2, 3].transformList(i, v, i * v + v) == [1, 4, 9]",
        "[1, 2, 3].transformList(i, v, i % 2 == 0, i * v + v) == [1, 9]",
        "{'b': 2, 'a': 1}.transformList(k, v, k + string(v)) == ['a1', 'b2']",
        "{'greeting': 'hello', 'farewell': 'goodbye'}.exists(k, v, k.startsWith('fare') && v.endsWith('bye'))",
        "{1: 'a', 2: 'b'}.all(k, v, v == (k == 1 ? 'a' : 'b'))",
        "device.attributes['gpu.example'].exists(name, value, name == 'model' && value == 'a100')",
        "device.attributes.exists(domain, values, domain == 'gpu.example' && 'model' in values)",
        "device.attributes['gpu.example'].transformList(name, value, name == 'index', value) == [3]",
        "device.capacity['gpu.example'].all(name, value, value.isGreaterThan(quantity('0')))",
        "device.attributes['gpu.example'].ids.all(i, id, id == i + 1)",
        "device.attributes['nope'].all(k, v, false)",
        // Variables belong to their own loop.
        "[[1, 2], [3]].all(i, row, row.all(j, v, v == 2 * i + j + 1))",
        "[[1], [2]].transformList(i, row, row.transformList(i, v, i + v)) == [[1], [2]]",
        "[1, 2].transformList(i, v, [3, 4].map(v, v + i)) == [[3, 4], [4, 5]]",
        "cel.bind(i, 7, [1].all(i, v, i == 0) && i == 7)",
        "[3, 4].all(device, v, device < 2)",
        // An element that is not needed causes no error, and other errors count as in macros with one variable.
        "[1, 2, 0].exists(i, v, 1 / v == 1)",
        "[0, 2].exists(i, v, 1 / v == 0)",
        "![0, 2].all(i, v, 1 / v == 1)",
        "[0].all(i, v, 1 / v == 1 || true)",
        "[0].all(i, v, cel.bind(x, 1 / v, [5].all(i, w, true || x == 1)))",
    ];
    for expression in holds {
        assert_eq!(evaluate(expression, &gpu()), Ok(true), "{expression}");
    }
    let rows = [
        ("[0, 1].all(i, v, 1 / v == 1)", "division by zero"),
        ("[0, 2].existsOne(i, v, 1 / v == 0)", "division by zero"),
        ("dyn(1).all(i, v, true)", "unsupported comprehension range type: types.Int"),
        ("(1 / 0 == 1 ? [1] : [2]).all(i, v, true) || false", "division by zero"),
    ];
    for (expression, message) in rows {
        let error = evaluate(expression, &gpu()).unwrap_err();
        assert!(error.contains(message), "{expression}: {error}");
    }
}

#[test]
fn types_of_keys_and_values() {
    let rows = [
        ("[1].all(i, i, true)", "duplicate variable name: i"),
        ("[1].all(1, v, true)", "argument must be a simple name"),
        ("[1].exists(i, v.w, true)", "argument must be a simple name"),
        ("['a'].all(i, v, i == v)", "'_==_' applied to '(int, string)'"),
        ("[1].all(i, v, v)", "expected type 'bool' but found 'int'"),
        ("device.attributes['gpu.example'].all(k, v, k == 1)", "'_==_' applied to '(string, int)'"),
        ("device.capacity['gpu.example'].exists(k, v, v == 1)", "'_==_' applied to '(kubernetes.Quantity, int)'"),
        ("'abc'.all(i, v, true)", "expression of type 'string' cannot be range of a comprehension"),
        ("device.all(i, v, true)", "expression of type 'kubernetes.DRADevice' cannot be range"),
        ("[1].all(i, v, true) && v == 1", "undeclared reference to 'v'"),
        ("[1].exists(i, v, w == 1)", "undeclared reference to 'w'"),
    ];
    for (expression, message) in rows {
        let error = Selector::compile(expression, &Options::stored())
            .map_or_else(|error| error.to_string(), |_| "compiled".to_owned());
        assert!(error.contains(message), "{expression}: {error}");
    }
}

#[test]
fn loops_with_two_variables_have_the_same_budget() {
    let range = "lists.range(1000)";
    assert_eq!(evaluate(&format!("{range}.all(i, v, i == v)"), &gpu()), Ok(true));
    assert_eq!(evaluate(&format!("{range}.transformList(i, v, v).size() == 1000"), &gpu()), Ok(true));
    let nested = format!("{range}.all(a, v, {range}.all(b, w, {range}.all(c, x, true)))");
    assert!(evaluate(&nested, &gpu()).unwrap_err().contains("cost"));
}
