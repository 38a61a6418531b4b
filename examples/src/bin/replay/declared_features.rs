//! Operations on features that nodes declare: `alloc.required_features` and `alloc.match_features`.

use dra_alloc::declared_features::DeclaredFeature;
use dra_attrs::{Profile, Version};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use serde::Deserialize;
use serde_json::{Value, json};

use super::alloc::carriers;
use super::operation::Operation;
use super::refusal::{Refusal, object, read};
use super::stopwatch::Stopwatch;

#[derive(Deserialize)]
struct RequiredInput {
    #[serde(default = "crate::operation::kep")]
    profile: Profile,
    pod: Value,
    #[serde(default)]
    claims: Vec<Value>,
    version: Option<String>,
    max_version: Option<String>,
}

pub(super) fn required_features(input: Value) -> Result<Operation, Refusal> {
    let input: RequiredInput = read(input)?;
    let pod: Pod = object("pod", input.pod)?;
    let claims: Vec<ResourceClaim> = carriers("claims", input.claims.into_iter())?;
    let target = version("version", input.version.as_deref().unwrap_or("1.37.0"))?;
    let feature = DeclaredFeature::new(input.profile);
    let feature = match &input.max_version {
        Some(text) => feature.with_max_version(version("max_version", text)?),
        None => feature,
    };
    Ok(Box::new(move |stopwatch: &mut Stopwatch| {
        let required = stopwatch.run(|| feature.required_by(&pod, &claims, &target));
        Ok(json!({"features": required.into_iter().collect::<Vec<_>>()}))
    }))
}

/// Parses a version of Kubernetes, with or without `v`.
fn version(field: &str, text: &str) -> Result<Version, Refusal> {
    let number = text.strip_prefix('v').unwrap_or(text);
    number.parse().map_err(|error: dra_attrs::VersionError| {
        Refusal::field(field, format!("{error}; a version has three numbers, such as 1.37.0"))
    })
}

#[derive(Deserialize)]
struct MatchInput {
    #[serde(default)]
    required: Vec<String>,
    #[serde(default)]
    declared: Vec<String>,
}

pub(super) fn match_features(input: Value) -> Result<Operation, Refusal> {
    let input: MatchInput = read(input)?;
    Ok(Box::new(move |stopwatch: &mut Stopwatch| {
        let required: Vec<&str> = input.required.iter().map(String::as_str).collect();
        let missing = stopwatch.run(|| DeclaredFeature::missing(&required, &input.declared));
        Ok(json!({"match": missing.is_empty(), "missing": missing}))
    }))
}
