//! A request for the status of pools: both of its forms, what it asks, and its validation.

use dra_attrs::dns::is_subdomain;
use dra_attrs::field::{BadValue, FieldError, FieldErrors, FieldPath};
use dra_attrs::format::{long_name, resource_fully_qualified_name, resource_pool_name};
use dra_attrs::profile::Profile;
use k8s_openapi::api::resource::v1alpha3;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use crate::gate::{Gate, Gates};
use crate::kep;
use crate::names::check_driver;

/// The most pools that a request lists if it does not say.
pub const DEFAULT_LIMIT: i32 = 100;

/// The most pools that a request may ask to be listed.
pub const MAX_LIMIT: i32 = 1000;

/// A request in either form.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Request<'a> {
    /// In the form of the KEP's text.
    Kep(&'a kep::ResourcePoolStatusRequest),
    /// In the form that Kubernetes 1.37 ships.
    Shipped(&'a v1alpha3::ResourcePoolStatusRequest),
}

impl<'a> From<&'a kep::ResourcePoolStatusRequest> for Request<'a> {
    fn from(request: &'a kep::ResourcePoolStatusRequest) -> Self {
        Self::Kep(request)
    }
}

impl<'a> From<&'a v1alpha3::ResourcePoolStatusRequest> for Request<'a> {
    fn from(request: &'a v1alpha3::ResourcePoolStatusRequest) -> Self {
        Self::Shipped(request)
    }
}

impl<'a> Request<'a> {
    /// The profile whose form it has.
    #[must_use]
    pub const fn profile(self) -> Profile {
        match self {
            Self::Kep(_) => Profile::Kep,
            Self::Shipped(_) => Profile::V1_37,
        }
    }

    /// Name, UID, time of creation.
    #[must_use]
    pub const fn metadata(self) -> &'a ObjectMeta {
        match self {
            Self::Kep(request) => &request.metadata,
            Self::Shipped(request) => &request.metadata,
        }
    }

    /// Whether there is an answer already: an observation time (KEP), a status (shipped). Such a request is never processed
    /// again.
    ///
    /// ```
    /// use k8s_openapi::api::resource::v1alpha3::ResourcePoolStatusRequest;
    /// use poolstatus::request::Request;
    /// let mut request = ResourcePoolStatusRequest::default();
    /// assert!(!Request::from(&request).is_processed());
    /// request.status = Some(Default::default());
    /// assert!(Request::from(&request).is_processed());
    /// ```
    #[must_use]
    pub const fn is_processed(self) -> bool {
        match self {
            Self::Kep(request) => request.status.observation_time.is_some(),
            Self::Shipped(request) => request.status.is_some(),
        }
    }

    /// When the answer was completed or failed, if it was.
    pub(crate) fn completion(self) -> Option<&'a Time> {
        let (conditions, observed) = match self {
            Self::Kep(request) => (request.status.conditions.as_slice(), request.status.observation_time.as_ref()),
            Self::Shipped(request) => {
                let status = request.status.as_ref();
                (status.and_then(|status| status.conditions.as_deref()).unwrap_or_default(), None)
            }
        };
        let mut done = conditions.iter().filter(|condition| ["Complete", "Failed"].contains(&condition.type_.as_str()));
        done.next().map(|condition| &condition.last_transition_time).or(observed)
    }

    fn spec(self) -> SpecView<'a> {
        match self {
            Self::Kep(request) => SpecView {
                driver: &request.spec.driver,
                // The KEP's field is a plain text, in which empty means unset.
                pool: request.spec.pool_name.as_deref().filter(|name| !name.is_empty()),
                limit: request.spec.limit.unwrap_or(DEFAULT_LIMIT),
                partition_type: None,
                ttl: request.spec.ttl_seconds_after_complete,
            },
            Self::Shipped(request) => SpecView {
                driver: &request.spec.driver,
                pool: request.spec.pool_name.as_deref(),
                limit: request.spec.limit.unwrap_or(DEFAULT_LIMIT),
                partition_type: request.spec.default_partition_type_attribute.as_deref(),
                ttl: None,
            },
        }
    }
}

/// The fields of a spec, in either form, with the default filled in.
#[derive(Clone, Copy, PartialEq)]
struct SpecView<'a> {
    driver: &'a str,
    pool: Option<&'a str>,
    limit: i32,
    partition_type: Option<&'a str>,
    ttl: Option<i64>,
}

