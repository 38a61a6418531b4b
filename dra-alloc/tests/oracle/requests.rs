//! Reading and checking of claims before the search.

use std::collections::BTreeMap;

use dra_alloc::Gate;
use k8s_openapi::api::resource::v1::{
    CapacityRequirements, DeviceClaimConfiguration, DeviceClassConfiguration, DeviceConstraint, DeviceDerivedAttribute,
    DeviceRequest, DeviceSelector, DeviceToleration, ResourceClaim,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as KubeQuantity;

use super::constraints::Constraint;
use super::{Case, Failure, fatal};

/// Largest number of devices of one claim.
pub const MAX_DEVICES: i64 = 32;

/// Number of devices that a request is for.
#[derive(Clone, Debug)]
pub enum Wanted {
    Count(i64),
    /// Candidates of an `allocationMode: All` request, by index.
    All(Vec<usize>),
}

impl Wanted {
    pub fn number(&self) -> i64 {
        match self {
            Self::Count(count) => *count,
            Self::All(candidates) => i64::try_from(candidates.len()).unwrap_or(i64::MAX),
        }
    }
}

/// Devices that a request, or one alternative of a request, asks for.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    pub request: &'a str,
    /// Name of the alternative.
    pub alternative: Option<&'a str>,
    pub class: &'a str,
    pub class_selectors: Option<&'a Vec<DeviceSelector>>,
    pub class_config: &'a [DeviceClassConfiguration],
    pub selectors: Option<&'a Vec<DeviceSelector>>,
    pub tolerations: Option<&'a Vec<DeviceToleration>>,
    pub admin: bool,
    pub capacity: Option<&'a BTreeMap<String, KubeQuantity>>,
    /// Expressions by the name of the derived attribute.
    pub derived: BTreeMap<&'a str, &'a str>,
    pub wanted: Wanted,
}

impl Ask<'_> {
    /// Returns the name in results.
    pub fn full_name(&self) -> String {
        self.alternative.map_or_else(|| self.request.to_owned(), |sub| format!("{}/{sub}", self.request))
    }
}

/// Request, or a list of alternatives in the order of preference.
#[derive(Clone, Debug)]
pub struct RequestPlan<'a> {
    pub name: &'a str,
    pub is_list: bool,
    pub asks: Vec<Ask<'a>>,
}

#[derive(Clone, Debug)]
pub struct ClaimPlan<'a> {
    pub constraints: &'a [DeviceConstraint],
    pub config: &'a [DeviceClaimConfiguration],
    pub requests: Vec<RequestPlan<'a>>,
}

/// Fields that requests and alternatives share.
struct Fields<'a> {
    alternative: Option<&'a str>,
    class: &'a str,
    selectors: Option<&'a Vec<DeviceSelector>>,
    tolerations: Option<&'a Vec<DeviceToleration>>,
    admin_access: Option<bool>,
    capacity: Option<&'a CapacityRequirements>,
    derived: Option<&'a Vec<DeviceDerivedAttribute>>,
    mode: Option<&'a str>,
    count: Option<i64>,
}

/// Source of the devices of an `allocationMode: All` request.
pub trait AllDevices {
    fn all(&self, ask: &Ask<'_>) -> Result<Vec<usize>, Failure>;
}

/// Reads all claims in order; stops at the first error.
pub fn read<'a>(case: &'a Case, devices: &impl AllDevices) -> Result<Vec<ClaimPlan<'a>>, Failure> {
    case.claims.iter().map(|claim| read_claim(case, claim, devices)).collect()
}

fn read_claim<'a>(
    case: &'a Case,
    claim: &'a ResourceClaim,
    devices: &impl AllDevices,
) -> Result<ClaimPlan<'a>, Failure> {
    let spec = claim.spec.as_ref().and_then(|spec| spec.devices.as_ref());
    let constraints = spec.and_then(|spec| spec.constraints.as_deref()).unwrap_or_default();
    let config = spec.and_then(|spec| spec.config.as_deref()).unwrap_or_default();
    let mut requests = Vec::new();
    let mut least: i128 = 0;
    for request in spec.and_then(|spec| spec.requests.as_ref()).into_iter().flatten() {
        let plan = read_request(case, request, devices)?;
        least += plan.asks.iter().map(|ask| i128::from(ask.wanted.number())).min().unwrap_or_default();
        requests.push(plan);
    }
    if least > i128::from(MAX_DEVICES) {
        return fatal(format!("number of requested devices {least} exceeds the claim limit of {MAX_DEVICES}"));
    }
    for (index, constraint) in constraints.iter().enumerate() {
        if Constraint::of(constraint).is_none() {
            return fatal(format!("constraint #{index}: empty constraint (unsupported constraint type?)"));
        }
    }
    Ok(ClaimPlan { constraints, config, requests })
}

