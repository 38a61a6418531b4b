//! Tests of CEL values: equality, conversions and pattern matches.

use dra_selector::{Options, Selector};
use k8s_openapi::api::resource::v1::{Device, DeviceAttribute, DeviceCapacity};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::matching::{evaluate, gpu};

/// Returns the GPU with further versions and capacities.
fn large_gpu() -> Device {
    let mut gpu = gpu();
    let versions = vec!["1.0.0".to_owned(), "2.0.0".to_owned()];
    let versions = DeviceAttribute { versions: Some(versions), ..Default::default() };
    gpu.attributes.get_or_insert_default().insert("versions".to_owned(), versions);
    for (name, amount) in [("count", "5"), ("many", "100Ti"), ("part", "1500m")] {
        let capacity = DeviceCapacity { value: Quantity(amount.to_owned()), ..Default::default() };
        gpu.capacity.get_or_insert_default().insert(name.to_owned(), capacity);
    }
    gpu
}

/// Evaluates an expression on the GPU, with `a` bound to its attributes and `k` to its capacities.
fn on_gpu(expression: &str) -> Result<bool, String> {
    let attributes = "device.attributes['gpu.example']";
    let bound = format!("cel.bind(a, {attributes}, cel.bind(k, device.capacity['gpu.example'], {expression}))");
    let spelled = bound.replace("VERSIONS", "a.versions").replace("VERSION", "a.version");
    evaluate(&spelled, &large_gpu())
}

#[test]
fn a_url_without_a_host_has_two_slashes_all_the_same() {
    for expression in [
        "url('file:///a').getHost() == '' && url('file:///a').getEscapedPath() == '/a'",
        "url('file:///a') == url('file:///a') && url('file:///a') != url('file://b/a')",
        "url('/a').getScheme() == '' && url('/a').getHost() == ''",
        "'%s'.format([url('file:///a').getScheme()]) == 'file'",
        "isURL('/abc') && isURL('https://a/b') && !isURL('abc') && !isURL('')",
    ] {
        assert_eq!(on_gpu(expression), Ok(true), "{expression}");
    }
}

#[test]
fn a_double_without_a_fraction_finds_the_key_that_equals_it() {
    for expression in
        ["{1u: 2}[dyn(1.0)] == 2", "{1: 2}[dyn(1.0)] == 2", "dyn(1.0) in {1u: 2}", "!(dyn(1.5) in {1u: 2})"]
    {
        assert_eq!(on_gpu(expression), Ok(true), "{expression}");
    }
}

#[test]
fn a_version_compares_with_versions_only() {
    for expression in [
        "VERSION == '1.2.3'",
        "!(VERSION == '1.2.3')",
        "VERSION == 1",
        "VERSION == a.model",
        "VERSIONS.exists(v, v == '1.0.0')",
        "optional.of(VERSION) == optional.of('1.2.3')",
        "VERSION == '1.2.3' ? true : true",
    ] {
        assert!(on_gpu(expression).unwrap_err().contains("no such overload"), "{expression}");
    }
    for expression in [
        "VERSION == semver('1.2.3-rc.1')",
        "VERSION != '1.2.3' && '1.2.3' != VERSION && !('1.2.3' == VERSION)",
        "VERSION == '1.2.3' || a.model == 'a100'",
        "!(VERSION == '1.2.3' && false)",
        "VERSION != null && !(VERSION == null)",
        "!(VERSION in [device.driver]) && !('1.0.0' in VERSIONS) && !VERSIONS.includes('1.0.0')",
        "VERSIONS.all(v, v != '9')",
        // A comparison that fails does not make lists or maps unequal.
        "VERSIONS == ['x', 'y'] && !(VERSIONS != ['x', 'y'])",
        "!(VERSIONS == ['x']) && !(['1.0.0', '2.0.0'] == VERSIONS)",
        "VERSIONS == [semver('1.0.0'), semver('2.0.0')]",
        "cel.bind(m, {'v': VERSION}, m == {'v': '1.2.3'} && !({'v': '1.2.3'} == m))",
    ] {
        assert_eq!(on_gpu(expression), Ok(true), "{expression}");
    }
}

