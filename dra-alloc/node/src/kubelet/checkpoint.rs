//! Checkpoint file `dra_manager_state`, which preserves the claim cache of a kubelet across restarts (KEP-5945, Kubelet
//! Changes 2).
//!
//! ```json
//! {"Data": "{\"kind\":\"DRACheckpoint\",\"apiVersion\":\"checkpoint.dra.kubelet.k8s.io/v1\",\"ClaimInfoStateList\":[…]}",
//!  "Checksum": 2361995144}
//! ```
//!
//! The checksum is the CRC-32 of the text in `Data`. A kubelet that does not know `SkipNodeOperations` can read the
//! file, and drops the field when it next writes the file. A file without the field skips nothing. The file does not
//! record that a claim is prepared: drivers are called again after a restart.
//!
//! [`ClaimCache::from_checkpoint`] ignores unknown keys and the case of keys, as Go does. It accepts
//! `SkipNodeOperations` as bool and as list; [`ClaimCache::to_checkpoint`] writes the form of the profile. Another kind or
//! version than the one above is refused: what it has beyond this version would be lost when the file is written.
//!
//! Source of the rules: `pkg/kubelet/cm/dra/state` of Kubernetes 1.37.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use dra_attrs::Profile;
use dra_attrs::internal::release::CheckpointShares;
use dra_device::claims::ClaimKey;
use dra_device::skip::{SkipDeclaration, SkipSet, WireForm};
use serde::Serialize;
use serde_json::{Map, Value};

use super::claim_info::{ClaimCache, ClaimInfo, DriverState, PreparedDevice};

const KIND: &str = "DRACheckpoint";
const API_VERSION: &str = "checkpoint.dra.kubelet.k8s.io/v1";

/// Characters of strings that Go escapes though JSON does not require it.
const ESCAPED_BY_GO: [(char, &str); 5] =
    [('<', "\\u003c"), ('>', "\\u003e"), ('&', "\\u0026"), ('\u{2028}', "\\u2028"), ('\u{2029}', "\\u2029")];

