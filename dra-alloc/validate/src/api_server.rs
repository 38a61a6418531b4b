//! Simulation of an API server: validation of writes of the objects of Dynamic Resource Allocation.

use dra_attrs::internal::release::{ChangedEffect, SentWhileOff, UpperCaseDriver};
use dra_attrs::{Component, DroppedField, FieldErrors, Gate, Quoted};
use dra_device::internal::{Same, TaintTimes, same_or_empty};
use k8s_openapi::api::resource::v1::{
    DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::Timestamp;

use super::admin_access::NamespaceAccess;
use super::context::ValidationContext;
use super::gates::{Kind, Preparation, Prepared};
use super::write::{Accepted, Write};
use super::{
    admin_access, claim, claim_status, class, device_status, metadata, reject_while_off, slice, taint_rule, template,
};

/// Simulated API server, with a profile, feature gates, and the admin access that the object's namespace allows.
///
/// Each `validate_*` method takes a [`Write`] and returns the object that would be stored ([`Accepted`]), or all
/// problems of the write. The object is prepared as the API server does before it validates: the status of a new claim
/// is cleared, an update of the status keeps the spec, defaults are filled in, amounts are written in their canonical
/// form, and fields of disabled features are dropped or rejected ([`SentWhileOff`]).
///
/// # Complexity
/// Linear in the size of the objects, apart from compiling CEL expressions.
///
/// ```
/// use dra_attrs::Component;
/// use dra_validate::{ApiServer, Write};
/// use dra_attrs::{Gate, GateSet};
/// use dra_attrs::Profile;
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
/// let server = ApiServer::new(Component::of(Profile::V1_37));
/// let accepted = server.validate_slice(Write::create(&slice))?;
/// assert_eq!(accepted.dropped[0].field, "spec.skipNodeOperations");
///
/// // In the KEP: the slice is rejected.
/// let server = ApiServer::new(Component::of(Profile::Kep));
/// let errors = server.validate_slice(Write::create(&slice)).unwrap_err();
/// assert_eq!(errors[0].field, "spec.skipNodeOperations");
///
/// let server = ApiServer::new(Component::new(Profile::Kep, GateSet::of(Profile::V1_37).with(Gate::OptionalNodeOperations)));
/// assert_eq!(server.validate_slice(Write::create(&slice))?.object.spec, slice.spec);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ApiServer {
    server: Component,
    namespace: NamespaceAccess,
    now: Option<Timestamp>,
}

impl ApiServer {
    /// Creates an API server: its release with its gates, or a profile alone with the default gates. Gates of the scheduler and
    /// kubelet have no effect on it.
    #[must_use]
    pub fn new(server: impl Into<Component>) -> Self {
        Self { server: server.into(), namespace: NamespaceAccess::Unknown, now: None }
    }

    /// Sets the admin access that the object's namespace allows. The default, [`NamespaceAccess::Unknown`], does not
    /// check admin access.
    #[must_use]
    pub const fn with_namespace(self, namespace: NamespaceAccess) -> Self {
        Self { namespace, ..self }
    }

