//! An API server as far as its decisions about the objects of DRA go.

use dra_attrs::field::{FieldErrors, Quoted};
use dra_attrs::profile::Profile;
use k8s_openapi::api::resource::v1::{
    DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;

use super::admin_access::NamespaceAccess;
use super::admission::{Admission, Admitted};
use super::equality::same;
use super::findings::Findings;
use super::gates::{GatePolicy, Kind, Remaining, drop_disabled};
use super::{admin_access, claim, claim_status, class, device_status, metadata, ratchet, slice, taint_rule, template};
use crate::features::{Feature, Features};
use crate::profile::Decisions;

/// An API server: a profile, its feature gates, and what is known about the namespace of the object.
///
/// Its methods answer a write with what would be stored, or with all problems. They prepare the object as the server does
/// before it validates: the status of a new claim is cleared, an update of the status keeps the spec, fields of features
/// that are off are dropped or rejected ([`GatePolicy`]).
///
/// # Complexity
/// Linear in the size of the objects, apart from compiling CEL expressions.
///
/// ```
/// use dra_alloc::features::{Feature, Features};
/// use dra_alloc::validate::{Admission, ApiServer};
/// use dra_attrs::profile::Profile;
/// use k8s_openapi::api::resource::v1::ResourceSlice;
///
/// let slice: ResourceSlice = serde_json::from_value(serde_json::json!({
///     "metadata": {"name": "node-1-cpu"},
///     "spec": {
///         "driver": "dra.cpu",
///         "pool": {"name": "node-1", "generation": 0, "resourceSliceCount": 1},
///         "nodeName": "node-1",
///         "skipNodeOperations": ["*"],
///     }
/// }))?;
///
/// // As shipped: the field is dropped while its gate is off.
/// let server = ApiServer::new(Profile::V1_37, Features::default());
/// let admitted = server.slice(Admission::create(&slice))?;
/// assert_eq!(admitted.dropped, ["spec.skipNodeOperations"]);
///
/// // In the KEP: the slice is rejected.
/// let server = ApiServer::new(Profile::Kep, Features::default());
/// let errors = server.slice(Admission::create(&slice)).unwrap_err();
/// assert_eq!(errors.as_slice()[0].field, "spec.skipNodeOperations");
///
/// let server = ApiServer::new(Profile::Kep, Features::default().with(Feature::OptionalNodeOperations));
/// assert_eq!(server.slice(Admission::create(&slice))?.object.spec, slice.spec);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ApiServer {
    profile: Profile,
    features: Features,
    namespace: NamespaceAccess,
}

impl ApiServer {
    /// An API server with feature gates of its own; no other component's gates matter to it.
    #[must_use]
    pub const fn new(profile: Profile, features: Features) -> Self {
        Self { profile, features, namespace: NamespaceAccess::Unknown }
    }

    /// The same, for objects in a namespace about which something is known.
    #[must_use]
    pub const fn in_namespace(self, namespace: NamespaceAccess) -> Self {
        Self { namespace, ..self }
    }

    /// A write of a slice.
    ///
    /// # Errors
    /// All problems of the object.
    pub fn slice(self, write: Admission<'_, ResourceSlice>) -> Result<Admitted<ResourceSlice>, FieldErrors> {
        let mut object = write.new.clone();
        let old = write.old.map(|old| (&old.spec, &old.metadata));
        object.metadata.generation = generation(&object.spec, old);
        let remaining = self.drop_disabled(Kind::Slice, object, write.old);
        let mut findings = self.findings();
        slice::check(&remaining.object, write.old, &mut findings);
        if let Some(gate) = self.rejecting_gate() {
            ratchet::check_slice(&remaining.object, write.old, gate, &mut findings);
        }
        let warnings = driver_warning(&remaining.object.spec.driver);
        admitted(remaining, findings, warnings)
    }

    /// A write of a claim; its status is none of the writer's business.
    ///
    /// # Errors
    /// All problems of the object.
    pub fn claim(self, write: Admission<'_, ResourceClaim>) -> Result<Admitted<ResourceClaim>, FieldErrors> {
        let mut object = write.new.clone();
        object.status = write.old.and_then(|old| old.status.clone());
        let remaining = self.drop_disabled(Kind::Claim, object, write.old);
        let mut findings = self.findings();
        if write.old.is_none() {
            admin_access::check_requests(remaining.object.spec.as_ref(), self.namespace, &mut findings);
        }
        claim::check(&remaining.object, write.old, &mut findings);
        admitted(remaining, findings, Vec::new())
    }

    /// A write of the status of a claim. Without an old object, the claim had no status.
    ///
    /// # Errors
    /// All problems of the object.
    pub fn claim_status(self, write: Admission<'_, ResourceClaim>) -> Result<Admitted<ResourceClaim>, FieldErrors> {
        let unallocated = ResourceClaim { status: None, ..write.new.clone() };
        let old = write.old.unwrap_or(&unallocated);
        let object = ResourceClaim { status: write.new.status.clone(), ..old.clone() };
        let mut remaining = self.drop_disabled(Kind::ClaimStatus, object, Some(old));
        if self.features.has(Feature::DeviceStatus) || has_device_status(old) {
            forget_deallocated(&mut remaining.object, old);
        }
        let mut findings = self.findings();
        let (status, old_status) = (remaining.object.status.as_ref(), old.status.as_ref());
        admin_access::check_results(status, old_status, self.namespace, &mut findings);
        metadata::check_update(&write.new.metadata, &old.metadata, &mut findings);
        claim_status::check(&remaining.object, old, &mut findings);
        if let Some(gate) = self.rejecting_gate() {
            ratchet::check_claim(&remaining.object, old, gate, &mut findings);
        }
        admitted(remaining, findings, Vec::new())
    }