impl SpecView<'_> {
    fn problems(self, profile: Profile, gates: Gates) -> FieldErrors {
        let spec = FieldPath::new("spec");
        let driver = if profile == Profile::V1_37 { check_driver } else { check_kep_driver };
        let pool = self.pool.map(|name| resource_pool_name(name, &spec.child("poolName")));
        let attribute = spec.child("defaultPartitionTypeAttribute");
        let mut problems = driver(&spec.child("driver"), self.driver);
        problems.extend(pool.into_iter().flatten());
        problems.extend(check_limit(&spec.child("limit"), self.limit));
        problems.extend(self.partition_type.into_iter().flat_map(|name| check_attribute(&attribute, name, gates)));
        problems.extend(self.ttl.and_then(|ttl| check_ttl(&spec.child("ttlSecondsAfterComplete"), ttl)));
        problems
    }
}

fn check_limit(field: &FieldPath<'_>, limit: i32) -> Option<FieldError> {
    if limit < 1 {
        return Some(FieldError::invalid(field, limit, "must be greater than or equal to 1"));
    }
    (limit > MAX_LIMIT).then(|| FieldError::invalid(field, limit, format!("must be less than or equal to {MAX_LIMIT}")))
}

/// While its gate is off, the field is forbidden whatever it says.
fn check_attribute(field: &FieldPath<'_>, name: &str, gates: Gates) -> FieldErrors {
    let gate = Gate::PartitionableDevicesType;
    if gates.has(gate) {
        return resource_fully_qualified_name(name, field);
    }
    let detail = format!("field requires the {} feature gate", gate.name());
    [FieldError::forbidden(field, detail)].into_iter().collect()
}

fn check_ttl(field: &FieldPath<'_>, ttl: i64) -> Option<FieldError> {
    (ttl < 0).then(|| FieldError::invalid(field, ttl, "must be greater than or equal to 0"))
}

/// The KEP's examples name the driver `example.com/gpu`; a slash is allowed there.
fn check_kep_driver(field: &FieldPath<'_>, name: &str) -> FieldErrors {
    let parts = name.to_ascii_lowercase();
    let is_example = parts.split_once('/').is_some_and(|(domain, id)| is_subdomain(domain) && is_subdomain(id));
    if is_example { FieldErrors::new() } else { check_driver(field, name) }
}

/// What the API server says to a new request; a limit that is left out is the default.
///
/// The shipped API server clears `defaultPartitionTypeAttribute` while its gate is off, and refuses what it did not clear.
/// Here it is refused.
///
/// ```
/// use k8s_openapi::api::resource::v1alpha3::ResourcePoolStatusRequest;
/// use poolstatus::gate::Gates;
/// use poolstatus::request::validate;
/// let mut request = ResourcePoolStatusRequest::default();
/// request.metadata.name = Some("gpus".into());
/// request.spec.limit = Some(1001);
/// let problems = validate((&request).into(), Gates::default());
/// assert_eq!(
///     problems.to_string(),
///     "[spec.driver: Required value, spec.limit: Invalid value: 1001: must be less than or equal to 1000]"
/// );
/// ```
#[must_use]
pub fn validate(request: Request<'_>, gates: Gates) -> FieldErrors {
    let mut problems = check_name(request.metadata());
    problems.extend(request.spec().problems(request.profile(), gates));
    problems
}

fn check_name(metadata: &ObjectMeta) -> FieldErrors {
    let path = FieldPath::new("metadata");
    match metadata.name.as_deref().filter(|name| !name.is_empty()) {
        // The API server makes one.
        None if metadata.generate_name.as_ref().is_some_and(|prefix| !prefix.is_empty()) => FieldErrors::default(),
        None => {
            let error = FieldError::required(&path.child("name"), "name or generateName is required");
            [error].into_iter().collect()
        }
        Some(name) => long_name(name, &path.child("name")),
    }
}

