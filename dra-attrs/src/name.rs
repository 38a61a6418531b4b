//! Names of attributes and capacities, and their look-up on a device.
//!
//! A key of a device's attributes or capacities is a *qualified name*: `id`, or `domain/id`. A bare id belongs to the
//! domain of the device's driver. Constraints and selectors use *fully qualified names*, which always have the domain.
//!
//! Source of the rules: `QualifiedName` and `FullyQualifiedName` of `resource.k8s.io/v1`, and the look-up of
//! kube-scheduler's allocator.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::dns::has_labels;

const MAX_DOMAIN_LEN: usize = QualifiedName::MAX_DOMAIN_LEN;
const MAX_ID_LEN: usize = QualifiedName::MAX_ID_LEN;

/// Reason that a text is not a qualified name (`id` or `domain/id`), or not a fully qualified one (`domain/id`).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// The domain before the slash is empty.
    #[error("attribute name {name:?}: the domain must not be empty")]
    EmptyDomain {
        /// The invalid name.
        name: String,
    },
    /// The name is empty, or nothing follows its slash.
    #[error("attribute name {name:?}: the name must not be empty")]
    EmptyId {
        /// The invalid name.
        name: String,
    },
    /// The name has no slash, although it must be fully qualified.
    #[error("attribute name {name:?}: must be fully qualified, domain/name")]
    MissingDomain {
        /// The invalid name.
        name: String,
    },
    /// The name has more than one slash.
    #[error("attribute name {name:?}: must not contain more than one slash")]
    SeveralSlashes {
        /// The invalid name.
        name: String,
    },
    /// The domain has more than [`QualifiedName::MAX_DOMAIN_LEN`] bytes.
    #[error("attribute name {name:?}: the domain has {len} bytes, more than {MAX_DOMAIN_LEN}")]
    DomainTooLong {
        /// The invalid name.
        name: String,
        /// Length of the domain, in bytes.
        len: usize,
    },
    /// The id has more than [`QualifiedName::MAX_ID_LEN`] bytes.
    #[error("attribute name {name:?}: the name has {len} bytes, more than {MAX_ID_LEN}")]
    IdTooLong {
        /// The invalid name.
        name: String,
        /// Length of the id, in bytes.
        len: usize,
    },
    /// The domain is not a DNS-1123 subdomain.
    #[error("attribute name {name:?}: the domain must be a lowercase DNS subdomain (RFC 1123)")]
    InvalidDomain {
        /// The invalid name.
        name: String,
    },
    /// The id is not a C identifier.
    #[error(
        "attribute name {name:?}: the name must be a C identifier (letters, digits, '_', not starting with a digit)"
    )]
    InvalidId {
        /// The invalid name.
        name: String,
    },
}

/// Key of a device's attributes or capacities: `id` or `domain/id`.
///
/// ```
/// use dra_attrs::internal::QualifiedName;
/// let name = QualifiedName::parse("dra.cpu/numaNodeID")?;
/// assert_eq!(name.domain(), Some("dra.cpu"));
/// assert_eq!(name.id(), "numaNodeID");
///
/// let bare = QualifiedName::parse("numa")?;
/// assert_eq!(bare.domain(), None);
/// assert!(QualifiedName::parse("GPU.com/x").is_err());
/// # Ok::<(), dra_attrs::NameError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct QualifiedName<'a> {
    domain: Option<&'a str>,
    id: &'a str,
}

impl<'a> QualifiedName<'a> {
    /// Largest length of the domain, in bytes.
    pub const MAX_DOMAIN_LEN: usize = 63;

    /// Largest length of the id, in bytes.
    pub const MAX_ID_LEN: usize = 32;

    /// Parses and validates a qualified name: `id` or `domain/id`.
    ///
    /// # Errors
    /// The first violated rule, in the order slashes, domain, id.
    pub fn parse(name: &'a str) -> Result<Self, NameError> {
        let (domain, id) = match name.split_once('/') {
            None => (None, name),
            Some((_, id)) if id.contains('/') => return Err(NameError::SeveralSlashes { name: name.to_owned() }),
            Some((domain, id)) => (Some(domain), id),
        };
        if let Some(domain) = domain {
            check_domain(name, domain)?;
        }
        check_id(name, id)?;
        Ok(Self { domain, id })
    }

