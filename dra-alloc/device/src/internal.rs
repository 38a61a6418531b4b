//! Parts that other packages of the family need, and nobody else: no promise is made about them.

pub use crate::allocated::of_allocation;
pub use crate::claims::pod_claims::{controller, extended_claim, is_for_pod, is_reserved_for, missing_owners};
pub use crate::claims::pod_fields::PodFields;
pub use crate::condition::validate_conditions;
pub use crate::equality::{Same, TaintTimes, same_items, same_or_empty};
pub use crate::extended_resource::{DEVICE_CLASS_PREFIX, is_extended_resource};
pub use crate::gated::{gated_fields, without_fields};
pub use crate::limits::{MAX_DEVICES, MAX_REQUESTS_PER_CLAIM};
pub use crate::places::{Place, Places};
pub use crate::pool::counter_problem;
pub use crate::pool_check::check_contents;
pub use crate::skip::aggregate::declaring;
pub use crate::slice::{has_list, is_advanced, list_fields, name_of};
pub use crate::taint::{may_select, untolerated};
pub use crate::version::ResourceVersion;