    /// A write of a template.
    ///
    /// # Errors
    /// All problems of the object.
    pub fn claim_template(
        self,
        write: Admission<'_, ResourceClaimTemplate>,
    ) -> Result<Admitted<ResourceClaimTemplate>, FieldErrors> {
        let remaining = self.drop_disabled(Kind::Template, write.new.clone(), write.old);
        let mut findings = self.findings();
        if write.old.is_none() {
            admin_access::check_requests(template::claim_spec(&remaining.object), self.namespace, &mut findings);
        }
        template::check(&remaining.object, write.old, &mut findings);
        admitted(remaining, findings, Vec::new())
    }

    /// A write of a class.
    ///
    /// # Errors
    /// All problems of the object.
    pub fn class(self, write: Admission<'_, DeviceClass>) -> Result<Admitted<DeviceClass>, FieldErrors> {
        let mut object = write.new.clone();
        let old = write.old.map(|old| (&old.spec, &old.metadata));
        object.metadata.generation = generation(&object.spec, old);
        let mut findings = self.findings();
        class::check(&object, write.old, &mut findings);
        admitted(unchanged(object), findings, Vec::new())
    }

    /// A write of a taint rule; its status is none of the writer's business.
    ///
    /// # Errors
    /// All problems of the object.
    pub fn taint_rule(self, write: Admission<'_, DeviceTaintRule>) -> Result<Admitted<DeviceTaintRule>, FieldErrors> {
        let status = write.old.and_then(|old| old.status.clone());
        let mut object = DeviceTaintRule { status, ..write.new.clone() };
        let old = write.old.map(|old| (&old.spec, &old.metadata));
        object.metadata.generation = generation(&object.spec, old);
        let mut findings = self.findings();
        taint_rule::check(&object, write.old, &mut findings);
        admitted(unchanged(object), findings, Vec::new())
    }

    /// A write of the status of a taint rule. Without an old object, the rule had no status.
    ///
    /// # Errors
    /// All problems of the object.
    pub fn taint_rule_status(
        self,
        write: Admission<'_, DeviceTaintRule>,
    ) -> Result<Admitted<DeviceTaintRule>, FieldErrors> {
        let untouched = DeviceTaintRule { status: None, ..write.new.clone() };
        let old = write.old.unwrap_or(&untouched);
        let object = DeviceTaintRule { status: write.new.status.clone(), ..old.clone() };
        let mut findings = self.findings();
        metadata::check_update(&write.new.metadata, &old.metadata, &mut findings);
        taint_rule::check_status(&object, &mut findings);
        admitted(unchanged(object), findings, Vec::new())
    }

    pub(super) const fn has(self, feature: Feature) -> bool {
        self.features.has(feature)
    }

    const fn findings(self) -> Findings {
        Findings::new(self.features, Decisions::of(self.profile))
    }

    fn drop_disabled<T>(self, kind: Kind, object: T, old: Option<&T>) -> Remaining<T>
    where
        T: Clone + Serialize + serde::de::DeserializeOwned,
    {
        drop_disabled(kind, object, old, self.features, self.profile)
    }

    /// The gate that is off and rejects, if there is one.
    fn rejecting_gate(self) -> Option<&'static str> {
        let feature = Feature::OptionalNodeOperations;
        let rejects = GatePolicy::of(feature, self.profile) == GatePolicy::Reject;
        let gate = feature.gates(self.profile).first().copied();
        gate.filter(|_| rejects && !self.features.has(feature))
    }
}

const fn unchanged<T>(object: T) -> Remaining<T> {
    Remaining { object, dropped: Vec::new() }
}

fn admitted<T>(remaining: Remaining<T>, findings: Findings, warnings: Vec<String>) -> Result<Admitted<T>, FieldErrors> {
    findings.into_errors().into_result()?;
    let Remaining { object, dropped } = remaining;
    Ok(Admitted { object, dropped, warnings })
}

/// The generation of an object, which counts changes of its spec.
fn generation<S: PartialEq + Serialize>(spec: &S, old: Option<(&S, &ObjectMeta)>) -> Option<i64> {
    match old {
        None => Some(1),
        Some((old, metadata)) if same(old, spec) => metadata.generation,
        Some((_, metadata)) => Some(metadata.generation.unwrap_or_default().saturating_add(1)),
    }
}

fn driver_warning(driver: &str) -> Vec<String> {
    if driver == driver.to_lowercase() {
        return Vec::new();
    }
    let quoted = Quoted(driver);
    vec![format!("spec.driver: driver names should be lowercase; {quoted} contains uppercase characters")]
}

fn has_device_status(claim: &ResourceClaim) -> bool {
    let devices = claim.status.as_ref().and_then(|status| status.devices.as_ref());
    devices.is_some_and(|devices| !devices.is_empty())
}

/// Removes what drivers say about devices that were allocated and no longer are.
fn forget_deallocated(claim: &mut ResourceClaim, old: &ResourceClaim) {
    let (Some(status), Some(old)) = (&mut claim.status, &old.status) else { return };
    let before = device_status::allocated(old);
    let devices = status.devices.take();
    let now = device_status::allocated(status);
    let is_gone = |key: &device_status::Key<'_>| before.contains(key) && !now.contains(key);
    let kept = devices
        .map(|devices| devices.into_iter().filter(|device| !is_gone(&device_status::key(device))).collect::<Vec<_>>());
    status.devices = kept.filter(|devices| !devices.is_empty());
}