    /// Sets the server's clock, from which taints get the time at which they were added. Without it, `timeAdded` stays
    /// as it was sent.
    ///
    /// ```
    /// use dra_attrs::Component;
    /// use dra_attrs::GateSet;
    /// use dra_validate::{ApiServer, Write};
    /// use dra_attrs::Profile;
    /// use k8s_openapi::api::resource::v1::DeviceTaintRule;
    ///
    /// let rule: DeviceTaintRule = serde_json::from_value(serde_json::json!({
    ///     "metadata": {"name": "broken"},
    ///     "spec": {"taint": {"key": "example.com/broken", "effect": "NoSchedule"}},
    /// }))?;
    /// let server = ApiServer::new(Component::of(Profile::V1_37)).with_now("2026-11-22T10:00:00Z".parse().unwrap());
    /// let stored = server.validate_taint_rule(Write::create(&rule))?.object;
    /// assert_eq!(stored.spec.taint.time_added.map(|time| time.0.to_string()), Some("2026-11-22T10:00:00Z".to_owned()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn with_now(self, now: Timestamp) -> Self {
        Self { now: Some(now), ..self }
    }

    /// Validates a create or update of a `ResourceSlice`. Sets `metadata.generation`, which counts the changes of the
    /// spec.
    ///
    /// # Errors
    /// Returns all problems of the object, each with the path of its field.
    pub fn validate_slice(self, write: Write<'_, ResourceSlice>) -> Result<Accepted<ResourceSlice>, FieldErrors> {
        let known = self.preparation().known(Kind::Slice, write);
        let write = known.write();
        // Without a clock nothing that is filled in makes two objects differ.
        let read = write.old.filter(|_| self.now.is_some()).map(|old| self.preparation().filled_in(Kind::Slice, old));
        let mut object =
            if read.is_some() { self.preparation().filled_in(Kind::Slice, write.new) } else { write.new.clone() };
        let write = Write { old: read.as_ref().or(write.old), ..write };
        let old = write.old.map(|old| (Some(&old.spec), &old.metadata));
        object.metadata.generation = generation(Some(&object.spec), old);
        let prepared = self.preparation().prepare(Kind::Slice, object, write.old);
        let mut context = self.context();
        slice::check(&prepared.object, write.old, &mut context);
        if let Some(gate) = self.rejecting_gate() {
            reject_while_off::check_slice(&prepared.object, write.old, gate, &mut context);
        }
        let warnings = driver_warning(&prepared.object.spec.driver, self.server.rules().validation.upper_case_driver);
        accepted(prepared, known.unknown, context, warnings)
    }

    /// Validates a create or update of a `ResourceClaim`. Ignores the `status` of the new object: it is replaced by the
    /// stored one.
    ///
    /// # Errors
    /// Returns all problems of the object, each with the path of its field.
    pub fn validate_claim(self, write: Write<'_, ResourceClaim>) -> Result<Accepted<ResourceClaim>, FieldErrors> {
        let known = self.preparation().known(Kind::Claim, write);
        let write = known.write();
        let mut object = write.new.clone();
        object.status = write.old.and_then(|old| old.status.clone());
        let prepared = self.preparation().prepare(Kind::Claim, object, write.old);
        let mut context = self.context();
        if write.old.is_none() {
            admin_access::check_requests(prepared.object.spec.as_ref(), self.namespace, &mut context);
        }
        claim::check(&prepared.object, write.old, &mut context);
        accepted(prepared, known.unknown, context, Vec::new())
    }

    /// Validates an update of the status of a `ResourceClaim`. Ignores the `spec` of the new object: it is replaced by
    /// the stored one. Without an old object, the stored claim is the new one without its status.
    ///
    /// # Errors
    /// Returns all problems of the object, each with the path of its field.
    pub fn validate_claim_status(
        self,
        write: Write<'_, ResourceClaim>,
    ) -> Result<Accepted<ResourceClaim>, FieldErrors> {
        let known = self.preparation().known(Kind::ClaimStatus, write);
        let write = known.write();
        let unallocated = ResourceClaim { status: None, ..write.new.clone() };
        let old = write.old.unwrap_or(&unallocated);
        let object = ResourceClaim { status: write.new.status.clone(), ..old.clone() };
        let mut prepared = self.preparation().prepare(Kind::ClaimStatus, object, Some(old));
        if self.server.gates().has(Gate::ResourceClaimDeviceStatus) || has_device_status(old) {
            forget_deallocated(&mut prepared.object, old);
        }
        let mut context = self.context();
        let (status, old_status) = (prepared.object.status.as_ref(), old.status.as_ref());
        admin_access::check_results(status, old_status, self.namespace, &mut context);
        metadata::check_update(&write.new.metadata, &old.metadata, &mut context);
        claim_status::check(&prepared.object, old, &mut context);
        if let Some(gate) = self.rejecting_gate() {
            reject_while_off::check_claim(&prepared.object, old, gate, &mut context);
        }
        accepted(prepared, known.unknown, context, Vec::new())
    }

    /// Validates a create or update of a `ResourceClaimTemplate`.
    ///
    /// # Errors
    /// Returns all problems of the object, each with the path of its field.
    pub fn validate_claim_template(
        self,
        write: Write<'_, ResourceClaimTemplate>,
    ) -> Result<Accepted<ResourceClaimTemplate>, FieldErrors> {
        let known = self.preparation().known(Kind::Template, write);
        let write = known.write();
        let prepared = self.preparation().prepare(Kind::Template, write.new.clone(), write.old);
        let mut context = self.context();
        if write.old.is_none() {
            admin_access::check_requests(template::claim_spec(&prepared.object), self.namespace, &mut context);
        }
        template::check(&prepared.object, write.old, &mut context);
        accepted(prepared, known.unknown, context, Vec::new())
    }

    /// Validates a create or update of a `DeviceClass`.
    ///
    /// # Errors
    /// Returns all problems of the object, each with the path of its field.
    pub fn validate_class(self, write: Write<'_, DeviceClass>) -> Result<Accepted<DeviceClass>, FieldErrors> {
        let known = self.preparation().known(Kind::Class, write);
        let write = known.write();
        let mut object = write.new.clone();
        let old = write.old.map(|old| (old.spec.as_ref(), &old.metadata));
        object.metadata.generation = generation(object.spec.as_ref(), old);
        let prepared = self.preparation().prepare(Kind::Class, object, write.old);
        let mut context = self.context();
        class::check(&prepared.object, write.old, &mut context);
        accepted(prepared, known.unknown, context, Vec::new())
    }

    /// Validates a create or update of a `DeviceTaintRule`. Ignores the `status` of the new object: it is replaced by
    /// the stored one.
    ///
    /// # Errors
    /// Returns all problems of the object, each with the path of its field.
    pub fn validate_taint_rule(
        self,
        write: Write<'_, DeviceTaintRule>,
    ) -> Result<Accepted<DeviceTaintRule>, FieldErrors> {
        let known = self.preparation().known(Kind::TaintRule, write);
        let write = known.write();
        let status = write.old.and_then(|old| old.status.clone());
        let mut object = DeviceTaintRule { status, ..write.new.clone() };
        let old = write.old.map(|old| (Some(&old.spec), &old.metadata));
        match self.server.rules().validation.changed_effect {
            ChangedEffect::Kept => {}
            ChangedEffect::Renewed => {
                if let Some(old) = write.old.filter(|_| self.now.is_some()) {
                    forget_time(&mut object, old);
                }
            }
        }
        object.metadata.generation = generation(Some(&object.spec), old);
        let prepared = self.preparation().prepare(Kind::TaintRule, object, write.old);
        let mut context = self.context();
        taint_rule::check(&prepared.object, write.old, &mut context);
        accepted(prepared, known.unknown, context, Vec::new())
    }

    /// Validates an update of the status of a `DeviceTaintRule`. Ignores the `spec` of the new object: it is replaced
    /// by the stored one. Without an old object, the stored rule is the new one without its status.
    ///
    /// # Errors
    /// Returns all problems of the object, each with the path of its field.
    pub fn validate_taint_rule_status(
        self,
        write: Write<'_, DeviceTaintRule>,
    ) -> Result<Accepted<DeviceTaintRule>, FieldErrors> {
        let known = self.preparation().known(Kind::TaintRule, write);
        let write = known.write();
        let untouched = DeviceTaintRule { status: None, ..write.new.clone() };
        let old = write.old.unwrap_or(&untouched);
        let object = DeviceTaintRule { status: write.new.status.clone(), ..old.clone() };
        let prepared = self.preparation().prepare(Kind::TaintRule, object, Some(old));
        let mut context = self.context();
        metadata::check_update(&write.new.metadata, &old.metadata, &mut context);
        taint_rule::check_status(&prepared.object, &mut context);
        accepted(prepared, known.unknown, context, Vec::new())
    }

    pub(super) fn has(self, feature: Gate) -> bool {
        self.server.gates().has(feature)
    }

    const fn preparation(self) -> Preparation {
        Preparation { gates: self.server.gates(), profile: self.server.profile(), now: self.now }
    }

    const fn context(self) -> ValidationContext {
        ValidationContext::new(self.server.gates(), self.server.profile())
    }

    /// Returns the name of a disabled gate whose fields are rejected instead of dropped, if there is one.
    fn rejecting_gate(self) -> Option<&'static str> {
        let feature = Gate::OptionalNodeOperations;
        match self.server.rules().skip.sent_while_off {
            SentWhileOff::Dropped => None,
            SentWhileOff::Refused => (!self.server.gates().has(feature)).then(|| feature.name(self.server.profile())),
        }
    }
}

