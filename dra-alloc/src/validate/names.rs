//! The forms of names, keys and ids.

use dra_attrs::dns::{label_problems, subdomain_problems};
use dra_attrs::field::{FieldError, FieldPath, Quoted};
use dra_attrs::format;

use super::findings::Findings;
use super::limits;

const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
                           and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or \
                           '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const LABEL_NAME: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                          alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation \
                          is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const SEVERAL_SLASHES: &str = "must not contain more than one slash";
const NOT_FULLY_QUALIFIED: &str = "a fully qualified name must be a domain and a name separated by a slash";

/// The name of a driver. Capitals are allowed, though not welcome.
pub(super) fn driver(name: &str, at: &FieldPath<'_>, findings: &mut Findings) {
    if name.is_empty() {
        return findings.push(FieldError::required(at, ""));
    }
    if name.len() > limits::DRIVER_NAME {
        findings.push(FieldError::too_long(at, limits::DRIVER_NAME));
    }
    invalid(name, subdomain_problems(&name.to_lowercase()), at, findings);
}

/// The name of a pool: DNS subdomains, with slashes between them.
pub(super) fn pool(name: &str, at: &FieldPath<'_>, findings: &mut Findings) {
    if name.is_empty() {
        return findings.push(FieldError::required(at, ""));
    }
    if name.len() > limits::POOL_NAME {
        findings.push(FieldError::too_long(at, limits::POOL_NAME));
    }
    name.split('/').for_each(|part| subdomain(part, at, findings));
}

/// The name of a device, a request, a counter or a counter set.
pub(super) fn label(name: &str, at: &FieldPath<'_>, findings: &mut Findings) {
    invalid(name, label_problems(name), at, findings);
}

/// The name of an object or a node.
pub(super) fn subdomain(name: &str, at: &FieldPath<'_>, findings: &mut Findings) {
    invalid(name, subdomain_problems(name), at, findings);
}

/// The name of an attribute or a capacity: an id, with or without its domain, which is that of a driver.
pub(super) fn qualified(name: &str, at: &FieldPath<'_>, findings: &mut Findings) {
    domain_and_id(name, driver, at, findings);
}

/// The name of an attribute in a constraint: an id with its domain, which has no capitals.
pub(super) fn fully_qualified(name: &str, at: &FieldPath<'_>, findings: &mut Findings) {
    domain_and_id(name, domain, at, findings);
    if !name.contains('/') {
        findings.push(FieldError::invalid(at, name, NOT_FULLY_QUALIFIED));
    }
}

/// The same where only the type has the rule: in other words, and a name with several slashes escapes it.
pub(super) fn declared_fully_qualified(name: &str, at: &FieldPath<'_>, findings: &mut Findings) {
    findings.extend(format::resource_fully_qualified_name(name, at));
}

/// The key of a label, a taint or a condition.
pub(super) fn label_key(key: &str, at: &FieldPath<'_>, findings: &mut Findings) {
    invalid(key, label_key_problems(key), at, findings);
}

/// The value of a label or a taint.
pub(super) fn label_value(value: &str, at: &FieldPath<'_>, findings: &mut Findings) {
    let long = too_long(value, limits::LABEL_VALUE);
    let malformed = !value.is_empty() && !is_label_text(value);
    invalid(value, long.into_iter().chain(malformed.then(|| LABEL_VALUE.to_owned())), at, findings);
}

/// The id of a share: a UUID in lower case.
pub(super) fn uuid(id: &str, at: &FieldPath<'_>, findings: &mut Findings) {
    const FORM: &str = "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase \
                        hexadecimal characters";
    let detail = match uuid_form(id) {
        Ok(()) if has_groups(id) && id == id.to_lowercase() => return,
        Ok(()) => FORM.to_owned(),
        Err(problem) => format!("error validating uid: {problem}"),
    };
    findings.push(FieldError::invalid(at, id, detail));
}

/// The name of an extended resource, which needs a domain that is not Kubernetes' own.
pub(super) fn is_extended_resource(name: &str) -> bool {
    const QUOTA: &str = "requests.";
    let native = !name.contains('/') || name.contains("kubernetes.io/");
    !native && !name.starts_with(QUOTA) && label_key_problems(&format!("{QUOTA}{name}")).is_empty()
}