#[test]
fn nothing_is_equal_to_a_quantity_that_was_computed() {
    for expression in
        ["quantity('10') == k.count.add(k.count)", "k.count.add(1) == k.count.add(1)", "k.count == dyn(5)"]
    {
        assert!(on_gpu(expression).unwrap_err().contains("no such overload"), "{expression}");
    }
    for expression in [
        "k.count.add(k.count) == quantity('10') && quantity('10') != k.count.add(k.count)",
        "k.count.add(5) in [quantity('10')]",
        "k.count.add(k.count).compareTo(quantity('10')) == 0",
        "quantity('10').compareTo(k.count.add(k.count)) == 0",
    ] {
        assert_eq!(on_gpu(expression), Ok(true), "{expression}");
    }
}

#[test]
fn a_map_is_equal_to_any_map_with_its_content() {
    for expression in [
        "cel.bind(m, {'rack/row': 'slash'}, m == device.attributes['zone.example'])",
        "{'rack/row': 'slash'} == device.attributes['zone.example']",
        "cel.bind(m, {}, m == device.attributes['nope'] && m != device.attributes['zone.example'])",
        "{'a': [1]} == {'a': [1]} && {'a': 1} != {'b': 1} && dyn({1: 1}) == {1u: 1.0}",
        "dyn({}) != dyn(1) && dyn({}) != dyn([]) && dyn({'a': 1}) != dyn('a')",
    ] {
        assert_eq!(evaluate(expression, &gpu()), Ok(true), "{expression}");
    }
}

#[test]
fn an_integer_is_what_kubernetes_holds_as_one() {
    for expression in [
        "k.count.asInteger() == 5 && k.count.isInteger() && !k.part.isInteger() && !k.many.isInteger()",
        "!quantity('1.5Gi').isInteger() && !quantity('1000m').isInteger() && quantity('99Ti').isInteger()",
        "k.count.add(1).isInteger() && !k.many.add(1).isInteger() && !k.many.sub(k.many).isInteger()",
        "sign(quantity('1').sub(-9223372036854775808)) == -1 && sign(quantity('-1').sub(-9223372036854775808)) == 1",
        "k.part.asApproximateFloat() == 1.5 && quantity('0.3').asApproximateFloat() != 0.3",
    ] {
        assert_eq!(on_gpu(expression), Ok(true), "{expression}");
    }
    assert!(on_gpu("k.many.asInteger() > 0").unwrap_err().contains("cannot convert value to integer"));
}

#[test]
fn numbers_and_texts_are_converted_as_in_go() {
    for expression in [
        "string(85899345920.0) == '8.589934592e+10' && string(1.0 / 0.0) == '+Inf' && string(1.5) == '1.5'",
        "string(5) == '5' && string(true) == 'true' && string(b'a') == 'a' && string('a') == 'a' && string(5u) == '5'",
        "double('1.5') == 1.5 && double(3) == 3.0 && double('inf') > 1.0",
        "uint('5') == 5u && uint(5) == 5u && int('+5') == 5",
        "!isSemver('1.0.0-20240101123456789012345') && isSemver('1.0.0-2024')",
    ] {
        assert_eq!(evaluate(expression, &gpu()), Ok(true), "{expression}");
    }
    for expression in
        ["uint('+5') == 5u", "double('1e400') > 1.0", "string(dyn([])) == ''", "uint('x') == 1u", "double('x') == 1.0"]
    {
        // Conversions of constants fail when the expression is compiled.
        let program = "compile: program instantiation failed";
        assert!(evaluate(expression, &gpu()).is_err_and(|error| error.starts_with(program)), "{expression}");
    }
}

#[test]
fn a_pre_release_with_a_number_above_64_bits_makes_a_device_unreadable() {
    let mut device = gpu();
    let version = DeviceAttribute { version: Some("1.0.0-18446744073709551616".to_owned()), ..Default::default() };
    device.attributes.get_or_insert_default().insert("version".to_owned(), version);
    assert!(evaluate("true", &device).unwrap_err().contains("parse semantic version"));
}