fn read_request<'a>(
    case: &'a Case,
    request: &'a DeviceRequest,
    devices: &impl AllDevices,
) -> Result<RequestPlan<'a>, Failure> {
    let name = request.name.as_str();
    let fields = fields_of(request);
    let is_list = request.first_available.as_ref().is_some_and(|list| !list.is_empty());
    if is_list && !case.has(Gate::PrioritizedList) {
        return fatal(format!("request {name}: has subrequests, but the DRAPrioritizedList feature is disabled"));
    }
    if fields.is_empty() {
        return fatal(format!("request {name}: unknown request type"));
    }
    if !case.has(Gate::ConsumableCapacity) && fields.iter().any(|fields| fields.capacity.is_some()) {
        return fatal(format!("request {name}: has capacity requests, but DRAConsumableCapacity is disabled"));
    }
    let asks: Result<Vec<_>, _> = fields.iter().map(|fields| read_ask(case, name, fields, devices)).collect();
    Ok(RequestPlan { name, is_list, asks: asks? })
}

fn fields_of(request: &DeviceRequest) -> Vec<Fields<'_>> {
    let list = request.first_available.iter().flatten().map(|sub| Fields {
        alternative: Some(&sub.name),
        class: &sub.device_class_name,
        selectors: sub.selectors.as_ref(),
        tolerations: sub.tolerations.as_ref(),
        admin_access: None,
        capacity: sub.capacity.as_ref(),
        derived: sub.derived_attributes.as_ref(),
        mode: sub.allocation_mode.as_deref(),
        count: sub.count,
    });
    let fields: Vec<_> = list.collect();
    if !fields.is_empty() {
        return fields;
    }
    let exactly = request.exactly.iter().map(|exactly| Fields {
        alternative: None,
        class: &exactly.device_class_name,
        selectors: exactly.selectors.as_ref(),
        tolerations: exactly.tolerations.as_ref(),
        admin_access: exactly.admin_access,
        capacity: exactly.capacity.as_ref(),
        derived: exactly.derived_attributes.as_ref(),
        mode: exactly.allocation_mode.as_deref(),
        count: exactly.count,
    });
    exactly.collect()
}

fn read_ask<'a>(
    case: &'a Case,
    request: &'a str,
    fields: &Fields<'a>,
    devices: &impl AllDevices,
) -> Result<Ask<'a>, Failure> {
    let derived = fields.derived.into_iter().flatten();
    let derived: BTreeMap<_, _> = derived.map(|entry| (entry.name.as_str(), entry.expression.as_str())).collect();
    if !derived.is_empty() && !case.has(Gate::DerivedAttributes) {
        return fatal(format!("request {request}: cannot handle derived attributes, the feature is disabled"));
    }
    if fields.selectors.into_iter().flatten().any(|selector| selector.cel.is_none()) {
        return fatal(format!("request {request}: CEL expression empty (unsupported selector type?)"));
    }
    if fields.admin_access.is_some() && !case.has(Gate::AdminAccess) {
        return fatal(format!("request {request}: admin access is requested, but the feature is disabled"));
    }
    if fields.class.is_empty() {
        return fatal(format!("request {request}: missing device class name"));
    }
    let Some(class) = case.classes.iter().find(|class| class.metadata.name.as_deref() == Some(fields.class)) else {
        return fatal(format!("request {request}: could not retrieve device class {}", fields.class));
    };
    let mut ask = Ask {
        request,
        alternative: fields.alternative,
        class: fields.class,
        class_selectors: class.spec.as_ref().and_then(|spec| spec.selectors.as_ref()),
        class_config: class.spec.as_ref().and_then(|spec| spec.config.as_deref()).unwrap_or_default(),
        selectors: fields.selectors,
        tolerations: fields.tolerations,
        admin: fields.admin_access == Some(true),
        capacity: fields.capacity.and_then(|capacity| capacity.requests.as_ref()),
        derived,
        wanted: Wanted::Count(fields.count.unwrap_or_default()),
    };
    match fields.mode {
        Some("ExactCount") => {}
        Some("All") => ask.wanted = Wanted::All(devices.all(&ask)?),
        mode => return fatal(format!("request {request}: unsupported count mode {}", mode.unwrap_or_default())),
    }
    Ok(ask)
}