/// What the API server says to a change of a request: its spec is immutable, where a limit that is left out is the default.
/// Nothing else is looked at; for the status see [`crate::accept`].
///
/// ```
/// use poolstatus::kep::ResourcePoolStatusRequest;
/// use poolstatus::request::validate_update;
/// let (old, mut new) = (ResourcePoolStatusRequest::default(), ResourcePoolStatusRequest::default());
/// assert!(validate_update((&old).into(), (&new).into()).is_empty());
/// new.spec.limit = Some(5);
/// let problems = validate_update((&old).into(), (&new).into());
/// assert_eq!(problems.to_string(), "spec: Invalid value: null: field is immutable");
/// ```
#[must_use]
pub fn validate_update(old: Request<'_>, new: Request<'_>) -> FieldErrors {
    let changed = old.spec() != new.spec();
    // The generated check shows no value, which a message has as `null`.
    let error = || FieldError::invalid(&FieldPath::new("spec"), BadValue::literal("null"), "field is immutable");
    changed.then(error).into_iter().collect()
}

/// What a valid request asks.
///
/// ```
/// use poolstatus::kep::ResourcePoolStatusRequest;
/// use poolstatus::request::Query;
/// let mut request = ResourcePoolStatusRequest::default();
/// assert_eq!(Query::of((&request).into()).unwrap_err().to_string(), "spec.driver: Required value");
/// request.spec.driver = "gpu.example.com".into();
/// assert_eq!(Query::of((&request).into())?, Query::new("gpu.example.com"));
/// # Ok::<(), dra_attrs::field::FieldErrors>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    driver: String,
    pool: Option<String>,
    limit: usize,
    default_partition_type: Option<String>,
    namespace: Option<String>,
}

impl Query {
    /// All pools of a driver, of which [`DEFAULT_LIMIT`] are listed.
    #[must_use]
    pub fn new(driver: &str) -> Self {
        Self {
            driver: driver.to_owned(),
            pool: None,
            limit: usize::try_from(DEFAULT_LIMIT).unwrap_or_default(),
            default_partition_type: None,
            namespace: None,
        }
    }

    /// What a request asks.
    ///
    /// # Errors
    /// The problems of its spec. Gates are not looked at: they are asked when a request is created ([`validate`]).
    pub fn of(request: Request<'_>) -> Result<Self, FieldErrors> {
        let spec = request.spec();
        spec.problems(request.profile(), Gates::NONE.with(Gate::PartitionableDevicesType)).into_result()?;
        let limit = usize::try_from(spec.limit).unwrap_or_default();
        let (pool, default_partition_type) = (spec.pool.map(str::to_owned), spec.partition_type.map(str::to_owned));
        Ok(Self { pool, limit, default_partition_type, ..Self::new(spec.driver) })
    }

    /// Only the pool of that name.
    #[must_use]
    pub fn in_pool(self, name: &str) -> Self {
        Self { pool: Some(name.to_owned()), ..self }
    }

    /// With another limit than the default. It is not bound by [`MAX_LIMIT`], which keeps a status small enough to store.
    #[must_use]
    pub fn with_limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// With the attribute that tells types of partitions in pools whose slices do not name one. An empty text is none.
    #[must_use]
    pub fn with_partition_type(self, attribute: &str) -> Self {
        Self { default_partition_type: Some(attribute.to_owned()), ..self }
    }

    /// Only pools that claims of a namespace hold devices of: the namespace-scoped variant that the KEP considers. Their
    /// counts are those of all namespaces.
    #[must_use]
    pub fn in_namespace(self, namespace: &str) -> Self {
        Self { namespace: Some(namespace.to_owned()), ..self }
    }

    /// The driver.
    #[must_use]
    pub fn driver(&self) -> &str {
        &self.driver
    }

    /// The pool, if one is asked for.
    #[must_use]
    pub fn pool(&self) -> Option<&str> {
        self.pool.as_deref()
    }

    /// The most pools to list.
    #[must_use]
    pub const fn limit(&self) -> usize {
        self.limit
    }

    /// The attribute that tells types of partitions, if the slices do not.
    #[must_use]
    pub fn default_partition_type(&self) -> Option<&str> {
        self.default_partition_type.as_deref()
    }

    /// The namespace, if one is asked for.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Whether a pool is asked for, by driver and name; both compare exactly.
    pub(crate) fn selects(&self, driver: &str, pool: &str) -> bool {
        driver == self.driver && self.pool().is_none_or(|name| name == pool)
    }
}
