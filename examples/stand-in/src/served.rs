//! Kinds and versions that a server of a release has: those that are on from the start, and those that a flag adds.

use dra_attrs::Profile;

use crate::kinds::{KINDS, Kind, RESOURCE};

/// Versions that a server is started with, as `--runtime-config` of kube-apiserver has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RuntimeConfig {
    parts: Vec<(String, bool)>,
}

/// Reads `resource.k8s.io/v1beta1=true,api/all=true`. Groups that the server does not have are passed over.
///
/// # Errors
/// A part is no assignment.
pub(crate) fn runtime_config(text: &str) -> Result<RuntimeConfig, String> {
    let part = |part: &str| {
        let (name, value) = part.split_once('=').unwrap_or((part, "true"));
        let is_on = value.parse().map_err(|_| format!("{part:?}: neither true nor false"))?;
        Ok((name.to_owned(), is_on))
    };
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    Ok(RuntimeConfig { parts: parts.map(part).collect::<Result<_, String>>()? })
}

impl RuntimeConfig {
    /// Returns true if a version of the group is on. The last part that names it decides.
    fn has(&self, version: &str) -> bool {
        let stage = if version.contains("alpha") {
            "api/alpha"
        } else if version.contains("beta") {
            "api/beta"
        } else {
            "api/ga"
        };
        let name = format!("{RESOURCE}/{version}");
        let named = self.parts.iter().rev().find(|(part, _)| *part == name || part == stage || part == "api/all");
        named.map_or(version == "v1", |(_, is_on)| *is_on)
    }
}

/// Kinds in the versions that the server has, in the order of discovery.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    kinds: Vec<&'static Kind>,
    profile: Profile,
}

impl Served {
    pub(crate) fn new(profile: Profile, config: &RuntimeConfig) -> Self {
        let is_served = |kind: &&Kind| {
            kind.group != RESOURCE
                || profile.versions_of(kind.name).contains(&kind.version)
                    // Requests have one version, which is no reason to need a flag here.
                    && (config.has(kind.version) || kind.name == "ResourcePoolStatusRequest")
        };
        Self { kinds: KINDS.iter().filter(is_served).collect(), profile }
    }

    pub(crate) fn kinds(&self) -> impl Iterator<Item = &'static Kind> {
        self.kinds.iter().copied()
    }

    pub(crate) const fn profile(&self) -> Profile {
        self.profile
    }

    /// Returns the kind at a place of the API.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&'static Kind> {
        self.of_version(group, version).find(|kind| kind.plural == plural)
    }

    /// Returns the kinds of a version of a group.
    pub(crate) fn of_version(&self, group: &str, version: &str) -> impl Iterator<Item = &'static Kind> {
        self.kinds().filter(move |kind| (kind.group, kind.version) == (group, version))
    }

    /// Returns the groups with the versions of each, the preferred one first.
    pub(crate) fn versions(&self) -> Vec<(&'static str, Vec<&'static str>)> {
        let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
        for kind in self.kinds() {
            match groups.iter_mut().find(|(group, _)| *group == kind.group) {
                Some((_, versions)) if versions.contains(&kind.version) => {}
                Some((_, versions)) => versions.push(kind.version),
                None => groups.push((kind.group, vec![kind.version])),
            }
        }
        groups
    }
}
