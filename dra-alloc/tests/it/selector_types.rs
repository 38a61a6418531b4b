//! Tests of the type checker: optional values, null and names.

use dra_alloc::selector::{Options, Selector};

use super::selector::{evaluate, gpu};

fn refusal(expression: &str) -> String {
    Selector::compile(expression, &Options::stored())
        .map_or_else(|error| error.to_string(), |_| format!("{expression} compiled"))
}

#[test]
fn an_optional_value_is_not_its_content() {
    let rows = [
        ("?model == 'a100'", "'_==_' applied to '(optional_type(dyn), string)'"),
        ("?model != 'a100'", "'_!=_' applied to '(optional_type(dyn), string)'"),
        ("?model in ['a100']", "'@in' applied to '(optional_type(dyn), list(string))'"),
        ("?index > 3", "'_>_' applied to '(optional_type(dyn), int)'"),
        ("?index + 1 == 4", "'_+_' applied to '(optional_type(dyn), int)'"),
        ("?ids.size() == 3", "'size' applied to 'optional_type(dyn).()'"),
        ("?model.startsWith('a')", "'startsWith' applied to 'optional_type(dyn).(string)'"),
        ("?healthy", "must evaluate to bool or the unknown type, not optional_type(dyn)"),
        ("?healthy && true", "'_&&_' applied to '(optional_type(dyn), bool)'"),
        ("?ids[0] == 1", "'_==_' applied to '(optional_type(dyn), int)'"),
        ("?ids.first() == 1", "'first' applied to 'optional_type(dyn).()'"),
        ("?ids.exists(i, i == 1)", "expression of type 'optional_type(dyn)' cannot be range of a comprehension"),
        ("?index.optMap(i, i + 1) == 4", "'_==_' applied to '(optional_type(dyn), int)'"),
        ("ids.first() == 1", "'_==_' applied to '(optional_type(dyn), int)'"),
    ];
    for (read, message) in rows {
        let error = refusal(&format!("device.attributes['gpu.example'].{read}"));
        assert!(error.contains(message), "{read}: {error}");
    }
    let rows = [
        ("!device.attributes['gpu.example'].?healthy", "'!_' applied to '(optional_type(dyn))'"),
        (
            "device.capacity['gpu.example'].?memory.orValue(5) == 5",
            "'orValue' applied to 'optional_type(kubernetes.Quantity).(int)'",
        ),
        ("optional.of(1) == optional.of('a')", "applied to '(optional_type(int), optional_type(string))'"),
        ("optional.of(1).orValue('a') == 'a'", "'orValue' applied to 'optional_type(int).(string)'"),
        ("optional.of(1).or(2).value() == 1", "'or' applied to 'optional_type(int).(int)'"),
        ("'a'.hasValue()", "'hasValue' applied to 'string.()'"),
        ("cel.bind(m, device.attributes['gpu.example'].?model, m == 'a100')", "(optional_type(dyn), string)"),
        ("[?1].size() == 1", "expected type 'optional_type(int)' but found 'int'"),
        ("string(optional.of(1)) == '1'", "'string' applied to '(optional_type(int))'"),
    ];
    for (expression, message) in rows {
        let error = refusal(expression);
        assert!(error.contains(message), "{expression}: {error}");
    }
}

