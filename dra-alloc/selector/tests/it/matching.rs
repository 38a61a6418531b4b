//! Tests of selectors: supported expressions, and rejected ones.

use std::sync::Arc;

use dra_selector::{EvaluationError, Options, Selector, SelectorCache, SelectorInput};
use k8s_openapi::api::resource::v1::{Device, DeviceAttribute, DeviceCapacity};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

pub(crate) const DRIVER: &str = "gpu.example";

pub(crate) fn int(value: i64) -> DeviceAttribute {
    DeviceAttribute { int: Some(value), ..Default::default() }
}

pub(crate) fn ints(values: &[i64]) -> DeviceAttribute {
    DeviceAttribute { ints: Some(values.to_vec()), ..Default::default() }
}

pub(crate) fn text(value: &str) -> DeviceAttribute {
    DeviceAttribute { string: Some(value.to_owned()), ..Default::default() }
}

fn texts(values: &[&str]) -> DeviceAttribute {
    DeviceAttribute { strings: Some(values.iter().map(ToString::to_string).collect()), ..Default::default() }
}

fn version(value: &str) -> DeviceAttribute {
    DeviceAttribute { version: Some(value.to_owned()), ..Default::default() }
}

fn truth(value: bool) -> DeviceAttribute {
    DeviceAttribute { bool: Some(value), ..Default::default() }
}

fn device<const N: usize>(attributes: [(&str, DeviceAttribute); N]) -> Device {
    let attributes = attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Device { name: "gpu-0".to_owned(), attributes: Some(attributes), ..Default::default() }
}

pub(crate) fn gpu() -> Device {
    let mut gpu = device([
        ("model", text("a100")),
        ("index", int(3)),
        ("healthy", truth(true)),
        ("version", version("1.2.3-rc.1+build")),
        ("ids", ints(&[1, 2, 3])),
        ("names", texts(&["fish", "bird"])),
        ("resource.kubernetes.io/numaNode", int(4)),
        ("zone.example/rack/row", text("slash")),
    ]);
    let memory = DeviceCapacity { value: Quantity("40Gi".to_owned()), ..Default::default() };
    gpu.capacity = Some([("memory".to_owned(), memory)].into());
    gpu
}

pub(crate) fn evaluate(expression: &str, device: &Device) -> Result<bool, String> {
    let selector = Selector::compile(expression, &Options::stored()).map_err(|error| format!("compile: {error}"))?;
    selector.matches(SelectorInput::new(DRIVER, device)).map_err(|error| error.to_string())
}