    /// Returns the domain: the part before the slash. `None` without a slash.
    #[must_use]
    pub const fn domain(self) -> Option<&'a str> {
        self.domain
    }

    /// Returns the id: the part after the slash, or the whole name without a slash.
    #[must_use]
    pub const fn id(self) -> &'a str {
        self.id
    }
}

impl fmt::Display for QualifiedName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.domain {
            Some(domain) => write!(f, "{domain}/{}", self.id),
            None => f.write_str(self.id),
        }
    }
}

/// Name with its domain, as constraints use it: `resource.kubernetes.io/numaNode`.
///
/// ```
/// use dra_attrs::{FullyQualifiedName, NameError};
/// let name = FullyQualifiedName::parse("resource.kubernetes.io/numaNode")?;
/// assert_eq!((name.domain(), name.id()), ("resource.kubernetes.io", "numaNode"));
/// assert!(matches!(FullyQualifiedName::parse("numaNode"), Err(NameError::MissingDomain { .. })));
/// # Ok::<(), NameError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct FullyQualifiedName<'a> {
    domain: &'a str,
    id: &'a str,
}

impl<'a> FullyQualifiedName<'a> {
    /// Parses and validates a fully qualified name: `domain/id`.
    ///
    /// # Errors
    /// The errors of [`QualifiedName::parse`], and [`NameError::MissingDomain`].
    pub fn parse(name: &'a str) -> Result<Self, NameError> {
        let QualifiedName { domain, id } = QualifiedName::parse(name)?;
        let domain = domain.ok_or_else(|| NameError::MissingDomain { name: name.to_owned() })?;
        Ok(Self { domain, id })
    }

    /// Returns the domain: the part before the slash.
    #[must_use]
    pub const fn domain(self) -> &'a str {
        self.domain
    }

    /// Returns the id: the part after the slash.
    #[must_use]
    pub const fn id(self) -> &'a str {
        self.id
    }
}

impl fmt::Display for FullyQualifiedName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.domain, self.id)
    }
}

/// Looks up an attribute or capacity on a device of `driver` by the name that a constraint uses.
///
/// An entry under the exact name is preferred. Otherwise a name in the driver's own domain also finds the entry under
/// the bare id. A name in another domain, such as the standard one, is found only under its full key. The name is not
/// checked: an invalid one finds nothing, as in kube-scheduler.
///
/// Takes at most two map look-ups and allocates nothing.
///
/// ```
/// use std::collections::BTreeMap;
/// use dra_attrs::lookup_by_name;
///
/// let attributes = BTreeMap::from([("numaNode".to_owned(), 1), ("resource.kubernetes.io/numaNode".to_owned(), 2)]);
/// assert_eq!(lookup_by_name(&attributes, "gpu.amd.com/numaNode", "gpu.amd.com"), Some(&1));
/// assert_eq!(lookup_by_name(&attributes, "resource.kubernetes.io/numaNode", "gpu.amd.com"), Some(&2));
/// assert_eq!(lookup_by_name(&attributes, "gpu.amd.com/numaNode", "dra.net"), None);
/// ```
#[must_use]
pub fn lookup_by_name<'m, V>(entries: &'m BTreeMap<String, V>, name: &str, driver: &str) -> Option<&'m V> {
    entries.get(name).or_else(|| match name.split_once('/') {
        Some((domain, id)) if domain == driver => entries.get(id),
        _ => None,
    })
}

fn check_domain(name: &str, domain: &str) -> Result<(), NameError> {
    let name = || name.to_owned();
    if domain.is_empty() {
        return Err(NameError::EmptyDomain { name: name() });
    }
    if domain.len() > MAX_DOMAIN_LEN {
        return Err(NameError::DomainTooLong { name: name(), len: domain.len() });
    }
    if !has_labels(domain) {
        return Err(NameError::InvalidDomain { name: name() });
    }
    Ok(())
}

fn check_id(name: &str, id: &str) -> Result<(), NameError> {
    let name = || name.to_owned();
    if id.is_empty() {
        return Err(NameError::EmptyId { name: name() });
    }
    if id.len() > MAX_ID_LEN {
        return Err(NameError::IdTooLong { name: name(), len: id.len() });
    }
    if !is_identifier(id) {
        return Err(NameError::InvalidId { name: name() });
    }
    Ok(())
}

/// Returns true if the text has the form of a C identifier. Does not check its length.
pub(crate) fn is_identifier(id: &str) -> bool {
    let starts_well = id.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    starts_well && id.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_')
}