/// A resource that nodes have without extensions, and that devices can stand for. Storage is none of these.
pub(super) fn is_node_allocatable(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}

/// Whether code takes a text for the name of an attribute with its domain; capitals in it are no matter there.
pub(super) fn is_fully_qualified(name: &str) -> bool {
    let is_domain = |domain: &str| {
        let lower = domain.to_lowercase();
        domain.len() <= limits::DRIVER_NAME && subdomain_problems(&lower).is_empty()
    };
    match name.split_once('/') {
        Some((domain, id)) => is_domain(domain) && format::identifier(id, &FieldPath::new("")).is_empty(),
        None => false,
    }
}

fn domain_and_id(
    name: &str,
    check_domain: impl Fn(&str, &FieldPath<'_>, &mut Findings),
    at: &FieldPath<'_>,
    findings: &mut Findings,
) {
    match name.split_once('/') {
        None => findings.extend(format::identifier(name, at)),
        Some((_, id)) if id.contains('/') => findings.push(FieldError::invalid(at, name, SEVERAL_SLASHES)),
        Some((domain, id)) => {
            if domain.is_empty() {
                findings.push(FieldError::invalid(at, "", "the domain must not be empty"));
            } else {
                check_domain(domain, at, findings);
            }
            if id.is_empty() {
                findings.push(FieldError::invalid(at, "", "the name must not be empty"));
            } else {
                findings.extend(format::identifier(id, at));
            }
        }
    }
}

fn domain(name: &str, at: &FieldPath<'_>, findings: &mut Findings) {
    if name.len() > limits::DRIVER_NAME {
        findings.push(FieldError::too_long(at, limits::DRIVER_NAME));
    }
    subdomain(name, at, findings);
}

fn invalid(value: &str, problems: impl IntoIterator<Item = String>, at: &FieldPath<'_>, findings: &mut Findings) {
    for problem in problems {
        findings.push(FieldError::invalid(at, value, problem));
    }
}

fn too_long(text: &str, max: usize) -> Option<String> {
    (text.len() > max).then(|| format!("must be no more than {max} bytes"))
}

/// What is wrong with the key of a label.
pub(super) fn label_key_problems(key: &str) -> Vec<String> {
    let (prefix, name) = match key.split_once('/') {
        None => (None, key),
        Some((_, name)) if name.contains('/') => {
            return vec![format!(
                "a valid label key {LABEL_NAME} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
        Some((prefix, name)) => (Some(prefix), name),
    };
    let mut problems = Vec::new();
    match prefix {
        Some("") => problems.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => {
            problems.extend(subdomain_problems(prefix).into_iter().map(|problem| format!("prefix part {problem}")));
        }
        None => {}
    }
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    }
    problems.extend(too_long(name, limits::LABEL_NAME).map(|problem| format!("name part {problem}")));
    if !is_label_text(name) {
        problems.push(format!("name part {LABEL_NAME}"));
    }
    problems
}

fn is_label_text(text: &str) -> bool {
    let inner = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.');
    let outer = |c: Option<u8>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    outer(text.bytes().next()) && outer(text.bytes().last()) && text.bytes().all(inner)
}

/// Reads the forms of a UUID, which differ in length: plain, in braces, as a URN, and without dashes.
fn uuid_form(id: &str) -> Result<(), String> {
    let fits = match id.len() {
        36 => has_groups(id),
        38 => match id.strip_prefix('{').and_then(|id| id.strip_suffix('}')) {
            Some(id) => has_groups(id),
            None => return Err("invalid bracketed UUID format".to_owned()),
        },
        45 => match id.split_at_checked(9) {
            Some((prefix, id)) if prefix.eq_ignore_ascii_case("urn:uuid:") => has_groups(id),
            other => return Err(format!("invalid urn prefix: {}", Quoted(other.unwrap_or_default().0))),
        },
        32 => is_hex(id),
        length => return Err(format!("invalid UUID length: {length}")),
    };
    if fits { Ok(()) } else { Err("invalid UUID format".to_owned()) }
}

fn has_groups(id: &str) -> bool {
    const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
    id.split('-').map(str::len).eq(GROUPS) && id.split('-').all(is_hex)
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|c| c.is_ascii_hexdigit())
}