#[test]
fn true_for_the_gpu() {
    let expressions = [
        // The device.
        "device.driver == 'gpu.example'",
        "!device.allowMultipleAllocations",
        "device.attributes['gpu.example'].model == 'a100'",
        "device.attributes['gpu.example']['model'] == 'a100'",
        "device.attributes['zone.example']['rack/row'] == 'slash'",
        "!('zone.example/rack' in device.attributes)",
        "!('row' in device.attributes['zone.example/rack'])",
        "device.attributes['gpu.example'].healthy",
        "'gpu.example' in device.attributes && !('nope' in device.attributes)",
        "'model' in device.attributes['gpu.example'] && !('nope' in device.attributes['gpu.example'])",
        "!('x' in device.attributes['nope'])",
        "size(device.attributes) == 3 && device.attributes.size() == 3",
        "device.attributes['nope'].size() == 0",
        "device.attributes.map(d, d) == ['gpu.example', 'resource.kubernetes.io', 'zone.example']",
        "device.attributes['gpu.example'].map(k, k) == ['healthy', 'ids', 'index', 'model', 'names', 'version']",
        "device.attributes.all(d, d in device.attributes)",
        "device.attributes['gpu.example'].exists_one(k, k == 'model')",
        "device.attributes['nope'] == {} && {} == device.attributes['nope']",
        "device.attributes['zone.example'] == {'rack/row': 'slash'}",
        "device.attributes == device.attributes && device.capacity != device.attributes",
        "device.capacity['gpu.example'].memory == quantity('40Gi')",
        // Presence.
        "has(device.attributes['gpu.example'].model) && !has(device.attributes['gpu.example'].nope)",
        "!has(device.attributes['nope'].model) && !has(device.capacity['gpu.example'].nope)",
        "device.attributes['gpu.example'].?model.orValue('') == 'a100'",
        "device.attributes['gpu.example'].?nope.orValue('none') == 'none'",
        "device.attributes['gpu.example'][?'nope'].orValue(7) == 7",
        "device.attributes['gpu.example'].?model.hasValue() && !device.attributes['nope'].?model.hasValue()",
        "device.attributes['gpu.example'].?model.optMap(m, m == 'a100').orValue(false)",
        "optional.of(1).value() == 1 && !optional.none().hasValue()",
        // Lists.
        "device.attributes['gpu.example'].ids == [1, 2, 3] && [1, 2, 3] == device.attributes['gpu.example'].ids",
        "2 in device.attributes['gpu.example'].ids",
        "device.attributes['gpu.example'].ids[0] == 1",
        "device.attributes['gpu.example'].ids.filter(i, i > 1).map(i, i * i) == [4, 9]",
        "device.attributes['gpu.example'].ids + [4] == [1, 2, 3, 4]",
        "[1, 2].isSorted() && ![2, 1].isSorted() && [].isSorted()",
        "[1, 2, 3].sum() == 6 && [].sum() == 0 && [1.5, 2.5].sum() == 4.0",
        "[3, 1, 2].min() == 1 && [3, 1, 2].max() == 3 && ['b', 'a'].min() == 'a'",
        "[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && [1].indexOf(5) == -1",
        "[1, 2, 3, 4].slice(1, 3) == [2, 3]",
        "[[1], [2]].flatten() == [1, 2] && [[[1]], [[2]]].flatten() == [[1], [2]]",
        "[[dyn(1)], [dyn(2), dyn([3])]].flatten(2) == [1, 2, 3] && [[1]].flatten(0) == [[1]]",
        "[1, 2, 1].distinct() == [1, 2] && [3, 1, 2].sort() == [1, 2, 3] && [1, 2].reverse() == [2, 1]",
        "['ccc', 'a', 'bb'].sortBy(s, s.size()) == ['a', 'bb', 'ccc']",
        "[[2, 1], [1]].sortBy(l, l.sortBy(x, x)[0] + l.size()) == [[1], [2, 1]]",
        "lists.range(3) == [0, 1, 2] && lists.range(0) == []",
        "sets.contains([1, 2], [2]) && !sets.contains([1], [2]) && sets.equivalent([1, 2, 2], [2, 1])",
        "sets.intersects([1, 2], [2, 3]) && !sets.intersects([1], [2])",
        // Texts.
        "'aBc'.lowerAscii() == 'abc' && 'aBc'.upperAscii() == 'ABC'",
        r#"strings.quote('a"b\\c') == r'"a\"b\\c"' && strings.quote('\a\b\f\n\r\t\vé') == r'"\a\b\f\n\r\t\vé"'"#,
        "'a,b,c'.split(',') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c'] && 'ab'.split('') == ['a', 'b']",
        "'a'.split(',', 0) == [] && ''.split(',') == [''] && ''.split('').size() == 0",
        "['a', 'b'].join() == 'ab' && ['a', 'b'].join('-') == 'a-b' && [].join('x') == ''",
        "'hello'.replace('l', 'L') == 'heLLo' && 'hello'.replace('l', 'L', 1) == 'heLlo'",
        "'täst'.substring(1) == 'äst' && 'täst'.substring(1, 2) == 'ä' && 'täst'.charAt(1) == 'ä' && 'a'.charAt(1) == ''",
        "'banana'.indexOf('an') == 1 && 'banana'.indexOf('an', 2) == 3 && 'banana'.indexOf('x') == -1",
        "'banana'.lastIndexOf('an') == 3 && 'banana'.lastIndexOf('an', 2) == 1 && 'äa'.lastIndexOf('a') == 1",
        "'  x '.trim() == 'x'",
        "'gpu-0'.matches('^[a-z]+-[0-9]$') && matches('gpu', 'p') && !'gpu'.matches('^p')",
        "'a1b22'.find('[0-9]+') == '1' && 'a1b22'.findAll('[0-9]+') == ['1', '22'] && 'a1b2'.findAll('[0-9]', 1) == ['1']",
        "'a1'.matches('a' + '1') && 'x'.find('y') == ''",
        "'x'.startsWith('x') && 'xy'.endsWith('y') && 'xyz'.contains('y') && size('ä') == 1",
        // Quantities.
        "quantity('1Ki').isGreaterThan(quantity('1k')) && quantity('1').isLessThan(quantity('2'))",
        "quantity('1').compareTo(quantity('1000m')) == 0 && quantity('1') == quantity('1000m')",
        "isQuantity('1Gi') && !isQuantity('1i')",
        "quantity('1').add(quantity('1')) == quantity('2') && sign(quantity('1').add(1).sub(2)) == 0",
        "quantity('50k').asInteger() == 50000 && quantity('50k').isInteger() && !quantity('50m').isInteger()",
        "quantity('500m').asApproximateFloat() == 0.5 && sign(quantity('-1')) == -1",
        // Versions.
        "device.attributes['gpu.example'].version.isGreaterThan(semver('1.2.2'))",
        "device.attributes['gpu.example'].version == semver('1.2.3-rc.1')",
        "semver('1.10.0').compareTo(semver('1.9.0')) == 1 && semver('1.0.0').isLessThan(semver('1.0.1'))",
        "semver('v1.2', true) == semver('1.2.0') && semver('01.02.03', true).minor() == 2",
        "isSemver('1.2.3') && !isSemver('v1.2.3') && isSemver('v1.2.3', true) && !isSemver('1.2-a', true)",
        "semver('1.2.3').major() == 1 && semver('1.2.3').patch() == 3",
        "type(semver('1.2.3')) != type(1) && type(1) == int",
        // CEL.
        "cel.bind(g, device.attributes['gpu.example'], g.model == 'a100' && g.index == 3)",
        "cel.bind(x, 1, cel.bind(y, x + 1, cel.bind(x, 10, x + y == 12)))",
        "[1, 2].all(x, cel.bind(y, x * 2, y > x))",
        "{'b': 1, 'a': 2}.map(k, k) == ['a', 'b'] && {2: 0, 1: 0}.map(k, k) == [1, 2]",
        "cel.bind(m, {'b': 1, 'a': 2}, m.filter(k, m[k] > 1) == ['a'])",
        "dyn(1) == dyn(1.0) && 1 < 2.5",
        "int('3') == 3 && string(3) == '3' && double(1) == 1.0 && uint(1) == 1u && bytes('a') == b'a'",
        "'a' + 'b' + 'c' == 'abc' && 1 + 2 + 3 == 6 && [1] + [2] + [3] == [1, 2, 3]",
        "[1, 2, 3].exists(x, x == 2) && [1, 2].exists_one(x, x == 2) && [[1], [2]].all(l, l.exists(x, x > 0))",
        "(1 / 0 == 1 || true) && !(1 / 0 == 1 && false)",
        "[device.driver, 'x'].map(d, d + '!') == ['gpu.example!', 'x!']",
    ];
    for expression in expressions {
        assert_eq!(evaluate(expression, &gpu()), Ok(true), "{expression}, of which {:?}", not_true(expression));
    }
}