#[test]
fn optional_values_are_read_by_their_functions() {
    let expressions = [
        "device.attributes['gpu.example'].?index.orValue(0) >= 3",
        "device.attributes['gpu.example'].?ids.orValue([]).exists(i, i == 3)",
        "device.attributes['gpu.example'].?ids[0].orValue(0) == 1",
        "device.attributes['gpu.example'].?nope == optional.none()",
        "device.attributes['gpu.example'].?index == optional.of(3)",
        "device.attributes['gpu.example'].?nope.?nope.orValue('z') == 'z'",
        "device.attributes[?'nope'].?nope.orValue('z') == 'z'",
        "device.attributes.?nope.orValue({}).size() == 0",
        "device.attributes['gpu.example'].?index.or(optional.of(7)).value() == 3",
        "device.attributes['gpu.example'].?index.optMap(i, i + 1).orValue(0) == 4",
        "device.attributes['gpu.example'].?index.optFlatMap(i, optional.of(i)).hasValue()",
        "device.capacity['gpu.example'].?memory.orValue(quantity('0')).isGreaterThan(quantity('1Gi'))",
        "[?optional.none(), ?optional.of(1)] == [1] && {?'a': optional.of(1)}.a == 1",
        "(device.driver == '' ? optional.of(1) : optional.none()).orValue(2) == 2",
        "device.attributes['gpu.example'].ids.first().orValue(0) == 1",
        "device.attributes['gpu.example'].ids.last().value() == 3 && ![].first().hasValue() && ![].last().hasValue()",
        "[optional.of(1), optional.none()].unwrapOpt() == [1]",
        "optional.unwrap([optional.none(), optional.of('a')]) == ['a']",
    ];
    for expression in expressions {
        assert_eq!(evaluate(expression, &gpu()), Ok(true), "{expression}");
    }
    assert!(evaluate("[1].unwrapOpt() == [1]", &gpu()).is_err());
}

#[test]
fn null_may_stand_for_what_is_no_type_of_cel() {
    let expressions = [
        "device.capacity['gpu.example'].memory != null && null != device.capacity['gpu.example'].memory",
        "!(device.capacity['gpu.example'].memory == null)",
        "semver('1.0.0') != null && device != null && null == null",
        "device.attributes['gpu.example'].?model != null",
        "device.attributes['gpu.example'].version != null && device.attributes['gpu.example'].model != null",
        "(device.driver == '' ? device.capacity['gpu.example'].memory : null) == null",
        "(device.driver == '' ? null : device.capacity['gpu.example'].memory) == quantity('40Gi')",
        "[quantity('1'), null].size() == 2",
    ];
    for expression in expressions {
        assert_eq!(evaluate(expression, &gpu()), Ok(true), "{expression}");
    }
    for expression in ["device.driver != null", "1 == null", "device.attributes != null", "[1] == null"] {
        assert!(refusal(expression).contains("found no matching overload"), "{expression}");
    }
    assert!(evaluate("quantity('1').isGreaterThan(null)", &gpu()).unwrap_err().contains("no such overload"));
}

#[test]
fn functions_are_called_as_they_are_declared() {
    let rows = [
        ("quantity('10').sign() == 1", "'sign' applied to 'kubernetes.Quantity.()'"),
        ("quantity('10').isGreaterThan('1Gi')", "'isGreaterThan' applied to 'kubernetes.Quantity.(string)'"),
        ("isGreaterThan(quantity('1'), quantity('1'))", "applied to '(kubernetes.Quantity, kubernetes.Quantity)'"),
        ("device.driver.reverse() == 'x'", "'reverse' applied to 'string.()'"),
        ("1 in device.attributes", "'@in' applied to '(int, map(string, map(string, dyn)))'"),
        ("1 in ['a']", "'@in' applied to '(int, list(string))'"),
        ("[1, 2]['a'] == 1", "'_[_]' applied to '(list(int), string)'"),
        ("int(true) == 1", "'int' applied to '(bool)'"),
        ("7.5 % 2.0 == 1.5", "'_%_' applied to '(double, double)'"),
    ];
    for (expression, message) in rows {
        let error = refusal(expression);
        assert!(error.starts_with("found no matching overload for ") && error.contains(message), "{error}");
    }
    assert_eq!(evaluate("sign(device.capacity['gpu.example'].memory) == 1", &gpu()), Ok(true));
}

