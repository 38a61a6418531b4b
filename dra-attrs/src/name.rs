//! Names of attributes and capacities, and how a name is looked up on a device.
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

/// The domain that is reserved for standard attributes.
pub const STANDARD_DOMAIN: &str = "resource.kubernetes.io";

/// The longest domain of a qualified name, in bytes.
pub const MAX_DOMAIN_LEN: usize = 63;

/// The longest id of a qualified name, in bytes.
pub const MAX_ID_LEN: usize = 32;

/// Why a text is not a (fully) qualified name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// Nothing stands before the slash.
    #[error("attribute name {name:?}: the domain must not be empty")]
    EmptyDomain {
        /// The whole name.
        name: String,
    },
    /// Nothing stands after the slash, or the name is empty.
    #[error("attribute name {name:?}: the name must not be empty")]
    EmptyId {
        /// The whole name.
        name: String,
    },
    /// A fully qualified name has no slash.
    #[error("attribute name {name:?}: must be fully qualified, domain/name")]
    MissingDomain {
        /// The whole name.
        name: String,
    },
    /// The name has more than one slash.
    #[error("attribute name {name:?}: must not contain more than one slash")]
    SeveralSlashes {
        /// The whole name.
        name: String,
    },
    /// The domain has more than [`MAX_DOMAIN_LEN`] bytes.
    #[error("attribute name {name:?}: the domain has {len} bytes, more than {MAX_DOMAIN_LEN}")]
    DomainTooLong {
        /// The whole name.
        name: String,
        /// Bytes of the domain.
        len: usize,
    },
    /// The id has more than [`MAX_ID_LEN`] bytes.
    #[error("attribute name {name:?}: the name has {len} bytes, more than {MAX_ID_LEN}")]
    IdTooLong {
        /// The whole name.
        name: String,
        /// Bytes of the id.
        len: usize,
    },
    /// The domain is not a DNS-1123 subdomain.
    #[error("attribute name {name:?}: the domain must be a lowercase DNS subdomain (RFC 1123)")]
    InvalidDomain {
        /// The whole name.
        name: String,
    },
    /// The id is not a C identifier.
    #[error(
        "attribute name {name:?}: the name must be a C identifier (letters, digits, '_', not starting with a digit)"
    )]
    InvalidId {
        /// The whole name.
        name: String,
    },
}

/// A key of a device's attributes or capacities: `id` or `domain/id`.
///
/// ```
/// use dra_attrs::name::QualifiedName;
/// let name = QualifiedName::parse("dra.cpu/numaNodeID")?;
/// assert_eq!(name.domain(), Some("dra.cpu"));
/// assert_eq!(name.id(), "numaNodeID");
///
/// let bare = QualifiedName::parse("numa")?;
/// assert_eq!(bare.domain_or("gpu.nvidia.com"), "gpu.nvidia.com");
/// assert!(QualifiedName::parse("GPU.com/x").is_err());
/// # Ok::<(), dra_attrs::name::NameError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct QualifiedName<'a> {
    domain: Option<&'a str>,
    id: &'a str,
}

impl<'a> QualifiedName<'a> {
    /// Reads and checks a name.
    ///
    /// # Errors
    /// The first rule that the name breaks, in the order slashes, domain, id.
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

    /// The part before the slash.
    #[must_use]
    pub const fn domain(self) -> Option<&'a str> {
        self.domain
    }

    /// The part after the slash, or all of it.
    #[must_use]
    pub const fn id(self) -> &'a str {
        self.id
    }

    /// The domain, which is the driver's where the name has none.
    #[must_use]
    pub fn domain_or(self, driver: &'a str) -> &'a str {
        self.domain.unwrap_or(driver)
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

/// A name with its domain, as constraints use it: `resource.kubernetes.io/numaNode`.
///
/// ```
/// use dra_attrs::name::{FullyQualifiedName, NameError};
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
    /// Reads and checks a name.
    ///
    /// # Errors
    /// As [`QualifiedName::parse`], and [`NameError::MissingDomain`].
    pub fn parse(name: &'a str) -> Result<Self, NameError> {
        let QualifiedName { domain, id } = QualifiedName::parse(name)?;
        let domain = domain.ok_or_else(|| NameError::MissingDomain { name: name.to_owned() })?;
        Ok(Self { domain, id })
    }

    /// The part before the slash.
    #[must_use]
    pub const fn domain(self) -> &'a str {
        self.domain
    }

    /// The part after the slash.
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

/// Finds the entry that a constraint's name means on a device of `driver`.
///
/// The explicit key wins; otherwise a name in the driver's own domain also finds the bare id. A name of another domain,
/// such as the standard one, is found only under its full key. The name is taken as it is: an invalid one finds
/// nothing, as in kube-scheduler.
///
/// Costs at most two map look-ups and no allocation.
///
/// ```
/// use std::collections::BTreeMap;
/// use dra_attrs::name::lookup;
///
/// let attributes = BTreeMap::from([("numaNode".to_owned(), 1), ("resource.kubernetes.io/numaNode".to_owned(), 2)]);
/// assert_eq!(lookup(&attributes, "gpu.amd.com/numaNode", "gpu.amd.com"), Some(&1));
/// assert_eq!(lookup(&attributes, "resource.kubernetes.io/numaNode", "gpu.amd.com"), Some(&2));
/// assert_eq!(lookup(&attributes, "gpu.amd.com/numaNode", "dra.net"), None);
/// ```
#[must_use]
pub fn lookup<'m, V>(entries: &'m BTreeMap<String, V>, name: &str, driver: &str) -> Option<&'m V> {
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

/// Whether a text has the characters of a C identifier; its length is not looked at.
pub(crate) fn is_identifier(id: &str) -> bool {
    let starts_well = id.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    starts_well && id.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_')
}