#[test]
fn a_search_from_the_end_on_finds_nothing_but_the_empty_text() {
    for expression in [
        "'abc'.indexOf('z', 5) == -1 && 'abc'.indexOf('c', 3) == -1 && 'abc'.indexOf('c', 2) == 2",
        "'abc'.lastIndexOf('c', 3) == -1 && 'abc'.lastIndexOf('c', 9) == -1 && 'abc'.lastIndexOf('c', 2) == 2",
        "'abc'.indexOf('', 9) == 9 && 'abc'.lastIndexOf('', 9) == 9 && 'abc'.indexOf('', 3) == 3",
        "'abc'.lastIndexOf('c') == 2 && 'äbc'.lastIndexOf('') == 3 && ''.indexOf('a') == -1 && ''.lastIndexOf('a') == -1",
    ] {
        assert_eq!(evaluate(expression, &gpu()), Ok(true), "{expression}");
    }
    assert!(evaluate("'abc'.indexOf('c', -1) == 2", &gpu()).unwrap_err().contains("index out of range: -1"));
    assert!(evaluate("'abc'.lastIndexOf('c', -1) == 2", &gpu()).unwrap_err().contains("index out of range: -1"));
}

#[test]
fn patterns_are_those_of_go() {
    for expression in [
        r"'a<b'.matches('a\\<b') && 'a{b}'.matches('a{b}') && 'a.b'.matches('^\\Qa.b\\E$')",
        r"!'b'.matches('\\<b') && '\\<b' != '' && 'x<b'.matches('\\' + '<b')",
    ] {
        assert_eq!(evaluate(expression, &gpu()), Ok(true), "{expression}");
    }
    for pattern in ["a**", "(?x)a", r"\\u0061"] {
        let refused = Selector::compile(&format!("'a'.matches('{pattern}')"), &Options::stored()).map(|_| "compiled");
        assert!(refused.is_err_and(|error| error.to_string().contains("invalid matches argument")), "{pattern}");
    }
}

#[test]
fn an_element_of_an_empty_list_is_of_any_type() {
    assert_eq!(on_gpu("[].exists(x, x.size == 1 && x == 'a' && x == 2)"), Ok(false));
}

#[test]
fn what_was_added_together_is_compared_element_by_element() {
    // Elements that can't be compared count as equal, but not in a sum.
    assert_eq!(on_gpu("[VERSION, VERSION] == ['x', 'y']"), Ok(true));
    assert!(on_gpu("[VERSION] + [VERSION] == ['x', 'y']").unwrap_err().contains("no such overload"));
}

#[test]
fn a_large_quantity_has_a_limited_number_of_zeros() {
    assert_eq!(on_gpu("isQuantity('1e9991') && !isQuantity('1e9992')"), Ok(true));
    assert_eq!(on_gpu("quantity('1e9991').isGreaterThan(quantity('1e9990'))"), Ok(true));
}

#[test]
fn the_end_of_a_line_is_a_line_feed_in_every_string() {
    assert_eq!(on_gpu("r'''a\\n\r\nb\rc''' == 'a\\\\n\\nb\\nc'"), Ok(true));
    assert_eq!(on_gpu("'''a\\n\r\nb''' == 'a\\n\\nb'"), Ok(true));
}

#[test]
fn types_nest_within_limits() {
    let nested = |inner: &str, levels: usize| format!("{}{inner}{}", "[".repeat(levels), "]".repeat(levels));
    let sized =
        |levels: usize| on_gpu(&format!("cel.bind(b, {}, {}.size() == 1)", nested("1", 120), nested("b", levels)));
    assert_eq!(sized(60), Ok(true));
    let error = sized(140).unwrap_err();
    assert!(error.ends_with("expression is too large: types nest too deeply"), "{error}");
}

#[test]
fn a_duration_is_no_bool() {
    let error = on_gpu("dyn(duration('1s'))").unwrap_err();
    assert!(error.ends_with("type conversion error from 'Duration' to 'bool'"), "{error}");
}

#[test]
fn attributes_that_are_read_are_sorted_and_named_once() {
    let expression = "device.attributes['x'].b == 1 || device.attributes['x'].a == 1 || device.attributes['x'].b == 2";
    let selector = Selector::compile(expression, &Options::stored()).unwrap();
    let read = ["a", "b"].map(|id| ("x".to_owned(), id.to_owned()));
    assert_eq!(selector.attributes_read(), Some(&read[..]));
}