#[test]
fn functions_have_their_name_whatever_variables_are_called() {
    let expressions = [
        "['10.0.0.1'].all(ip, ip.isCanonical(ip))",
        "['10.0.0.1'].exists(i, ip, isIP(ip) && ip.isCanonical(ip))",
        "cel.bind(ip, '10.0.0.1', ip.isCanonical(ip))",
        "cel.bind(ip, string(1 / 1), [1].all(x, true || ip.isCanonical(ip)))",
        "['a'].all(strings, strings.quote(strings) == '\"a\"')",
        "[[1]].all(sets, sets.contains(sets, [1]))",
        "cel.bind(optional, [1], optional.of(2).value() == 2)",
        ".isIP('1.2.3.4') && .ip.isCanonical('1.2.3.4') && .size('a') == 1 && .quantity('1').isInteger()",
    ];
    for expression in expressions {
        assert_eq!(evaluate(expression, &gpu()), Ok(true), "{expression}");
    }
    assert!(refusal("['abc'].all(sets, sets.contains('b'))").contains("no matching overload for 'sets.contains'"));
    assert_eq!(refusal(".nope(1)"), "undeclared reference to '.nope' (in container '')");
}

#[test]
fn names_in_backticks() {
    let expressions = [
        "device.attributes.`gpu.example`.index == 3 && has(device.attributes.`gpu.example`.model)",
        "{'a-b': 1}.`a-b` == 1 && {'a b/c.d': 1}.?`a b/c.d`.value() == 1 && !has({'a': 1}.`a/b`)",
        "device.attributes.`zone.example`.`rack/row` == 'slash'",
    ];
    for expression in expressions {
        assert_eq!(evaluate(expression, &gpu()), Ok(true), "{expression}");
    }
    for expression in ["`device`.driver == ''", "device.`` == 1", "device.`a+b` == 1", "device.`a", "`size`('a') == 1"]
    {
        assert!(refusal(expression).contains("Syntax error"), "{expression}: {}", refusal(expression));
    }
}

#[test]
fn types_of_addresses_have_names() {
    let expressions = [
        "type(ip('10.0.0.1')) == net.IP && type(cidr('::/0')) == net.CIDR && net.IP != net.CIDR",
        "type(net.IP) == type && type(ip('::1')) == .net.IP",
        "[{'IP': 1}].all(net, net.IP == 1)",
    ];
    for expression in expressions {
        assert_eq!(evaluate(expression, &gpu()), Ok(true), "{expression}");
    }
    assert_eq!(refusal("net.MAC == int"), "undeclared reference to 'net' (in container '')");
}

#[test]
fn keys_of_map_literals() {
    assert_eq!(evaluate("{true: 1}.size() + {2: 1}.size() + {3u: 1}.size() + {'a': 1}.size() == 4", &gpu()), Ok(true));
    for expression in ["{1.5: 1}.size() == 1", "{ip('1.2.3.4'): 1}.size() == 1"] {
        assert!(evaluate(expression, &gpu()).unwrap_err().contains("unsupported key type"), "{expression}");
    }
}

#[test]
fn no_loop_has_the_accumulator_for_its_variable() {
    for expression in [
        "[3].map(__result__, __result__) == [3]",
        "[3].sortBy(__result__, __result__) == [3]",
        "[].all(__result__, i, true)",
        "[].all(i, __result__, true)",
    ] {
        assert!(refusal(expression).contains("iteration variable overwrites accumulator variable"), "{expression}");
    }
    assert_eq!(evaluate("cel.bind(__result__, 1, __result__ == 1)", &gpu()), Ok(true));
}

#[test]
fn a_leading_dot_names_what_no_loop_hides() {
    for expression in [
        ".device.driver == 'gpu.example'",
        "[1].all(device, .device.driver == 'gpu.example' && device == 1)",
        "has(.device.attributes['gpu.example'].model)",
        "type(1) == .int",
    ] {
        assert_eq!(evaluate(expression, &gpu()), Ok(true), "{expression}");
    }
    assert_eq!(refusal("[1].all(x, .x == 1)"), "undeclared reference to '.x' (in container '')");
}
