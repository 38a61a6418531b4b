//! The forms of names.

use crate::dns::{
    MAX_LABEL_LEN, MAX_SUBDOMAIN_LEN, caseless_subdomain_problems, declared_label_problems,
    declared_subdomain_problems, label_problems, subdomain_problems,
};
use crate::field::{FieldErrors, FieldPath};
use crate::{format, label};

/// Form that the API server requires of a name, with its messages.
///
/// It has many rules twice: written in code, and declared on types (`+k8s:format=`). The messages differ in the unit of
/// the length; the first six formats have those of the code, the others those of the declared rules.
///
/// Source: `k8s.io/apimachinery/pkg/util/validation` and `pkg/api/validate`, Kubernetes 1.37.
///
/// ```
/// use dra_attrs::{FieldPath, NameFormat};
/// assert!(NameFormat::Subdomain.problems("gpu.example.com").is_empty());
/// assert_eq!(NameFormat::LabelKey.problems("/MyName"), ["prefix part must be non-empty"]);
/// assert_eq!(NameFormat::Label.problems(&"a".repeat(64)), ["must be no more than 63 characters"]);
/// let errors = NameFormat::ShortName.check("gpu.0", &FieldPath::new("name"));
/// assert_eq!(errors.to_string(), "name: Invalid value: \"gpu.0\": must not contain dots");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameFormat {
    /// A DNS label (RFC 1123), such as the name of a device.
    Label,
    /// A DNS subdomain, labels joined by dots: the name of an object or a node.
    Subdomain,
    /// The key of a label: `name` or `domain/name`.
    LabelKey,
    /// The part of a label's key before the slash.
    LabelKeyPrefix,
    /// The part of a label's key after the slash.
    LabelKeyName,
    /// The value of a label or taint; may be empty.
    LabelValue,
    /// `k8s-short-name`: a DNS label, such as the name of a counter set.
    ShortName,
    /// `k8s-long-name`: a DNS subdomain, such as the name of a node.
    LongName,
    /// `k8s-long-name-caseless`: a DNS subdomain that may have upper case, such as the name of a driver.
    LongNameCaseless,
    /// `k8s-resource-pool-name`: DNS subdomains joined by slashes. Each invalid segment is an error of its own.
    PoolName,
    /// `k8s-resource-fully-qualified-name`: the name of an attribute with its domain. As in Kubernetes, a text with
    /// several slashes passes; [`FullyQualifiedName`](crate::FullyQualifiedName) rejects it.
    QualifiedAttribute,
    /// `k8s-extended-resource-name`: the key of a label with a domain other than `kubernetes.io`, short enough to stand
    /// after `requests.` in a quota.
    ExtendedResource,
    /// `k8s-uuid`: a UUID in lower case, such as the ID of a share.
    Uuid,
    /// The id of an attribute or a capacity: a C identifier of at most 32 bytes.
    Identifier,
}

impl NameFormat {
    /// Largest length of a DNS label, in bytes.
    pub const MAX_LABEL_LEN: usize = MAX_LABEL_LEN;

    /// Largest length of a DNS subdomain, in bytes.
    pub const MAX_SUBDOMAIN_LEN: usize = MAX_SUBDOMAIN_LEN;

    /// Returns the API server's messages for a text that is not of this form; empty if it is.
    #[must_use]
    pub fn problems(self, text: &str) -> Vec<String> {
        match self {
            Self::Label => label_problems(text),
            Self::Subdomain => subdomain_problems(text),
            Self::LabelKey => label::key_problems(text),
            Self::LabelKeyPrefix => label::prefix_problems(text),
            Self::LabelKeyName => label::name_problems(text),
            Self::LabelValue => label::value_problems(text),
            Self::ShortName => declared_label_problems(text),
            Self::LongName => declared_subdomain_problems(text),
            Self::LongNameCaseless => caseless_subdomain_problems(text),
            Self::ExtendedResource => format::extended_resource_name_problems(text),
            Self::Uuid => format::uuid_problems(text),
            Self::PoolName | Self::QualifiedAttribute | Self::Identifier => self.details(text),
        }
    }

    /// Returns the API server's errors for the text of a field that is not of this form; empty if it is.
    #[must_use]
    pub fn check(self, text: &str, at: &FieldPath<'_>) -> FieldErrors {
        match self {
            Self::PoolName => format::resource_pool_name(text, at),
            Self::QualifiedAttribute => format::resource_fully_qualified_name(text, at),
            Self::Identifier => format::identifier(text, at),
            _ => format::invalid(text, self.problems(text), at),
        }
    }

    /// Returns the messages of a form whose errors are of parts of the text, and so have other values.
    fn details(self, text: &str) -> Vec<String> {
        self.check(text, &FieldPath::root()).into_iter().map(|error| error.detail).collect()
    }
}