/// Returns the parts of a conjunction that are not true for the GPU, with their results.
fn not_true(expression: &str) -> Vec<(&str, Result<bool, String>)> {
    let parts = expression.split(" && ").map(|part| (part, evaluate(part, &gpu())));
    parts.filter(|(_, result)| *result != Ok(true)).collect()
}

#[test]
fn includes() {
    let list_or_scalar = "device.attributes['resource.kubernetes.io'].numaNode.includes(4)";
    // req: 6072-READ-3
    let scalar_only = "device.attributes['resource.kubernetes.io'].numaNode == 4";
    let numa = |attribute| device([("resource.kubernetes.io/numaNode", attribute)]);
    let rows = [
        (int(4), true, true),
        (ints(&[6, 4, 5, 7]), true, false),
        (ints(&[4]), true, false),
        (int(6), false, false),
        (ints(&[5]), false, false),
        (ints(&[]), false, false),
    ];
    for (attribute, included, equal) in rows {
        let device = numa(attribute);
        assert_eq!(evaluate(list_or_scalar, &device), Ok(included), "{device:?}");
        assert_eq!(evaluate(scalar_only, &device), Ok(equal), "{device:?}");
    }
}

#[test]
fn a_selector_for_node_4_that_reads_both_forms() {
    // req: 6072-READ-5
    let selector = "cel.bind(std, device.attributes['resource.kubernetes.io'],
        has(std.numaNode) && std.numaNode.includes(4))";
    let numa = |attribute| device([("resource.kubernetes.io/numaNode", attribute)]);
    assert_eq!(evaluate(selector, &numa(int(4))), Ok(true));
    assert_eq!(evaluate(selector, &numa(ints(&[6, 4, 5, 7]))), Ok(true));
    assert_eq!(evaluate(selector, &numa(int(6))), Ok(false));
    assert_eq!(evaluate(selector, &device([])), Ok(false));
}

