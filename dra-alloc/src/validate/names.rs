//! Validation of names, keys and IDs.

use dra_attrs::dns::{label_problems, subdomain_problems};
use dra_attrs::{FieldError, FieldPath, Quoted, format};

use super::context::ValidationContext;
use super::limits;

const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
                           and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or \
                           '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const LABEL_NAME: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                          alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation \
                          is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const SEVERAL_SLASHES: &str = "must not contain more than one slash";
const NOT_FULLY_QUALIFIED: &str = "a fully qualified name must be a domain and a name separated by a slash";

/// Checks the name of a driver. Upper case is allowed; [`super::ApiServer::validate_slice`] warns about it.
pub(super) fn driver(name: &str, at: &FieldPath<'_>, context: &mut ValidationContext) {
    if name.is_empty() {
        return context.push(FieldError::required(at, ""));
    }
    if name.len() > limits::DRIVER_NAME {
        context.push(FieldError::too_long(at, limits::DRIVER_NAME));
    }
    invalid(name, subdomain_problems(&name.to_lowercase()), at, context);
}

/// Checks the name of a pool: DNS subdomains with slashes between them.
pub(super) fn pool(name: &str, at: &FieldPath<'_>, context: &mut ValidationContext) {
    if name.is_empty() {
        return context.push(FieldError::required(at, ""));
    }
    if name.len() > limits::POOL_NAME {
        context.push(FieldError::too_long(at, limits::POOL_NAME));
    }
    name.split('/').for_each(|part| subdomain(part, at, context));
}

/// Checks the name of a device, request, counter or counter set: a DNS label.
pub(super) fn label(name: &str, at: &FieldPath<'_>, context: &mut ValidationContext) {
    invalid(name, label_problems(name), at, context);
}

/// Checks the name of an object or node: a DNS subdomain.
pub(super) fn subdomain(name: &str, at: &FieldPath<'_>, context: &mut ValidationContext) {
    invalid(name, subdomain_problems(name), at, context);
}

/// Checks the name of an attribute or capacity: an identifier, optionally after `domain/`. The domain has the form of a
/// driver's name.
pub(super) fn qualified(name: &str, at: &FieldPath<'_>, context: &mut ValidationContext) {
    domain_and_id(name, driver, at, context);
}

/// Checks the name of an attribute in a constraint: `domain/identifier`, with the domain in lower case.
pub(super) fn fully_qualified(name: &str, at: &FieldPath<'_>, context: &mut ValidationContext) {
    domain_and_id(name, domain, at, context);
    if !name.contains('/') {
        context.push(FieldError::invalid(at, name, NOT_FULLY_QUALIFIED));
    }
}

/// Checks a name of the form `domain/identifier` by the declarative rule of the API types. Its messages differ from
/// those of [`fully_qualified`], and it accepts names with several slashes.
pub(super) fn declared_fully_qualified(name: &str, at: &FieldPath<'_>, context: &mut ValidationContext) {
    context.extend(format::resource_fully_qualified_name(name, at));
}

/// Checks the key of a label or taint, or the type of a condition.
pub(super) fn label_key(key: &str, at: &FieldPath<'_>, context: &mut ValidationContext) {
    invalid(key, label_key_problems(key), at, context);
}

/// Checks the value of a label or taint.
pub(super) fn label_value(value: &str, at: &FieldPath<'_>, context: &mut ValidationContext) {
    let long = too_long(value, limits::LABEL_VALUE);
    let malformed = !value.is_empty() && !is_label_text(value);
    invalid(value, long.into_iter().chain(malformed.then(|| LABEL_VALUE.to_owned())), at, context);
}

/// Checks the ID of a share: a UUID in lower case.
pub(super) fn uuid(id: &str, at: &FieldPath<'_>, context: &mut ValidationContext) {
    const FORM: &str = "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase \
                        hexadecimal characters";
    let detail = match uuid_form(id) {
        Ok(()) if has_groups(id) && id == id.to_lowercase() => return,
        Ok(()) => FORM.to_owned(),
        Err(problem) => format!("error validating uid: {problem}"),
    };
    context.push(FieldError::invalid(at, id, detail));
}

/// Returns true for the name of an extended resource: it has a domain, and does not contain `kubernetes.io/`, as in
/// Kubernetes.
pub(super) fn is_extended_resource(name: &str) -> bool {
    const QUOTA: &str = "requests.";
    let native = !name.contains('/') || name.contains("kubernetes.io/");
    !native && !name.starts_with(QUOTA) && label_key_problems(&format!("{QUOTA}{name}")).is_empty()
}

/// Returns true for a native node resource that a device can account for: CPU, memory and huge pages, but not ephemeral
/// storage.
pub(super) fn is_node_allocatable(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}

/// Returns true if the hand-written validation of Kubernetes accepts a text as `domain/identifier`. Case does not
/// matter.
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
    check_domain: impl Fn(&str, &FieldPath<'_>, &mut ValidationContext),
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    match name.split_once('/') {
        None => context.extend(format::identifier(name, at)),
        Some((_, id)) if id.contains('/') => context.push(FieldError::invalid(at, name, SEVERAL_SLASHES)),
        Some((domain, id)) => {
            if domain.is_empty() {
                context.push(FieldError::invalid(at, "", "the domain must not be empty"));
            } else {
                check_domain(domain, at, context);
            }
            if id.is_empty() {
                context.push(FieldError::invalid(at, "", "the name must not be empty"));
            } else {
                context.extend(format::identifier(id, at));
            }
        }
    }
}

fn domain(name: &str, at: &FieldPath<'_>, context: &mut ValidationContext) {
    if name.len() > limits::DRIVER_NAME {
        context.push(FieldError::too_long(at, limits::DRIVER_NAME));
    }
    subdomain(name, at, context);
}

fn invalid(
    value: &str,
    problems: impl IntoIterator<Item = String>,
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    for problem in problems {
        context.push(FieldError::invalid(at, value, problem));
    }
}

fn too_long(text: &str, max: usize) -> Option<String> {
    (text.len() > max).then(|| format!("must be no more than {max} bytes"))
}

/// Returns the rules that the key of a label breaks.
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

/// Checks that a text is a UUID in one of the four forms that Go's library reads: plain, in braces, as a URN, or
/// without dashes.
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
