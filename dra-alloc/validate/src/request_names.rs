//! Names of a claim's requests, and validation of references to them.

use std::collections::{BTreeMap, BTreeSet};

use dra_attrs::{FieldError, FieldPath};
use k8s_openapi::api::resource::v1::DeviceClaim;

use super::context::ValidationContext;
use super::list::List;
use super::{limits, names};

const UNKNOWN: &str =
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";

/// Names of the requests of a claim, each with the names of its subrequests.
#[derive(Debug, Default)]
pub(super) struct RequestNames<'a>(BTreeMap<&'a str, BTreeSet<&'a str>>);

impl<'a> RequestNames<'a> {
    pub(super) fn from_claim(devices: &'a DeviceClaim) -> Self {
        let requests = devices.requests.iter().flatten().map(|request| {
            let subrequests = request.first_available.iter().flatten().map(|sub| sub.name.as_str());
            (request.name.as_str(), subrequests.collect())
        });
        Self(requests.collect())
    }

    /// Returns true if `request` or `request/subrequest` exists. A reference may omit the subrequest.
    fn has(&self, reference: &str) -> bool {
        match reference.split_once('/') {
            None => self.0.contains_key(reference),
            Some((request, sub)) => self.0.get(request).is_some_and(|subrequests| subrequests.contains(sub)),
        }
    }

    /// Checks a list of references to requests.
    pub(super) fn check_list(
        &self,
        references: Option<&Vec<String>>,
        at: &FieldPath<'_>,
        context: &mut ValidationContext,
    ) {
        List::new(references).at_most(limits::REQUESTS).each_unique(
            at,
            context,
            String::as_str,
            |reference, at, context| self.check(reference, at, context),
        );
    }

    /// Checks one reference to a request.
    pub(super) fn check(&self, reference: &str, at: &FieldPath<'_>, context: &mut ValidationContext) {
        let is_path = reference.split('/').count() <= 2;
        if is_path {
            reference.split('/').for_each(|segment| names::label(segment, at, context));
        }
        if !is_path || !self.has(reference) {
            context.push(FieldError::invalid(at, reference, UNKNOWN));
        }
    }
}