/// Removes the time of a taint whose effect changes while its time stays: the effect begins now.
fn forget_time(rule: &mut DeviceTaintRule, old: &DeviceTaintRule) {
    let (taint, old) = (&mut rule.spec.taint, &old.spec.taint);
    if taint.effect != old.effect && taint.time_added == old.time_added {
        taint.time_added = None;
    }
}

fn accepted<T>(
    prepared: Prepared<T>,
    unknown: Vec<DroppedField>,
    context: ValidationContext,
    warnings: Vec<String>,
) -> Result<Accepted<T>, FieldErrors> {
    context.into_errors().into_result()?;
    let Prepared { object, dropped } = prepared;
    let dropped = unknown.into_iter().chain(dropped).collect();
    Ok(Accepted { object, dropped, warnings })
}

/// Returns `metadata.generation` of the object to store: 1 for a create, one more than before if the spec has changed.
fn generation<S: Same + Default>(spec: Option<&S>, old: Option<(Option<&S>, &ObjectMeta)>) -> Option<i64> {
    match old {
        None => Some(1),
        Some((old, metadata)) if same_or_empty(old, spec, TaintTimes::Exact) => metadata.generation,
        Some((_, metadata)) => Some(metadata.generation.unwrap_or_default().saturating_add(1)),
    }
}

fn driver_warning(driver: &str, rule: UpperCaseDriver) -> Vec<String> {
    match rule {
        UpperCaseDriver::Warned if driver != driver.to_lowercase() => {
            let quoted = Quoted(driver);
            vec![format!("spec.driver: driver names should be lowercase; {quoted} contains uppercase characters")]
        }
        UpperCaseDriver::Warned | UpperCaseDriver::Silent => Vec::new(),
    }
}

fn has_device_status(claim: &ResourceClaim) -> bool {
    let devices = claim.status.as_ref().and_then(|status| status.devices.as_ref());
    devices.is_some_and(|devices| !devices.is_empty())
}

/// Removes the entries of `status.devices` for devices that were allocated and no longer are.
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