#[test]
fn errors_when_evaluated() {
    let rows = [
        (
            "device.attributes['gpu.example'].nope == 1",
            "no such key: nope. consider using CEL optional chaining (.? followed by orValue()) or guarding the check \
             with has() for optional fields",
        ),
        ("device.attributes['nope'].nope", "no such key: nope"),
        ("sign(device.capacity['gpu.example']['nope']) == 0", "no such key: nope"),
        ("device.attributes['gpu.example'].ids", "CEL result of type list could not be converted to bool"),
        ("device.attributes['gpu.example'].model", "CEL result of type string could not be converted to bool"),
        ("device.attributes['gpu.example'].index.exists(x, x > 0)", "got 'types.Int', expected iterable type"),
        ("device.attributes['gpu.example'].version.exists(x, true)", "got 'cel.Semver', expected iterable type"),
        ("device.attributes['gpu.example'].index + 'a' == 'a'", "no such overload"),
        ("device.attributes['gpu.example'].index < 'a'", "no such overload"),
        (
            "device.attributes['gpu.example'].index.isGreaterThan(quantity('1'))",
            "no such overload: isGreaterThan(int, kubernetes.Quantity)",
        ),
        ("1 / 0 == 1", "division by zero"),
        ("1 % 0 == 1", "modulus by zero"),
        ("9223372036854775807 + 1 > 0", "integer overflow"),
        ("[1][5] == 1", "index out of bounds"),
        ("sign(quantity('1i')) == 0", "unable to parse quantity's suffix"),
        ("semver('v1').major() == 1", "No Major.Minor.Patch elements found"),
        ("quantity('50m').asInteger() == 0", "cannot convert value to integer"),
        ("'a'.substring(2) == ''", "index out of range: 2"),
        ("'abc'.substring(2, 1) == ''", "invalid substring range. start: 2, end: 1"),
        ("'a'.charAt(-1) == ''", "index out of range: -1"),
        ("[1].slice(0, 2) == []", "cannot slice(0, 2), list is length 1"),
        ("[].min() == 1", "min called on empty list"),
        ("dyn([1, 2]).join(',') == ''", "no such overload"),
        ("'a'.matches(device.driver + '(')", "error parsing regexp: missing closing )"),
        ("lists.range(49).includes(48)", "'includes' function cannot be applied to lists longer than 48 values"),
        ("optional.none().value() == 1", ""),
        ("true ? 1 / 0 == 1 : true", "division by zero"),
    ];
    for (expression, message) in rows {
        let error = evaluate(expression, &gpu()).unwrap_err();
        assert!(error.contains(message) && !error.starts_with("compile"), "{expression}: {error}");
    }
    assert_eq!(evaluate("lists.range(48).includes(47) && lists.range(49).includes(47)", &gpu()), Ok(true));
    assert_eq!(evaluate("!lists.range(48).includes(48)", &gpu()), Ok(true));
}

