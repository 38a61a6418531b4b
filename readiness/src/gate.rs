//! The type of a gate, as it stands in `spec.readinessGates` of a Node (KEP-5233, API Changes).

use std::fmt;

use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::jiff::SignedDuration;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::name::key_problems;
use crate::taint::is_usable;

const TAINT: &str = "Taint";
const BYPASS: &str = "BypassWithWarning";

/// What happens when a condition is not met in time.
///
/// Missing and empty text is [`FailureAction::Taint`], the default of the API. Text that this version does not know is kept,
/// so that later actions (cordon, remediation) survive reading and writing; [`mod@crate::validate`] refuses it, and a gate
/// that has it is never released by time.
///
/// ```
/// use readiness::gate::FailureAction;
/// assert_eq!(FailureAction::from("Taint"), FailureAction::default());
/// assert_eq!(FailureAction::from("Cordon").to_string(), "Cordon");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FailureAction {
    /// The gate's `readinessTaint` is put on the node.
    #[default]
    Taint,
    /// A warning event is recorded.
    BypassWithWarning,
    /// An action that this version does not know.
    Other(String),
}

impl FailureAction {
    /// Text of the actions that the API accepts, sorted.
    pub const KNOWN: [&'static str; 2] = [BYPASS, TAINT];

    /// The text in the API.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Taint => TAINT,
            Self::BypassWithWarning => BYPASS,
            Self::Other(text) => text,
        }
    }
}

impl From<&str> for FailureAction {
    fn from(text: &str) -> Self {
        match text {
            "" | TAINT => Self::Taint,
            BYPASS => Self::BypassWithWarning,
            other => Self::Other(other.to_owned()),
        }
    }
}

impl fmt::Display for FailureAction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl Serialize for FailureAction {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for FailureAction {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        Ok(Self::from(text.as_deref().unwrap_or_default()))
    }
}

/// A condition that must be true before a node takes pods.
///
/// Reading is lenient, as that of every Kubernetes type: what is missing is empty. [`mod@crate::validate`] says what the API
/// server would refuse. In a patch, lists of gates merge by `conditionType` ([`NodeReadinessGate::PATCH_MERGE_KEY`]).
///
/// ```
/// use readiness::gate::{FailureAction, NodeReadinessGate};
/// let gate: NodeReadinessGate =
///     serde_json::from_str(r#"{"conditionType": "datadog.com/AgentReady", "timeoutSeconds": 180}"#)?;
/// assert_eq!(gate.failure_action, FailureAction::Taint);
/// assert_eq!(gate.releases_after(), None, "there is no taint that could take over");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[cfg_attr(
    feature = "schemars",
    schemars(description = "A condition that must be true before a node takes pods."),
    schemars(extend("required" = ["conditionType", "timeoutSeconds"]))
)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::exhaustive_structs, reason = "the fields are those of the API")]
pub struct NodeReadinessGate {
    /// Type of the entry of `status.conditions`: a domain, a slash and a name.
    #[serde(default, deserialize_with = "or_default")]
    #[cfg_attr(feature = "schemars", schemars(length(max = 238)))]
    pub condition_type: String,
    /// Seconds from Ready to the failure action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemars", schemars(with = "i32", range(min = 1)))]
    pub timeout_seconds: Option<i32>,
    /// What happens then.
    #[serde(default)]
    #[cfg_attr(feature = "schemars", schemars(with = "schema::Action"))]
    pub failure_action: FailureAction,
    /// The taint of the action `Taint`; ignored otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemars", schemars(with = "Option<schema::ReadinessTaint>"))]
    pub readiness_taint: Option<Taint>,
}

/// Null is what is missing, as for every Kubernetes type.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl NodeReadinessGate {
    /// The key by which lists of gates merge in a strategic merge patch.
    pub const PATCH_MERGE_KEY: &'static str = "conditionType";

    /// A gate without an action that could release it; see [`Self::tainting`] and [`Self::bypassing`].
    #[must_use]
    pub fn new(condition_type: impl Into<String>, timeout_seconds: i32) -> Self {
        Self { condition_type: condition_type.into(), timeout_seconds: Some(timeout_seconds), ..Self::default() }
    }

    /// The same gate with action `Taint`.
    #[must_use]
    pub fn tainting(self, taint: Taint) -> Self {
        Self { failure_action: FailureAction::Taint, readiness_taint: Some(taint), ..self }
    }

    /// The same gate with action `BypassWithWarning`.
    #[must_use]
    pub fn bypassing(self) -> Self {
        Self { failure_action: FailureAction::BypassWithWarning, ..self }
    }

    /// The taint that the failure action adds: none unless the action is `Taint`.
    #[must_use]
    pub fn taint(&self) -> Option<&Taint> {
        self.readiness_taint.as_ref().filter(|_| self.failure_action == FailureAction::Taint)
    }

    /// The taint of the failure action, if the API server takes it and nobody else adds and removes it.
    pub(crate) fn usable_taint(&self) -> Option<&Taint> {
        self.taint().filter(|taint| is_usable(taint))
    }

    /// Whether the type is a domain, a slash and a name: so it is none of kubelet's own conditions.
    pub(crate) fn has_valid_type(&self) -> bool {
        self.condition_type.contains('/') && key_problems(&self.condition_type).is_empty()
    }

    /// How long a node waits before the failure action. None: for ever, since the gate would be invalid in the API (a type
    /// without a domain, an unknown action, `Taint` without a valid taint, no timeout, or one that is not positive).
    ///
    /// ```
    /// use readiness::gate::NodeReadinessGate;
    /// let gate = NodeReadinessGate::new("a.example/Ready", 180).bypassing();
    /// assert_eq!(gate.releases_after().map(|time| time.as_secs()), Some(180));
    /// assert_eq!(NodeReadinessGate::new("a.example/Ready", -1).bypassing().releases_after(), None);
    /// ```
    #[must_use]
    pub fn releases_after(&self) -> Option<SignedDuration> {
        let has_fallback = match self.failure_action {
            FailureAction::Taint => self.usable_taint().is_some(),
            FailureAction::BypassWithWarning => true,
            FailureAction::Other(_) => false,
        };
        let seconds = self.timeout_seconds.filter(|seconds| *seconds > 0 && has_fallback && self.has_valid_type())?;
        Some(SignedDuration::from_secs(seconds.into()))
    }
}

#[cfg(feature = "schemars")]
mod schema {
    //! What the schema of a gate says in place of types that are open or foreign.
    #![expect(dead_code, reason = "only their schema is used")]

    use schemars::JsonSchema;

    /// What happens when a condition is not met in time.
    #[derive(Default, JsonSchema, serde::Serialize)]
    pub(super) enum Action {
        #[default]
        Taint,
        BypassWithWarning,
    }

    /// The effect of a taint.
    #[derive(JsonSchema)]
    pub(super) enum Effect {
        NoSchedule,
        PreferNoSchedule,
        NoExecute,
    }

    /// A taint of a node.
    #[derive(JsonSchema)]
    pub(super) struct ReadinessTaint {
        key: String,
        value: Option<String>,
        effect: Effect,
    }
}
