//! Validation of a request that is created or updated.

use dra_attrs::PoolStatusForm;
use dra_attrs::{BadValue, FieldError, FieldErrors, FieldPath, Gate, GateSet, NameFormat, Profile};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::names::check_driver;
use crate::status_request::{SpecView, StatusRequest};

impl StatusRequest<'_> {
    /// Validates the creation of a request. A missing limit is valid and means the default.
    ///
    /// While [`Gate::PartitionableDevicesType`] is off, the API server of Kubernetes 1.37 clears
    /// `defaultPartitionTypeAttribute` on creation and refuses the field where it is not cleared. This method refuses the
    /// field.
    ///
    /// ```
    /// use dra_attrs::Profile;
    /// use k8s_openapi::api::resource::v1alpha3::ResourcePoolStatusRequest;
    /// use dra_attrs::GateSet;
    /// use poolstatus::StatusRequest;
    /// let mut request = ResourcePoolStatusRequest::default();
    /// request.metadata.name = Some("gpus".into());
    /// request.spec.limit = Some(1001);
    /// let errors = StatusRequest::from(&request).validate(GateSet::of(Profile::V1_37));
    /// assert_eq!(
    ///     errors.to_string(),
    ///     "[spec.driver: Required value, spec.limit: Invalid value: 1001: must be less than or equal to 1000]"
    /// );
    /// ```
    #[must_use]
    pub fn validate(self, gates: GateSet) -> FieldErrors {
        let mut errors = check_name(self.metadata());
        errors.extend(check_spec(self.spec(), self.profile(), gates));
        errors
    }

    /// Validates an update of the request to `new`: its spec is immutable, where a missing limit equals the default.
    ///
    /// Nothing else is checked; for the status see [`validate_status`](crate::validate_status()).
    ///
    /// ```
    /// use poolstatus::kep::ResourcePoolStatusRequest;
    /// use poolstatus::StatusRequest;
    /// let (old, mut new) = (ResourcePoolStatusRequest::default(), ResourcePoolStatusRequest::default());
    /// assert!(StatusRequest::from(&old).validate_update((&new).into()).is_empty());
    /// new.spec.limit = Some(5);
    /// let errors = StatusRequest::from(&old).validate_update((&new).into());
    /// assert_eq!(errors.to_string(), "spec: Invalid value: null: field is immutable");
    /// ```
    #[must_use]
    pub fn validate_update(self, new: StatusRequest<'_>) -> FieldErrors {
        let changed = self.spec() != new.spec();
        // The API server's generated check has no value, so that the message says `null`.
        let error = || FieldError::invalid(&FieldPath::new("spec"), BadValue::literal("null"), "field is immutable");
        changed.then(error).into_iter().collect()
    }
}

fn check_name(metadata: &ObjectMeta) -> FieldErrors {
    let path = FieldPath::new("metadata");
    match metadata.name.as_deref().filter(|name| !name.is_empty()) {
        // The API server generates a name from the prefix.
        None if metadata.generate_name.as_ref().is_some_and(|prefix| !prefix.is_empty()) => FieldErrors::default(),
        None => {
            let error = FieldError::required(&path.child("name"), "name or generateName is required");
            [error].into_iter().collect()
        }
        Some(name) => NameFormat::LongName.check(name, &path.child("name")),
    }
}

/// Validates the fields in the spec of a request.
pub(crate) fn check_spec(spec: SpecView<'_>, profile: Profile, gates: GateSet) -> FieldErrors {
    let path = FieldPath::new("spec");
    let check_driver = match profile.rules().pool_status {
        PoolStatusForm::Kep => check_kep_driver,
        PoolStatusForm::V1alpha3 => check_driver,
    };
    let pool = spec.pool.map(|name| NameFormat::PoolName.check(name, &path.child("poolName")));
    let attribute = path.child("defaultPartitionTypeAttribute");
    let check_attribute = |name| check_attribute(&attribute, name, profile, gates);
    let mut errors = check_driver(&path.child("driver"), spec.driver);
    errors.extend(pool.into_iter().flatten());
    errors.extend(check_limit(&path.child("limit"), spec.limit));
    errors.extend(spec.partition_type_attribute.into_iter().flat_map(check_attribute));
    errors.extend(spec.ttl.and_then(|ttl| check_ttl(&path.child("ttlSecondsAfterComplete"), ttl)));
    errors
}

fn check_limit(field: &FieldPath<'_>, limit: i32) -> Option<FieldError> {
    if limit < 1 {
        return Some(FieldError::invalid(field, limit, "must be greater than or equal to 1"));
    }
    let max = StatusRequest::MAX_LIMIT;
    (limit > max).then(|| FieldError::invalid(field, limit, format!("must be less than or equal to {max}")))
}

/// Validates `spec.defaultPartitionTypeAttribute`, which is forbidden while
/// [`Gate::PartitionableDevicesType`] is off.
fn check_attribute(field: &FieldPath<'_>, name: &str, profile: Profile, gates: GateSet) -> FieldErrors {
    let gate = Gate::PartitionableDevicesType;
    if gates.has(gate) {
        return NameFormat::QualifiedAttribute.check(name, field);
    }
    let detail = format!("field requires the {} feature gate", gate.name(profile));
    [FieldError::forbidden(field, detail)].into_iter().collect()
}

fn check_ttl(field: &FieldPath<'_>, ttl: i64) -> Option<FieldError> {
    (ttl < 0).then(|| FieldError::invalid(field, ttl, "must be greater than or equal to 0"))
}

/// Validates a driver name by the KEP, whose examples have a slash: `example.com/gpu`.
fn check_kep_driver(field: &FieldPath<'_>, name: &str) -> FieldErrors {
    let parts = name.to_ascii_lowercase();
    let is_subdomain = |text: &str| NameFormat::Subdomain.problems(text).is_empty();
    let is_example = parts.split_once('/').is_some_and(|(domain, id)| is_subdomain(domain) && is_subdomain(id));
    if is_example { FieldErrors::new() } else { check_driver(field, name) }
}
