//! Versions of objects: which of two states of one object is the later one, and which object a deletion is about.
//!
//! A watch shows the states of an object in order. A program with two sources (a watch and the answers to its own calls, or
//! two watches) may see an older state after a newer one, and the deletion of an object after the creation of the next one of
//! its name.
//!
//! Source: KEP-5504, by which the resource versions of one kind compare as numbers; UIDs tell objects of one name apart.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Answer to an event about one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApplyOutcome {
    /// The object is now known as the event has it, or is gone.
    Applied,
    /// The object is known in a newer version. Nothing has changed.
    Older,
    /// The deletion is that of a former object: the known one of its name has another UID. Nothing has changed.
    OtherObject,
    /// The deletion is that of an object that is not known. Nothing has changed.
    Unknown,
}

/// Version of an object or of a list. One that is not known is neither older nor newer than any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceVersion(Option<u128>);

impl ResourceVersion {
    /// Returns the version of an object.
    #[must_use]
    pub fn of(metadata: &ObjectMeta) -> Self {
        Self::parse(metadata.resource_version.as_deref())
    }

    /// Returns the version that a text says; an empty or unusual one is not known.
    #[must_use]
    pub fn parse(text: Option<&str>) -> Self {
        Self(text.and_then(|text| text.parse().ok()))
    }

    /// Returns true if both are known and this one is older.
    #[must_use]
    pub fn is_older_than(self, other: Self) -> bool {
        self.0.zip(other.0).is_some_and(|(own, other)| own < other)
    }

    /// Returns true if both are known and this one is newer.
    #[must_use]
    pub fn is_newer_than(self, other: Self) -> bool {
        other.is_older_than(self)
    }

    /// Returns true if `object` is known to be an older state of `known`, an object of the same name: it has the same UID and a
    /// lower version. A version that is not known is not older; an object with another UID is another object.
    ///
    /// ```
    /// use dra_device::internal::ResourceVersion;
    /// use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    ///
    /// let state = |uid: &str, version: &str| ObjectMeta {
    ///     uid: Some(uid.to_owned()),
    ///     resource_version: Some(version.to_owned()),
    ///     ..ObjectMeta::default()
    /// };
    /// assert!(ResourceVersion::is_older(&state("1", "9"), &state("1", "10")));
    /// assert!(!ResourceVersion::is_older(&state("2", "9"), &state("1", "10")));
    /// assert!(!ResourceVersion::is_older(&state("1", "?"), &state("1", "10")));
    /// ```
    #[must_use]
    pub fn is_older(object: &ObjectMeta, known: &ObjectMeta) -> bool {
        uid_of(object) == uid_of(known) && Self::of(object).is_older_than(Self::of(known))
    }

    /// Returns true if a deletion that names `uid` is that of the object `known`. It is not if the UIDs differ; a UID that is
    /// not known on either side tells nothing.
    ///
    /// ```
    /// use dra_device::internal::ResourceVersion;
    /// use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    ///
    /// let known = ObjectMeta { uid: Some("2".to_owned()), ..ObjectMeta::default() };
    /// assert!(ResourceVersion::is_deleted_by(&known, Some("2")) && ResourceVersion::is_deleted_by(&known, None));
    /// assert!(!ResourceVersion::is_deleted_by(&known, Some("1")));
    /// ```
    #[must_use]
    pub fn is_deleted_by(known: &ObjectMeta, uid: Option<&str>) -> bool {
        let (known, uid) = (uid_of(known), uid.unwrap_or_default());
        known.is_empty() || uid.is_empty() || known == uid
    }
}

fn uid_of(metadata: &ObjectMeta) -> &str {
    metadata.uid.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(uid: Option<&str>, version: Option<&str>) -> ObjectMeta {
        let [uid, resource_version] = [uid, version].map(|text| text.map(str::to_owned));
        ObjectMeta { uid, resource_version, ..ObjectMeta::default() }
    }

    #[test]
    fn states_of_one_object_compare_by_number() {
        let large = "340282366920938463463374607431768211455";
        let rows = [
            (Some("9"), Some("10"), true),
            (Some("10"), Some("9"), false),
            (Some("10"), Some("10"), false),
            (Some("10"), Some(large), true),
            (None, Some("10"), false),
            (Some("10"), None, false),
            (Some("nine"), Some("10"), false),
            (Some("-9"), Some("10"), false),
        ];
        for (version, known, older) in rows {
            for uid in [None, Some("1")] {
                assert_eq!(
                    ResourceVersion::is_older(&state(uid, version), &state(uid, known)),
                    older,
                    "{version:?} {known:?}"
                );
            }
            assert!(!ResourceVersion::is_older(&state(Some("2"), version), &state(Some("1"), known)), "another object");
        }
    }

    #[test]
    fn a_deletion_is_that_of_its_uid() {
        let rows = [
            (Some("1"), Some("1"), true),
            (Some("2"), Some("1"), false),
            (Some("2"), None, true),
            (None, Some("1"), true),
            (None, None, true),
        ];
        for (known, uid, is_it) in rows {
            assert_eq!(ResourceVersion::is_deleted_by(&state(known, None), uid), is_it, "{known:?} {uid:?}");
        }
    }
}
