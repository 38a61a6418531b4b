//! Tests of rare expressions against the results of cel-go and Kubernetes.

use dra_alloc::selector::{Options, Selector};

use super::selector::{evaluate, gpu};

#[test]
fn what_holds() {
    let expressions = [
        "'äbä'.lastIndexOf('ä', 1) == 0 && 'ta©o©αT'.lastIndexOf('©', 3) == 2 && 'ab'.lastIndexOf('ab', 0) == 0",
        "bool('T') && !bool('F') && bool('true') && bool('1') && !bool('FALSE')",
        "!(device.attributes['gpu.example'].index in device.attributes['gpu.example'])",
        "!(device.attributes['gpu.example'].nope in []) && !(1 / 0 in [])",
        "[dyn(1), dyn(2.5)].max() == 2.5 && [dyn(2u), dyn(-1)].min() == -1",
        "[dyn(1), dyn('a')].isSorted() && [1.0, double('NaN')].max() == 1.0",
        "[false, true].isSorted() && ['a', 'b'].max() == 'b' && [].sum() == 0 && [1u, 2u].sum() == 3u",
        "device.attributes['gpu.example'].names[?0] != 'b'",
        "['x', device.attributes['gpu.example'].names[?5].orValue('y')] == ['x', 'y']",
        "[?optional.of(1), ?optional.none()] == [1] && {?'a': optional.of(1)} == {'a': 1}",
        "device.attributes['gpu.example'].model in ['a100', 'h100'] && dyn(3.0) in [1, 3] && !('x' in ['a'])",
        "lists.range(20).sortBy(x, 0) == lists.range(20)",
        "[1, 2].exists(x, x in [2, 3]) && device.attributes['gpu.example'].version in [semver('1.2.3-rc.1')]",
    ];
    for expression in expressions {
        assert_eq!(evaluate(expression, &gpu()), Ok(true), "{expression}");
    }
}

#[test]
fn what_fails() {
    let rows = [
        ("dyn([true]).sum() == 1", "no such overload"),
        ("dyn([null]).isSorted()", "no such overload"),
        ("dyn([device.attributes['gpu.example'].version]).isSorted()", "no such overload"),
        ("[?device.attributes['gpu.example'].index] == [3]", "non-optional value of type types.Int"),
        ("{?'a': dyn(1)} == {'a': 1}", "non-optional value of type types.Int"),
        (
            "device.attributes['gpu.example'].version in ['1.2.3', '2.0.0']",
            "internal error: runtime error: hash of unhashable type cel.Semver",
        ),
        ("[1].exists(x, dyn(b'a') in ['a'])", "hash of unhashable type types.Bytes"),
        ("lists.range(-1) == []", "lists.range: size must be non-negative, got -1"),
    ];
    for (expression, message) in rows {
        let error = evaluate(expression, &gpu()).unwrap_err();
        assert!(error.contains(message), "{expression}: {error}");
    }
}

#[test]
fn what_does_not_compile() {
    for (expression, message) in [
        ("['a'].sum() == 'a'", "'sum' applied to 'list(string).()'"),
        ("[[1]].max() == [1]", "'max' applied to 'list(list).()'"),
        ("[semver('1.2.3')].min() == semver('1.2.3')", "'min' applied to 'list(kubernetes.Semver).()'"),
        ("[null].isSorted()", "'isSorted' applied to 'list(null).()'"),
        ("[1].max() == 'a'", "'_==_' applied to '(int, string)'"),
        ("nope in []", "undeclared reference to 'nope'"),
    ] {
        let error = Selector::compile(expression, &Options::stored())
            .map_or_else(|error| error.to_string(), |_| "compiled".to_owned());
        assert!(error.contains(message), "{expression}: {error}");
    }
}

/// Checks the expressions whose results differ, as listed in docs/divergences.md.
#[test]
fn where_the_answers_differ() {
    let answers = [
        ("true || int('abc') == 1", Ok(true)),
        ("device.attributes['gpu.example'].ids[?'a'].orValue(9) == 9", Ok(true)),
        ("device.attributes['gpu.example'].version in ['1.2.3'] || true", Ok(true)),
        ("isQuantity('1E30')", Ok(false)),
        ("has(device.attributes['gpu.example'].model.foo)", Err("no such overload")),
        ("{'a': 1, 'a': 2}.a == 2", Err("repeated key")),
        ("'driver' in dyn(device)", Err("no such overload")),
        ("lists.range(60).includes(59)", Err("lists longer than 48 values")),
    ];
    for (expression, expected) in answers {
        match (evaluate(expression, &gpu()), expected) {
            (Err(error), Err(message)) => assert!(error.contains(message), "{expression}: {error}"),
            (answer, expected) => assert_eq!(answer, expected.map_err(str::to_owned), "{expression}"),
        }
    }
}