/// Reason why a checkpoint file can't be used. An operator must drain the node and remove the file; the kubelet never
/// starts with an empty cache instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The file or its `Data` is not JSON, for example because it is truncated.
    #[error("checkpoint is corrupted: {part} is not JSON: {reason}")]
    NotJson {
        /// Part of the checkpoint that is not JSON: `file` or `Data`.
        part: &'static str,
        /// Message of the JSON parser.
        reason: String,
    },
    /// The file has the format of kubelets before 1.32, whose checksum is over a dump of Go structs.
    #[error("checkpoint is corrupted: it has the format of kubelets before 1.32 (keys version and entries)")]
    LegacyFormat,
    /// The checksum of `Data` differs from the one in the file.
    #[error("checkpoint is corrupted: the checksum of Data is {actual}, the file says {expected}")]
    Checksum {
        /// The checksum in the file.
        expected: u32,
        /// The checksum computed from `Data`.
        actual: u32,
    },
    /// A value has the wrong type.
    #[error("checkpoint is corrupted: {field}: {actual} instead of {expected}")]
    WrongType {
        /// Path of the value.
        field: String,
        /// The type that the value must have.
        expected: &'static str,
        /// The type of the value in the file.
        actual: &'static str,
    },
    /// The file is of another kind, or of a kubelet whose checkpoints have another version.
    #[error("checkpoint can't be read: {field} is {actual:?}, not {expected:?}; use the kubelet that wrote it")]
    OtherVersion {
        /// Name of the field: `kind` or `apiVersion`.
        field: &'static str,
        /// The only value that is read.
        expected: &'static str,
        /// The value in the file.
        actual: String,
    },
    /// An entry has no name of a claim.
    #[error("checkpoint is corrupted: {field}: no claim name")]
    NoName {
        /// Path of the entry.
        field: String,
    },
    /// Two entries of the file are for one claim, by name or by UID.
    #[error("checkpoint is corrupted: {field}: claim {claim} is there twice")]
    Duplicate {
        /// Path of the second entry.
        field: String,
        /// Namespace and name of the claim.
        claim: String,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct File {
    data: String,
    checksum: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    kind: &'static str,
    api_version: &'static str,
    #[serde(rename = "ClaimInfoStateList")]
    claims: Vec<Claim<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Claim<'a> {
    #[serde(rename = "ClaimUID")]
    uid: &'a str,
    #[serde(rename = "ClaimName")]
    name: &'a str,
    namespace: &'a str,
    #[serde(rename = "PodUIDs")]
    pod_uids: BTreeMap<&'a str, Map<String, Value>>,
    driver_state: BTreeMap<&'a str, Driver<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Driver<'a> {
    devices: Option<Vec<Device<'a>>>,
    #[serde(skip_serializing_if = "is_absent")]
    skip_node_operations: SkipDeclaration,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Device<'a> {
    #[serde(rename = "PoolName")]
    pool: &'a str,
    #[serde(rename = "DeviceName")]
    name: &'a str,
    #[serde(rename = "ShareID", skip_serializing_if = "ShareField::is_absent")]
    share_id: ShareField<'a>,
    request_names: Option<&'a [String]>,
    #[serde(rename = "CDIDeviceIDs")]
    cdi_device_ids: Option<&'a [String]>,
}

/// Field of a device for the id of its share.
#[derive(Serialize)]
#[serde(untagged)]
enum ShareField<'a> {
    /// The release does not know the field.
    Absent,
    /// The id, or `null`.
    Written(Option<&'a str>),
}

impl ShareField<'_> {
    const fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

fn is_absent(declaration: &SkipDeclaration) -> bool {
    *declaration == SkipDeclaration::Absent
}

impl ClaimCache {
    /// Returns the checkpoint text if it must be written to disk before the caller's next step, else `None`. A text is
    /// returned only once for each change.
    ///
    /// A kubelet that finds no file when it starts also writes one: use [`ClaimCache::to_checkpoint`] of the empty
    /// cache. (It has the list `[]` where kubelet's first file has `null`; both read as no claims.)
    ///
    /// ```
    /// use dra_node::kubelet::ClaimCache;
    /// use dra_attrs::Profile;
    /// let mut cache = ClaimCache::default();
    /// assert_eq!(cache.take_checkpoint(Profile::V1_37), None);
    /// assert!(cache.to_checkpoint(Profile::V1_37).contains("2361995144"));
    /// ```
    pub fn take_checkpoint(&mut self, profile: Profile) -> Option<String> {
        let due = std::mem::take(&mut self.write_due);
        due.then(|| self.to_checkpoint(profile))
    }

    /// Returns the text of the checkpoint, as Go writes it. The claims are sorted by namespace and name.
    #[must_use]
    pub fn to_checkpoint(&self, profile: Profile) -> String {
        let claims = self.claims.iter().map(|(key, info)| Claim::new(key, info, profile)).collect();
        let data = go_json(&Data { kind: KIND, api_version: API_VERSION, claims });
        let checksum = crc32fast::hash(data.as_bytes());
        go_json(&File { data, checksum })
    }

    /// Parses a checkpoint file. Every claim in it starts as not prepared.
    ///
    /// ```
    /// use dra_node::kubelet::{CheckpointError, ClaimCache};
    /// use dra_attrs::Profile;
    /// let file = ClaimCache::default().to_checkpoint(Profile::Kep);
    /// assert!(ClaimCache::from_checkpoint(file.as_bytes())?.claims().is_empty());
    /// let cut = ClaimCache::from_checkpoint(&file.as_bytes()[..20]).unwrap_err();
    /// assert!(matches!(cut, CheckpointError::NotJson { part: "file", .. }));
    /// # Ok::<(), CheckpointError>(())
    /// ```
    ///
    /// # Errors
    /// Returns the reason why the file can't be used. A damaged file never results in an empty cache.
    pub fn from_checkpoint(file: &[u8]) -> Result<Self, CheckpointError> {
        let file: Value = parse(file, "file")?;
        let file = Reader::new(&file, "");
        if file.is_legacy() {
            return Err(CheckpointError::LegacyFormat);
        }
        let data = file.field("Data").required_text()?;
        let expected = file.field("Checksum").checksum()?;
        let actual = crc32fast::hash(data.as_bytes());
        if expected != actual {
            return Err(CheckpointError::Checksum { expected, actual });
        }
        let data: Value = parse(data.as_bytes(), "Data")?;
        Reader::new(&data, "Data").required_object()?;
        let data = Reader::new(&data, "");
        data.check_text("kind", KIND)?;
        data.check_text("apiVersion", API_VERSION)?;
        let list = data.field("ClaimInfoStateList");
        if list.value.is_none() {
            // kubelet's first file has no list, and no file is without a kind.
            data.field("kind").required_text()?;
        }
        let (mut cache, mut uids) = (Self::default(), BTreeSet::new());
        for entry in list.elements()? {
            let (key, info) = entry.claim()?;
            let twice = |claim: String| CheckpointError::Duplicate { field: entry.path.clone(), claim };
            let is_new = info.uid.is_empty() || uids.insert(info.uid.clone());
            let uid = format!("with UID {}", info.uid);
            match cache.claims.entry(key) {
                Entry::Occupied(place) => return Err(twice(place.key().to_string())),
                Entry::Vacant(_) if !is_new => return Err(twice(uid)),
                Entry::Vacant(place) => _ = place.insert(info),
            }
        }
        Ok(cache)
    }
}

impl<'a> Claim<'a> {
    fn new(key: &'a ClaimKey, info: &'a ClaimInfo, profile: Profile) -> Self {
        Self {
            uid: &info.uid,
            name: &key.name,
            namespace: &key.namespace,
            pod_uids: info.pods.iter().map(|pod| (pod.as_str(), Map::new())).collect(),
            driver_state: info
                .drivers
                .iter()
                .map(|(name, state)| (name.as_str(), Driver::new(state, profile)))
                .collect(),
        }
    }
}

impl<'a> Driver<'a> {
    fn new(state: &'a DriverState, profile: Profile) -> Self {
        let devices: Vec<_> = state.devices.iter().map(|device| Device::new(device, profile)).collect();
        Self {
            devices: some(devices),
            // A set that the bool form can't express is written as absent: an unnecessary call of a driver is safe.
            skip_node_operations: state.skips.to_declaration(WireForm::from_profile(profile)).unwrap_or_default(),
        }
    }
}

impl<'a> Device<'a> {
    fn new(device: &'a PreparedDevice, profile: Profile) -> Self {
        let share_id = device.share_id.as_deref();
        Self {
            pool: &device.pool,
            name: &device.device,
            share_id: match profile.rules().kubelet.checkpoint_shares {
                CheckpointShares::Absent => ShareField::Absent,
                CheckpointShares::Written => ShareField::Written(share_id),
            },
            request_names: Some(device.requests.as_slice()).filter(|names| !names.is_empty()),
            cdi_device_ids: Some(device.cdi_ids.as_slice()).filter(|ids| !ids.is_empty()),
        }
    }
}

fn some<T>(list: Vec<T>) -> Option<Vec<T>> {
    Some(list).filter(|list| !list.is_empty())
}

/// Serializes a value as Go's `encoding/json` does, which escapes more characters in strings than JSON requires.
fn go_json(value: &impl Serialize) -> String {
    // Serialisation of these types into memory can't fail.
    let json = serde_json::to_string(value).unwrap_or_default();
    let escape = |json: String, &(character, text): &(char, &str)| {
        if json.contains(character) { json.replace(character, text) } else { json }
    };
    ESCAPED_BY_GO.iter().fold(json, escape)
}

fn parse(text: &[u8], part: &'static str) -> Result<Value, CheckpointError> {
    serde_json::from_slice(text).map_err(|error| CheckpointError::NotJson { part, reason: error.to_string() })
}

/// A JSON value of the file and its path.
struct Reader<'a> {
    value: Option<&'a Value>,
    path: String,
}

impl<'a> Reader<'a> {
    fn new(value: &'a Value, path: &str) -> Self {
        Self { value: Some(value), path: path.to_owned() }
    }

    /// Returns the field of a name: an exact match, or else one that differs in case only. `null` counts as absent.
    fn field(&self, name: &str) -> Self {
        let path = if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
        let object = self.value.and_then(Value::as_object);
        let value = object.and_then(|object| {
            let folded = || object.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value);
            object.get(name).or_else(folded)
        });
        Self { value: value.filter(|value| !value.is_null()), path }
    }

    /// Returns true if the file is of a kubelet before 1.32: it has the key `version` and no `Data`.
    fn is_legacy(&self) -> bool {
        self.field("Data").value.is_none() && self.field("version").value.is_some()
    }

    fn required_object(&self) -> Result<(), CheckpointError> {
        match self.value {
            Some(Value::Object(_)) => Ok(()),
            _ => Err(self.wrong("an object")),
        }
    }

    /// Checks that the value is an object or absent. As in Go, `null` is an object without fields.
    fn optional_object(&self) -> Result<(), CheckpointError> {
        if self.value.is_none_or(Value::is_null) { Ok(()) } else { self.required_object() }
    }

    fn wrong(&self, expected: &'static str) -> CheckpointError {
        CheckpointError::WrongType { field: self.path.clone(), expected, actual: kind_of(self.value) }
    }

    fn required_text(&self) -> Result<&'a str, CheckpointError> {
        self.value.and_then(Value::as_str).ok_or_else(|| self.wrong("a string"))
    }

    fn checksum(&self) -> Result<u32, CheckpointError> {
        let number = self.value.and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok());
        number.ok_or_else(|| self.wrong("a number of 32 bits"))
    }

    fn optional_text(&self) -> Result<Option<&'a str>, CheckpointError> {
        self.value.map(|_| self.required_text()).transpose()
    }

    /// Checks that a field has the only value that is read, or is absent.
    fn check_text(&self, field: &'static str, expected: &'static str) -> Result<(), CheckpointError> {
        match self.field(field).optional_text()? {
            Some(actual) if actual != expected => {
                Err(CheckpointError::OtherVersion { field, expected, actual: actual.to_owned() })
            }
            _ => Ok(()),
        }
    }

    fn text(&self) -> Result<String, CheckpointError> {
        Ok(self.optional_text()?.unwrap_or_default().to_owned())
    }

    fn elements(&self) -> Result<Vec<Self>, CheckpointError> {
        let Some(value) = self.value else { return Ok(Vec::new()) };
        let elements = value.as_array().ok_or_else(|| self.wrong("a list"))?;
        let element = |(index, value)| Self {
            value: Some(value).filter(|value: &&Value| !value.is_null()),
            path: format!("{}[{index}]", self.path),
        };
        Ok(elements.iter().enumerate().map(element).collect())
    }

    fn entries(&self) -> Result<Vec<(&'a str, Self)>, CheckpointError> {
        let Some(value) = self.value else { return Ok(Vec::new()) };
        let entries = value.as_object().ok_or_else(|| self.wrong("an object"))?;
        let entry = |(key, value): (&'a String, _)| {
            (key.as_str(), Self { value: Some(value), path: format!("{}[{key:?}]", self.path) })
        };
        Ok(entries.iter().map(entry).collect())
    }

    fn texts(&self) -> Result<Vec<String>, CheckpointError> {
        self.elements()?.iter().map(Self::text).collect()
    }

    fn claim(&self) -> Result<(ClaimKey, ClaimInfo), CheckpointError> {
        self.required_object()?;
        let key = ClaimKey { namespace: self.field("Namespace").text()?, name: self.field("ClaimName").text()? };
        let pods = self.field("PodUIDs").entries()?.into_iter();
        let pods = pods.map(|(uid, mark)| mark.optional_object().map(|()| uid.to_owned()));
        let pods: BTreeSet<_> = pods.collect::<Result<_, _>>()?;
        let drivers = self.field("DriverState").entries()?.into_iter();
        let drivers = drivers.map(|(name, state)| Ok((name.to_owned(), state.driver()?))).collect::<Result<_, _>>()?;
        let uid = self.field("ClaimUID").text()?;
        if key.name.is_empty() {
            return Err(CheckpointError::NoName { field: self.path.clone() });
        }
        Ok((key, ClaimInfo { uid, pods, drivers, ..ClaimInfo::default() }))
    }

    fn driver(&self) -> Result<DriverState, CheckpointError> {
        self.optional_object()?;
        let devices = self.field("Devices").elements()?.iter().map(Self::device).collect::<Result<_, _>>()?;
        Ok(DriverState { skips: self.field("SkipNodeOperations").skips()?, devices })
    }

    fn skips(&self) -> Result<SkipSet, CheckpointError> {
        let Some(value) = self.value else { return Ok(SkipSet::NONE) };
        let declaration: Result<SkipDeclaration, _> = serde_json::from_value(value.clone());
        declaration.map(|declaration| declaration.set()).map_err(|_| self.wrong("a bool or a list of operation names"))
    }

    fn device(&self) -> Result<PreparedDevice, CheckpointError> {
        self.optional_object()?;
        Ok(PreparedDevice {
            pool: self.field("PoolName").text()?,
            device: self.field("DeviceName").text()?,
            share_id: self.field("ShareID").optional_text()?.map(str::to_owned),
            requests: self.field("RequestNames").texts()?,
            cdi_ids: self.field("CDIDeviceIDs").texts()?,
        })
    }
}

const fn kind_of(value: Option<&Value>) -> &'static str {
    match value {
        None | Some(Value::Null) => "nothing",
        Some(Value::Bool(_)) => "a bool",
        Some(Value::Number(_)) => "a number",
        Some(Value::String(_)) => "a string",
        Some(Value::Array(_)) => "a list",
        Some(Value::Object(_)) => "an object",
    }
}
