//! Formats that API types declare, with the API server's messages.

use dra_attrs::{FieldPath, NameFormat};

const LABELS: &str = r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'";

fn subdomain() -> String {
    format!(
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and \
         end with an alphanumeric character (e.g. 'example.com', regex used for validation is {LABELS})"
    )
}

/// Returns each error as type, value and detail.
fn problems(format: NameFormat, text: &str) -> Vec<String> {
    let errors = format.check(text, &FieldPath::new("f"));
    errors.iter().map(|error| error.to_string().trim_start_matches("f: ").to_owned()).collect()
}

fn invalid(value: &str, detail: &str) -> String {
    format!("Invalid value: \"{value}\": {detail}")
}

#[test]
fn long_names_are_subdomains_in_lower_case() {
    assert!(problems(NameFormat::LongName, "node-1.example.com").is_empty());
    assert!(problems(NameFormat::LongName, &"a".repeat(253)).is_empty());
    assert_eq!(problems(NameFormat::LongName, "Node"), [invalid("Node", &subdomain())]);
    let both = format!("{}.", "a".repeat(253));
    assert_eq!(
        problems(NameFormat::LongName, &both),
        [invalid(&both, "must be no more than 253 bytes"), invalid(&both, &subdomain())]
    );
}

#[test]
fn caseless_long_names_may_have_capitals() {
    assert!(problems(NameFormat::LongNameCaseless, "GPU.Example.com").is_empty());
    let form = format!(
        "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an \
         alphanumeric character (e.g. 'Example.com', regex used for validation is {LABELS})"
    );
    assert_eq!(problems(NameFormat::LongNameCaseless, "GPU!"), [invalid("GPU!", &form)]);
    let long = "A".repeat(254);
    assert_eq!(problems(NameFormat::LongNameCaseless, &long), [invalid(&long, "must be no more than 253 bytes")]);
    let both = "!".repeat(254);
    assert_eq!(problems(NameFormat::LongNameCaseless, &both).len(), 2);
}

#[test]
fn each_segment_of_a_pools_name_is_a_problem_of_its_own() {
    let segment = |index: usize| format!("segment {index}: {}", subdomain());
    let rows = [
        ("rack-1/node-1", vec![]),
        ("", vec![invalid("", "segment 0: must not be empty")]),
        ("a//b", vec![invalid("a//b", "segment 1: must not be empty")]),
        ("A/b", vec![invalid("A", &segment(0))]),
        ("a/B/", vec![invalid("B", &segment(1)), invalid("a/B/", "segment 2: must not be empty")]),
    ];
    for (name, expected) in rows {
        assert_eq!(problems(NameFormat::PoolName, name), expected, "{name}");
    }
    let most = format!("{}/{}", "a".repeat(126), "b".repeat(126));
    assert!(problems(NameFormat::PoolName, &most).is_empty());
    let of_two = format!("{most}b");
    assert_eq!(problems(NameFormat::PoolName, &of_two), ["Too long: may not be more than 253 bytes"]);
    let of_one = "a".repeat(254);
    let long_segment = invalid(&of_one, "segment 0: must be no more than 253 bytes");
    assert_eq!(
        problems(NameFormat::PoolName, &of_one),
        ["Too long: may not be more than 253 bytes".to_owned(), long_segment]
    );
}

#[test]
fn fully_qualified_names_have_a_domain_and_an_identifier() {
    let form = "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric \
                characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is \
                '[A-Za-z_][A-Za-z0-9_]*')";
    let unqualified = "a fully qualified name must be a domain and a name separated by a slash";
    let prefix = format!("prefix: {}", subdomain());
    let longest = format!("{}/{}", "x.".repeat(31) + "x", "p".repeat(32));
    let (long_domain, long_id) = (format!("{}/p", "x.".repeat(32) + "x"), format!("a/{}", "p".repeat(33)));
    let rows = [
        ("gpu.example.com/profile", vec![]),
        (&longest, vec![]),
        ("profile", vec![invalid("profile", unqualified)]),
        ("", vec![invalid("", form), invalid("", unqualified)]),
        ("/p", vec![invalid("", "prefix must not be empty")]),
        ("a/", vec![invalid("", "name must not be empty")]),
        ("/", vec![invalid("", "prefix must not be empty"), invalid("", "name must not be empty")]),
        ("A/p", vec![invalid("A", &prefix)]),
        ("a/p-q", vec![invalid("p-q", form)]),
        (&long_domain, vec!["Too long: may not be more than 63 bytes".to_owned()]),
        (&long_id, vec!["Too long: may not be more than 32 bytes".to_owned()]),
    ];
    for (name, expected) in rows {
        assert_eq!(problems(NameFormat::QualifiedAttribute, name), expected, "{name}");
    }
    assert_eq!(problems(NameFormat::Identifier, &"1".repeat(33)).len(), 2);
}

#[test]
fn the_generated_check_does_not_look_into_a_name_with_several_slashes() {
    for name in ["a/b/c", "//", "A/!/"] {
        assert!(problems(NameFormat::QualifiedAttribute, name).is_empty(), "{name}");
    }
}

#[test]
fn uuids_have_five_groups_in_lower_case() {
    let form = "must be a lowercase UUID in 8-4-4-4-12 format";
    assert!(problems(NameFormat::Uuid, "01234567-89ab-cdef-0123-456789abcdef").is_empty());
    for text in [
        "",
        "01234567-89ab-cdef-0123-456789abcdeF",
        "01234567-89ab-cdef-0123-456789abcdeg",
        "01234567-89ab-cdef-0123-456789abcde",
        "0123456789ab-cdef-0123-456789abcdef",
        "01234567-89ab-cdef-0123-456789abcdef-",
    ] {
        assert_eq!(problems(NameFormat::Uuid, text), [invalid(text, form)], "{text}");
    }
}

#[test]
fn extended_resources_have_a_domain_that_is_not_of_kubernetes() {
    let path = "a name must be a domain-prefixed path, such as 'example.com/my-prop'";
    assert!(problems(NameFormat::ExtendedResource, "example.com/gpu").is_empty());
    assert_eq!(problems(NameFormat::ExtendedResource, "gpu"), [invalid("gpu", path)]);
    let native = "kubernetes.io/gpu";
    assert_eq!(
        problems(NameFormat::ExtendedResource, native),
        [invalid(native, "must not have \"kubernetes.io/\" domain")]
    );
    let quota = "requests.example.com/gpu";
    assert_eq!(problems(NameFormat::ExtendedResource, quota), [invalid(quota, "must not have \"requests.\" prefix")]);
    // The name also has to fit behind the prefix of a quota.
    let domain = |length: usize| format!("{}/gpu", "d".repeat(length));
    assert!(problems(NameFormat::ExtendedResource, &domain(244)).is_empty());
    let long = domain(245);
    assert_eq!(
        problems(NameFormat::ExtendedResource, &long),
        [invalid(&long, "prefix part must be no more than 253 bytes")]
    );
}
