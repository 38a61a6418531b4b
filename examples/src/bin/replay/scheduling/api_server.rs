//! API server of a replayed cycle: optimistic concurrency, answers that fail on request, and a log of all calls.

use dra_alloc::pods::{ApiResponse, ClaimWrite};
use examples::claim_store::{ClaimStore, conflict};
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceClaimConsumerReference};
use serde_json::{Map, Value, json};

use super::input::devices;
use crate::refusal::Refusal;

/// Answers that a call can be made to have.
const ANSWERS: [&str; 3] = ["conflict", "invalid", "boom"];

/// A call that fails once.
#[derive(Clone)]
struct Failure {
    /// Verb, resource and subresource.
    call: String,
    answer: &'static str,
}

/// Claims of an API server, the calls that will fail, and the calls since the last look.
#[derive(Clone, Default)]
pub(super) struct ApiServer {
    pub(super) store: ClaimStore,
    failures: Vec<Failure>,
    calls: Vec<Value>,
}

impl ApiServer {
    pub(super) fn new(claims: impl IntoIterator<Item = ResourceClaim>, failures: &[String]) -> Result<Self, Refusal> {
        let mut server = Self::default();
        for (index, failure) in failures.iter().enumerate() {
            let known = failure.split_once('=').and_then(|(call, answer)| {
                let answer = ANSWERS.iter().find(|known| **known == answer)?;
                Some(Failure { call: call.to_owned(), answer })
            });
            let invalid =
                || Refusal::field(&format!("fail[{index}]"), "expected VERB RESOURCE=conflict, invalid or boom");
            server.failures.push(known.ok_or_else(invalid)?);
        }
        claims.into_iter().for_each(|claim| drop(server.store.put(claim)));
        Ok(server)
    }

    /// Returns the calls since the last look.
    pub(super) fn take_calls(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.calls)
    }

    /// Answers a call and logs it.
    pub(super) fn call(&mut self, write: &ClaimWrite) -> ApiResponse {
        let name_of = |claim: &ResourceClaim| claim.metadata.name.clone().unwrap_or_default();
        let (verb, resource, subresource, name) = match write {
            ClaimWrite::Create { .. } => ("create", "resourceclaims", None, String::new()),
            ClaimWrite::Update { claim } => ("update", "resourceclaims", None, name_of(claim)),
            ClaimWrite::UpdateStatus { claim } => ("update", "resourceclaims", Some("status"), name_of(claim)),
            ClaimWrite::PatchReservation { name, .. } => ("patch", "resourceclaims", Some("status"), name.clone()),
            ClaimWrite::PatchPodStatus { name, .. } => ("patch", "pods", Some("status"), name.clone()),
            ClaimWrite::Delete { name, .. } => ("delete", "resourceclaims", None, name.clone()),
            ClaimWrite::Get { name, .. } => ("get", "resourceclaims", None, name.clone()),
            _ => return ApiResponse::Failed("the replayed API server does not know the call".to_owned()),
        };
        let mut log = Map::from_iter([
            ("verb".to_owned(), json!(verb)),
            ("resource".to_owned(), json!(resource)),
            ("subresource".to_owned(), json!(subresource)),
            ("name".to_owned(), json!(name)),
        ]);
        log.extend(changes(write));
        let call = format!("{verb} {resource}{}", subresource.map(|name| format!("/{name}")).unwrap_or_default());
        let injected = self.failures.iter().position(|failure| failure.call == call);
        let (answer, error) = if let Some(index) = injected {
            let error = self.failures.remove(index).answer;
            (failed(error, resource, &name), Some(error))
        } else {
            let answer = self.store.call(write);
            let is_conflict = matches!(answer, ApiResponse::Conflict(_));
            (answer, is_conflict.then_some("conflict"))
        };
        log.extend(error.map(|error| ("error".to_owned(), json!(error))));
        self.calls.push(Value::Object(log));
        answer
    }
}

/// Answers a call that fails. Nothing of it is stored here, so that the claim need not be read to know it.
fn failed(answer: &str, resource: &str, name: &str) -> ApiResponse {
    match (answer, resource) {
        ("conflict", _) => conflict(name),
        ("invalid", _) => ApiResponse::Failed(format!("ResourceClaim.resource.k8s.io {name:?} is invalid")),
        (other, "resourceclaims") => ApiResponse::Failed(format!("Internal error occurred: {other}")),
        (other, _) => ApiResponse::Unavailable(format!("Internal error occurred: {other}")),
    }
}

/// Returns what a write changes, as the log shows it.
pub(super) fn changes(write: &ClaimWrite) -> Vec<(String, Value)> {
    let fields = match write {
        ClaimWrite::Update { claim } => vec![("finalizers", json!(claim.metadata.finalizers))],
        ClaimWrite::UpdateStatus { claim } => {
            let status = claim.status.clone().unwrap_or_default();
            let allocation = status.allocation.as_ref();
            let timestamp = allocation.is_some_and(|allocation| allocation.allocation_timestamp.is_some());
            let reserved: Vec<String> = status.reserved_for.iter().flatten().map(consumer).collect();
            vec![
                ("allocation", json!(allocation.map(devices))),
                ("devices", json!(status.devices.map_or(0, |devices| devices.len()))),
                ("reservedFor", json!(reserved)),
                ("timestamp", json!(timestamp)),
            ]
        }
        ClaimWrite::Create { claim } => vec![
            ("annotations", json!(claim.metadata.annotations)),
            ("generateName", json!(claim.metadata.generate_name)),
            ("owners", json!(claim.metadata.owner_references)),
            ("spec", json!(claim.spec)),
        ],
        ClaimWrite::PatchReservation { .. } | ClaimWrite::PatchPodStatus { .. } => {
            vec![("patch", json!(write.patch())), ("patchType", json!("application/strategic-merge-patch+json"))]
        }
        _ => Vec::new(),
    };
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn consumer(entry: &ResourceClaimConsumerReference) -> String {
    format!("{}/{}/{}", entry.resource, entry.name, entry.uid)
}
