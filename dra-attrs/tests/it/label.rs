//! Keys and values of labels, and selectors.

use dra_attrs::{NameFormat, label_selector_matches};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Value, from_value, json};

#[test]
fn each_operator_with_and_without_the_label() {
    let labels = [("zone".to_owned(), "a".to_owned())].into();
    let holds = |key: &str, operator: &str, values: Value| {
        let requirement = json!({"key": key, "operator": operator, "values": values});
        let selector: LabelSelector = from_value(json!({"matchExpressions": [requirement]})).unwrap();
        label_selector_matches(&selector, &labels).map_err(|error| error.to_string())
    };
    for (operator, values, with, without) in [
        ("In", json!(["a", "b"]), true, false),
        ("In", json!(["b"]), false, false),
        ("NotIn", json!(["a", "b"]), false, true),
        ("NotIn", json!(["b"]), true, true),
        ("Exists", json!([]), true, false),
        ("DoesNotExist", json!([]), false, true),
    ] {
        assert_eq!(holds("zone", operator, values.clone()), Ok(with), "{operator} {values}");
        assert_eq!(holds("rack", operator, values.clone()), Ok(without), "{operator} {values}");
    }
    assert_eq!(holds("zone", "Near", json!([])), Err("matchExpressions[0]: unknown operator \"Near\"".to_owned()));
}

#[test]
fn every_label_of_match_labels_is_wanted() {
    let labels = [("zone".to_owned(), "a".to_owned()), ("rack".to_owned(), "1".to_owned())].into();
    let matches = |wanted: Value| {
        let selector: LabelSelector = from_value(json!({"matchLabels": wanted})).unwrap();
        label_selector_matches(&selector, &labels).unwrap()
    };
    assert!(matches(json!({})) && matches(json!({"zone": "a"})) && matches(json!({"zone": "a", "rack": "1"})));
    assert!(!matches(json!({"zone": "b"})) && !matches(json!({"zone": "a", "row": "1"})));
}

const NAME: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

#[test]
fn keys_have_a_name_and_perhaps_a_prefix() {
    let most = "n".repeat(63);
    for key in ["a", "9", "My_Name.1-x", "example.com/a", &format!("{}/{most}", "d".repeat(253))] {
        assert!(NameFormat::LabelKey.problems(key).is_empty(), "{key}");
    }
    for name in ["-a", "a-", "_", "a b", "ä", "a."] {
        assert_eq!(NameFormat::LabelKey.problems(name), [NAME], "{name}");
        assert_eq!(NameFormat::LabelKey.problems(&format!("example.com/{name}")), [NAME], "{name}");
    }
    assert_eq!(NameFormat::LabelKey.problems(""), ["name part must be non-empty", NAME]);
    let long = "n".repeat(64);
    assert_eq!(NameFormat::LabelKey.problems(&long), ["name part must be no more than 63 bytes"]);
    assert_eq!(NameFormat::LabelKey.problems(&format!("{long}-")), ["name part must be no more than 63 bytes", NAME]);
    let [several] = NameFormat::LabelKey.problems("a/b/c").try_into().unwrap();
    assert!(several.starts_with("a valid label key must consist of "), "{several}");
    assert_eq!(
        NameFormat::LabelKey.problems("/"),
        ["prefix part must be non-empty", "name part must be non-empty", NAME]
    );
    assert_eq!(NameFormat::LabelKeyPrefix.problems(""), ["prefix part must be non-empty"]);
    let [prefix] = NameFormat::LabelKeyPrefix.problems("A").try_into().unwrap();
    assert!(prefix.starts_with("prefix part a lowercase RFC 1123 subdomain must consist of "), "{prefix}");
}

#[test]
fn values_are_empty_or_names() {
    for value in ["", "a", "A_b-c.1", &"v".repeat(63)] {
        assert!(NameFormat::LabelValue.problems(value).is_empty(), "{value}");
    }
    for value in ["-", "a-", ".a", "a/b", " "] {
        let [problem] = NameFormat::LabelValue.problems(value).try_into().unwrap();
        assert!(problem.starts_with("a valid label must be an empty string or consist of "), "{value}: {problem}");
    }
    assert_eq!(NameFormat::LabelValue.problems(&"v".repeat(64)), ["must be no more than 63 bytes"]);
    assert_eq!(NameFormat::LabelValue.problems(&"-".repeat(64)).len(), 2);
}