#[test]
fn the_limits_of_numbers_and_texts_are_errors_not_panics() {
    let expressions = [
        "-9223372036854775808 % -1 == 1",
        "-9223372036854775808 / -1 == 0",
        "-(-9223372036854775808) == 0",
        "-9223372036854775808 - 1 == 0",
        "9223372036854775807 * 2 == 0",
        "1u - 2u == 0u",
        "18446744073709551615u + 1u == 0u",
        "1u % 0u == 0u",
        "uint(-1) == 0u",
        "int(1e30) == 0",
        "int(0.0 / 0.0) == 0",
        "int('x') == 0",
        "double('x') == 0.0",
        "bool('x')",
        "string(b'\\xff') == ''",
        "[1.0, 0.0 / 0.0].sort() == []",
        "[0.0 / 0.0].max() < 1.0",
        "{1: 1, 1: 2}.size() == 2",
        "{[1]: 1}.size() == 1",
        "[9223372036854775807, 1].sum() == 0",
        "'a'.charAt(9223372036854775807) == ''",
        "lists.range(3)[-1] == 0",
        "dyn(1).value()",
        "dyn(1).orValue(true)",
        "semver('18446744073709551615.0.0').major() == 1",
    ];
    for expression in expressions {
        // A conversion of a constant fails when the expression is compiled.
        let Ok(selector) = Selector::compile(expression, &Options::stored()) else { continue };
        let result = selector.matches(SelectorInput::new(DRIVER, &gpu()));
        assert!(result != Ok(true), "{expression}: {result:?}");
    }
}

#[test]
fn refused_when_compiled() {
    let rows = [
        ("", "mismatched input '<EOF>'"),
        (" \n", "mismatched input '<EOF>'"),
        ("?!", "Syntax error"),
        ("device.", "Syntax error"),
        ("'abc", "Syntax error"),
        ("[1].all(1, true)", "argument must be a simple name"),
        ("nope", "undeclared reference to 'nope' (in container '')"),
        ("nope.driver == 'x'", "undeclared reference to 'nope'"),
        ("[1].all(x, y)", "undeclared reference to 'y'"),
        ("cel.bind(x, 1, true) && x", "undeclared reference to 'x'"),
        ("device.driver.nope()", "undeclared reference to 'nope'"),
        ("nope(1)", "undeclared reference to 'nope'"),
        ("timestamp('x') == timestamp('x')", "invalid timestamp argument"),
        ("Foo{a: 1}", "undeclared reference to 'Foo'"),
        ("device.nope", "undefined field 'nope'"),
        ("has(device.nope)", "undefined field 'nope'"),
        ("device.?nope.hasValue()", "undefined field 'nope'"),
        (
            "device['driver'] == 'x'",
            "found no matching overload for '_[_]' applied to '(kubernetes.DRADevice, string)'",
        ),
        ("device.attributes[1].x", "found no matching overload for '_[_]'"),
        ("1", "must evaluate to bool or the unknown type, not int"),
        ("device.driver", "not string"),
        ("device", "not kubernetes.DRADevice"),
        ("[true]", "not list(bool)"),
        ("[1].map(x, x)", "not list(int)"),
        ("device.attributes", "not map(string, map(string, dyn))"),
        ("quantity('1')", "not kubernetes.Quantity"),
        ("device.driver == 1", "found no matching overload for '_==_' applied to '(string, int)'"),
        ("device.driver && true", "expected type 'bool' but found 'string'"),
        ("device.driver.isLessThan(quantity('1'))", "found no matching overload for 'isLessThan'"),
        ("'a'.matches('(')", "invalid matches argument"),
        ("'a' + 1 == 'a'", "found no matching overload for '_+_'"),
        ("[1, 'a'].size() == 2", "expected type 'int' but found 'string'"),
        ("[device.attributes['a'].b, 3].size() == 2", "expected type 'dyn' but found 'int'"),
        ("1.exists(x, true)", "expression of type 'int' cannot be range of a comprehension"),
        ("'a'.exists(x, true)", "expression of type 'string' cannot be range of a comprehension"),
    ];
    for (expression, message) in rows {
        let error = Selector::compile(expression, &Options::stored()).unwrap_err().to_string();
        assert!(error.contains(message), "{expression}: {error}");
    }
    assert!(Selector::compile("[int(device.attributes['a'].b), 3].size() == 2", &Options::stored()).is_ok());
}

