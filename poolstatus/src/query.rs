//! Query for the pools of a driver.

use dra_attrs::{FieldErrors, Gate, GateSet};

use crate::status_request::StatusRequest;
use crate::validate_request::check_spec;

/// Query for the pools of a driver: the validated selection of a request.
///
/// ```
/// use poolstatus::Query;
/// use poolstatus::kep::ResourcePoolStatusRequest;
/// let mut request = ResourcePoolStatusRequest::default();
/// assert_eq!(Query::from_request((&request).into()).unwrap_err().to_string(), "spec.driver: Required value");
/// request.spec.driver = "gpu.example.com".into();
/// assert_eq!(Query::from_request((&request).into())?, Query::new("gpu.example.com"));
/// # Ok::<(), dra_attrs::FieldErrors>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    driver: String,
    pool: Option<String>,
    limit: usize,
    partition_type_attribute: Option<String>,
    namespace: Option<String>,
}

impl Query {
    /// Queries all pools of a driver, of which the report lists at most [`StatusRequest::DEFAULT_LIMIT`].
    #[must_use]
    pub fn new(driver: &str) -> Self {
        Self {
            driver: driver.to_owned(),
            pool: None,
            limit: usize::try_from(StatusRequest::DEFAULT_LIMIT).unwrap_or_default(),
            partition_type_attribute: None,
            namespace: None,
        }
    }

    /// Validates the spec of a request, and converts it to a query.
    ///
    /// # Errors
    /// The field errors of its spec. Feature gates are not checked here, but at the creation of the request
    /// ([`StatusRequest::validate`]).
    pub fn from_request(request: StatusRequest<'_>) -> Result<Self, FieldErrors> {
        let spec = request.spec();
        let gates = GateSet::NONE.with(Gate::PartitionableDevicesType);
        check_spec(spec, request.profile(), gates).into_result()?;
        let limit = usize::try_from(spec.limit).unwrap_or_default();
        let pool = spec.pool.map(str::to_owned);
        let partition_type_attribute = spec.partition_type_attribute.map(str::to_owned);
        Ok(Self { pool, limit, partition_type_attribute, ..Self::new(spec.driver) })
    }

    /// Selects only the pool `name` of the driver.
    #[must_use]
    pub fn with_pool(self, name: &str) -> Self {
        Self { pool: Some(name.to_owned()), ..self }
    }

    /// Sets the maximum number of pools that a report lists. It may exceed [`StatusRequest::MAX_LIMIT`], which keeps
    /// a stored status small.
    #[must_use]
    pub fn with_limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// Sets the attribute that holds the partition type of a device, for pools whose slices do not name one. An empty
    /// text sets none.
    #[must_use]
    pub fn with_partition_type_attribute(self, attribute: &str) -> Self {
        Self { partition_type_attribute: Some(attribute.to_owned()), ..self }
    }

    /// Selects only pools of which claims in `namespace` hold devices: the namespace-scoped variant that the KEP
    /// considers. The counts of the pools still include the claims of all namespaces.
    #[must_use]
    pub fn with_namespace(self, namespace: &str) -> Self {
        Self { namespace: Some(namespace.to_owned()), ..self }
    }

    /// Returns the name of the driver.
    #[must_use]
    pub fn driver(&self) -> &str {
        &self.driver
    }

    /// Returns the name of the pool, if the query selects one.
    #[must_use]
    pub fn pool(&self) -> Option<&str> {
        self.pool.as_deref()
    }

    /// Returns the maximum number of pools that a report lists.
    #[must_use]
    pub const fn limit(&self) -> usize {
        self.limit
    }

    /// Returns the attribute that holds the partition type of a device, for pools whose slices do not name one.
    #[must_use]
    pub fn partition_type_attribute(&self) -> Option<&str> {
        self.partition_type_attribute.as_deref()
    }

    /// Returns the namespace, if the query selects one.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Returns true if driver and pool name equal those of the query. A query without a pool name selects every pool.
    pub(crate) fn selects(&self, driver: &str, pool: &str) -> bool {
        driver == self.driver && self.pool().is_none_or(|name| name == pool)
    }
}
