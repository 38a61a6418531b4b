//! DNS labels and subdomains, with the messages of both rules.

use dra_attrs::{FieldErrors, FieldPath, NameFormat};

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and \
                     end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
                     '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

#[test]
fn labels() {
    let most = "a".repeat(63);
    for label in ["a", "0", "gpu-0", "a--b", &most] {
        assert_eq!(NameFormat::Label.problems(label), [""; 0], "{label}");
    }
    for text in ["", "-a", "a-", "A", "a_b", "ä", "a b", "a.", ".a", "a..b", "A.b"] {
        assert_eq!(NameFormat::Label.problems(text), [LABEL], "{text}");
    }
    assert_eq!(NameFormat::Label.problems("a.b"), ["must not contain dots"]);
    let long = "a".repeat(64);
    assert_eq!(NameFormat::Label.problems(&long), ["must be no more than 63 characters"]);
    assert_eq!(NameFormat::Label.problems(&long.to_uppercase()), ["must be no more than 63 characters", LABEL]);
}

#[test]
fn the_declared_rule_counts_bytes() {
    let name = FieldPath::new("name");
    let problems = |text: &str| NameFormat::ShortName.check(text, &name);
    assert_eq!(problems("gpu-0"), FieldErrors::new());
    let long = "a".repeat(64);
    assert_eq!(problems(&long).to_string(), format!("name: Invalid value: \"{long}\": must be no more than 63 bytes"));
    assert_eq!(problems("a.b").to_string(), "name: Invalid value: \"a.b\": must not contain dots");
    assert_eq!(problems("A").to_string(), format!("name: Invalid value: \"A\": {LABEL}"));
}

#[test]
fn subdomains() {
    let most = format!("a{}", ".a".repeat(126));
    let long = format!("{most}a");
    assert_eq!((most.len(), long.len()), (253, 254));
    for text in ["a", "a.b", "0.example-1.com", &most] {
        assert!(NameFormat::Subdomain.problems(text).is_empty(), "{text}");
    }
    for text in ["", ".", "a.", "-a.b", "a-.b", "a.B", "a_b"] {
        let [problem] = NameFormat::Subdomain.problems(text).try_into().unwrap();
        assert!(problem.starts_with("a lowercase RFC 1123 subdomain must consist of "), "{text}: {problem}");
    }
    assert_eq!(NameFormat::Subdomain.problems(&long), ["must be no more than 253 characters"]);
    assert_eq!(NameFormat::Subdomain.problems(&".".repeat(254)).len(), 2);
}