#[test]
fn every_attribute_must_be_valid_also_where_it_is_not_read() {
    let unset = DeviceAttribute::default();
    let rows = [
        (device([("a", unset.clone()), ("b", int(1))]), "attribute a: unsupported attribute value"),
        (device([("b", unset), ("a", version("1.2"))]), "attribute a: parse semantic version: "),
        (
            device([("a", DeviceAttribute { versions: Some(vec!["x".into()]), ..Default::default() })]),
            "attribute a: parse",
        ),
    ];
    for (device, message) in rows {
        let error = evaluate("true", &device).unwrap_err();
        assert!(error.starts_with(message), "{error}");
    }
    let mut device = device([]);
    let memory = DeviceCapacity { value: Quantity("1i".to_owned()), ..Default::default() };
    device.capacity = Some([("memory".to_owned(), memory)].into());
    let error = Selector::compile("true", &Options::stored()).unwrap().matches(SelectorInput::new(DRIVER, &device));
    assert!(matches!(error, Err(EvaluationError::Attribute { name, .. }) if name == "memory"));
}

#[test]
fn the_first_of_several_values_counts() {
    let mut attribute = DeviceAttribute {
        int: Some(1),
        bool: Some(true),
        string: Some("s".into()),
        version: Some("1.0.0".into()),
        ints: Some(vec![1, 2]),
        bools: Some(vec![false]),
        strings: Some(vec!["t".into()]),
        versions: Some(vec!["2.0.0".into()]),
    };
    let check = |attribute: &DeviceAttribute, expected: &str| {
        let expression = format!("device.attributes['gpu.example'].a == {expected}");
        assert_eq!(evaluate(&expression, &device([("a", attribute.clone())])), Ok(true), "{expected}");
    };
    check(&attribute, "[1, 2]");
    attribute.ints = None;
    check(&attribute, "[false]");
    attribute.bools = None;
    check(&attribute, "['t']");
    attribute.strings = None;
    check(&attribute, "[semver('2.0.0')]");
    attribute.versions = None;
    check(&attribute, "1");
    attribute.int = None;
    check(&attribute, "true");
    attribute.bool = None;
    check(&attribute, "'s'");
    attribute.string = None;
    check(&attribute, "semver('1.0.0')");
}

#[test]
fn derived_attributes() {
    let derive = |expression: &str| {
        let selector = Selector::compile_derived(expression, &Options::stored()).map_err(|error| error.to_string())?;
        let device = gpu();
        selector.derive(SelectorInput::new(DRIVER, &device)).map_err(|error| error.to_string())
    };
    let rows = [
        ("device.driver", text(DRIVER)),
        ("device.attributes['gpu.example'].index + 1", int(4)),
        ("device.attributes['gpu.example'].ids", ints(&[1, 2, 3])),
        ("device.attributes['gpu.example'].version", version("1.2.3-rc.1+build")),
        ("true", truth(true)),
        ("[1, 2].map(x, x * 2)", ints(&[2, 4])),
        ("['a']", texts(&["a"])),
        ("[1].filter(x, x > 1)", texts(&[])),
        ("[[1], [2, 3]][1]", ints(&[2, 3])),
        ("optional.of(['a']).value()", texts(&["a"])),
        ("[1, 2].map(x, [x])[0]", ints(&[1])),
        ("[true]", DeviceAttribute { bools: Some(vec![true]), ..Default::default() }),
        ("[semver('1.0.0')]", DeviceAttribute { versions: Some(vec!["1.0.0".into()]), ..Default::default() }),
    ];
    for (expression, attribute) in rows {
        assert_eq!(derive(expression), Ok(attribute), "{expression}");
    }
    let words =
        "must evaluate to a primitive scalar (string, integer, boolean, semver) or a list of these scalars, not";
    let refused = [
        ("1.5", "double"),
        ("1u", "uint"),
        ("{}", "map(dyn, dyn)"),
        ("null", "null_type"),
        ("quantity('1')", "kubernetes.Quantity"),
        ("[1.5]", "list(double)"),
        ("[[1]]", "list(list(int))"),
        ("[[[1]]][0]", "list(list(int))"),
        ("[[1.5]][0]", "list(double)"),
        ("dyn(1.5)", "double"),
        ("dyn([1.5])", "list(double)"),
        ("dyn([dyn(1), dyn('a')])", "a list of values of different types"),
    ];
    for (expression, actual) in refused {
        assert_eq!(derive(expression), Err(format!("{words} {actual}")), "{expression}");
    }
}

#[test]
fn what_reads_only_the_driver() {
    let rows = [
        ("device.driver == 'x'", true),
        ("device.driver.startsWith('x') || [device.driver].exists(d, d == 'y')", true),
        ("true", true),
        ("[{'attributes': 1}].all(device, device.attributes == 1)", true),
        ("device.driver == 'x' && device.allowMultipleAllocations", false),
        ("'x' in device.attributes", false),
        ("cel.bind(d, device, d.driver == 'x')", false),
        ("device == device", false),
        ("google.protobuf.BoolValue{value: device.allowMultipleAllocations} == true", false),
    ];
    for (expression, only_driver) in rows {
        assert_eq!(
            Selector::compile(expression, &Options::stored()).unwrap().depends_only_on_driver(),
            only_driver,
            "{expression}"
        );
    }
}

#[test]
fn the_cache_keeps_what_was_used_last() {
    // Each of these takes some kilobytes, and all of them together far more than the cache has.
    let cache = SelectorCache::with_memory(100_000);
    let first = cache.compile("true").unwrap();
    let second = cache.compile("false").unwrap();
    for number in 0..1_000 {
        cache.compile(&format!("{number} == 1")).unwrap();
        assert!(Arc::ptr_eq(&first, &cache.compile("true").unwrap()), "used all the time");
    }
    assert!(!Arc::ptr_eq(&second, &cache.compile("false").unwrap()), "dropped meanwhile");
    assert!(!Arc::ptr_eq(&first, &cache.compile_derived("true").unwrap()), "selectors and derived are apart");
    assert!(cache.compile("1").is_err());
    assert!(cache.compile_derived("1").is_ok());
}

#[test]
fn patterns_count_for_the_memory_of_a_cache() {
    let cache = SelectorCache::with_memory(300_000);
    let (small, large) = ("'a'.matches('a')", r"'a'.matches('\\S{100}')");
    let same = |text| Arc::ptr_eq(&cache.compile(text).unwrap(), &cache.compile(text).unwrap());
    assert!(same(small));
    assert!(!same(large), "more than a quarter of the cache");
}

#[test]
fn selectors_and_caches_can_be_shared_among_threads() {
    fn assert_shared<T: Send + Sync>() {}
    assert_shared::<Selector>();
    assert_shared::<SelectorCache>();
}

#[test]
fn the_same_answer_every_time() {
    let device = gpu();
    let selector =
        Selector::compile_derived("{'c': 1, 'a': 2, 'b': 3, 'd': 4}.map(k, k + k).join()", &Options::stored()).unwrap();
    for _ in 0..20 {
        let derived = selector.derive(SelectorInput::new(DRIVER, &device));
        assert_eq!(derived, Ok(text("aabbccdd")));
    }
}
