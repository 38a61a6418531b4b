//! Readiness gate: an entry of `spec.readinessGates` of a Node (KEP-5233, API Changes).

use std::fmt;

use dra_attrs::NameFormat;
use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::jiff::SignedDuration;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::condition::{is_known, is_standard};
use crate::gate_label::{GATE_LABEL_PREFIX, GateLabelError, key_problem};
use crate::taint::is_usable;

const TAINT: &str = "Taint";
const BYPASS: &str = "BypassWithWarning";

/// Action taken if the condition of a gate is not True within the gate's timeout.
///
/// Missing and empty text is [`FailureAction::Taint`], the default of the API. Unknown text is kept, so that actions of later
/// versions (cordon, remediation) survive reading and writing. [`validate`](crate::validate) refuses it, and a gate with an
/// unknown action is never released by time.
///
/// ```
/// use readiness::FailureAction;
/// assert_eq!(FailureAction::from("Taint"), FailureAction::default());
/// assert_eq!(FailureAction::from("Cordon").to_string(), "Cordon");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FailureAction {
    /// Adds the gate's `readinessTaint` to the node.
    #[default]
    Taint,
    /// Lets pods onto the node although the gate is not met, and records a warning event.
    BypassWithWarning,
    /// Name of an action that this crate does not know. It is preserved on reading and writing.
    Other(String),
}

impl FailureAction {
    /// Names of the actions that the API accepts, sorted.
    pub(crate) const KNOWN: [&'static str; 2] = [BYPASS, TAINT];

    /// Returns the name of the action in the API, such as `Taint`.
    fn as_str(&self) -> &str {
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

/// Readiness gate of a node: a condition that must be True before pods are scheduled to the node.
///
/// Deserialising is lenient, as for every Kubernetes type: missing fields are empty. [`validate`](crate::validate) returns the
/// errors of the API server. In a patch, lists of gates merge by `conditionType` ([`NodeReadinessGate::PATCH_MERGE_KEY`]).
///
/// ```
/// use readiness::{FailureAction, NodeReadinessGate};
/// let gate: NodeReadinessGate =
///     serde_json::from_str(r#"{"conditionType": "datadog.com/AgentReady", "timeoutSeconds": 180}"#)?;
/// assert_eq!(gate.failure_action, FailureAction::Taint);
/// assert_eq!(gate.releases_after(), None, "never: the action Taint needs a readinessTaint");
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
#[non_exhaustive]
pub struct NodeReadinessGate {
    /// Type of the condition in `status.conditions`: a domain, a slash and a name.
    #[serde(default, deserialize_with = "or_default")]
    #[cfg_attr(feature = "schemars", schemars(length(max = 238)))]
    pub condition_type: String,
    /// Timeout in seconds: the time from the node's Ready to the failure action. Must be positive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemars", schemars(with = "i32", range(min = 1)))]
    pub timeout_seconds: Option<i32>,
    /// Action taken if the condition is not True within the timeout.
    #[serde(default)]
    #[cfg_attr(feature = "schemars", schemars(with = "schema::Action"))]
    pub failure_action: FailureAction,
    /// Taint that the action `Taint` adds to the node. Ignored for other actions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemars", schemars(with = "Option<schema::ReadinessTaint>"))]
    pub readiness_taint: Option<Taint>,
}

/// Deserialises a field; `null` becomes the default of its type, as in Kubernetes.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Deserialises a list of gates. A string is a gate of that condition type alone, as in the KEP's alternative form: the
/// API server wants a timeout and an action, and until they are set the gate never times out.
pub(crate) fn gate_list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<NodeReadinessGate>, D::Error> {
    let entries: Option<Vec<Value>> = Option::deserialize(deserializer)?;
    let read = |entry: Value| match entry {
        Value::String(condition_type) => Ok(NodeReadinessGate { condition_type, ..NodeReadinessGate::default() }),
        gate => NodeReadinessGate::deserialize(gate).map_err(D::Error::custom),
    };
    entries.unwrap_or_default().into_iter().map(read).collect()
}

impl NodeReadinessGate {
    /// Key by which lists of gates merge in a strategic merge patch.
    pub const PATCH_MERGE_KEY: &'static str = "conditionType";

    /// Value of the node labels that name readiness gates.
    pub const LABEL_VALUE: &'static str = "true";

    /// Creates a gate with the action `Taint` but without the taint that it adds. It never times out until
    /// [`Self::with_taint`] or [`Self::with_bypass_warning`] is called.
    #[must_use]
    pub fn new(condition_type: impl Into<String>, timeout_seconds: i32) -> Self {
        Self { condition_type: condition_type.into(), timeout_seconds: Some(timeout_seconds), ..Self::default() }
    }

    /// Sets the failure action `Taint` and the taint that it adds to the node.
    #[must_use]
    pub fn with_taint(self, taint: Taint) -> Self {
        Self { failure_action: FailureAction::Taint, readiness_taint: Some(taint), ..self }
    }

    /// Sets the failure action `BypassWithWarning`.
    #[must_use]
    pub fn with_bypass_warning(self) -> Self {
        Self { failure_action: FailureAction::BypassWithWarning, ..self }
    }

    /// Returns the taint that the failure action adds. `None` unless the action is `Taint`.
    #[must_use]
    pub fn taint(&self) -> Option<&Taint> {
        self.readiness_taint.as_ref().filter(|_| self.failure_action == FailureAction::Taint)
    }

    /// Returns the taint that the failure action adds, if the API server accepts it and no other component manages its
    /// key.
    pub(crate) fn usable_taint(&self) -> Option<&Taint> {
        self.taint().filter(|taint| is_usable(taint))
    }

    /// Returns true if the condition type has the form `domain/name`. kubelet's own types, such as `Ready`, have no
    /// domain.
    pub(crate) fn has_valid_type(&self) -> bool {
        self.condition_type.contains('/') && NameFormat::LabelKey.problems(&self.condition_type).is_empty()
    }

    /// Returns true if the condition type belongs to Kubernetes: its domain is `kubernetes.io` or a subdomain of it.
    ///
    /// ```
    /// use readiness::NodeReadinessGate;
    /// let gate = |name: &str| NodeReadinessGate::new(name, 60);
    /// assert!(gate("network.kubernetes.io/CNIReady").is_standard() && gate("kubernetes.io/Anything").is_standard());
    /// assert!(!gate("mykubernetes.io/Anything").is_standard() && !gate("kubernetes.io").is_standard());
    /// assert!(gate("network.kubernetes.io/CNIReady").is_known() && !gate("kubernetes.io/Anything").is_known());
    /// ```
    #[must_use]
    pub fn is_standard(&self) -> bool {
        is_standard(&self.condition_type)
    }

    /// Returns true if KEP-5233 defines the condition type: `CNIReady` or `NetworkProxyReady` below
    /// `network.kubernetes.io`.
    #[must_use]
    pub fn is_known(&self) -> bool {
        is_known(&self.condition_type)
    }

    /// Returns the key of the gate's label: the prefix `readiness-gate.` and the condition type.
    ///
    /// # Errors
    /// A condition type that is not a domain, a slash and a name, or whose domain has more than 238 bytes: see
    /// [`ValidationOptions::with_limit_of_domain`](crate::validate::ValidationOptions::with_limit_of_domain).
    ///
    /// ```
    /// use readiness::NodeReadinessGate;
    /// let gate = NodeReadinessGate::new("datadog.com/AgentReady", 180);
    /// assert_eq!(gate.label_key()?, "readiness-gate.datadog.com/AgentReady");
    /// assert!(NodeReadinessGate::new("Ready", 180).label_key().is_err());
    /// # Ok::<(), readiness::GateLabelError>(())
    /// ```
    pub fn label_key(&self) -> Result<String, GateLabelError> {
        let condition_type = &self.condition_type;
        match key_problem(condition_type) {
            Some(detail) => Err(GateLabelError { condition_type: condition_type.clone(), detail }),
            None => Ok(format!("{GATE_LABEL_PREFIX}{condition_type}")),
        }
    }

    /// Returns the timeout of the gate. `None` if the gate is invalid, and so never times out: a type without a domain,
    /// an unknown action, `Taint` without a valid taint, or no positive timeout.
    ///
    /// ```
    /// use readiness::NodeReadinessGate;
    /// let gate = NodeReadinessGate::new("a.example/Ready", 180).with_bypass_warning();
    /// assert_eq!(gate.releases_after().map(|time| time.as_secs()), Some(180));
    /// assert_eq!(NodeReadinessGate::new("a.example/Ready", -1).with_bypass_warning().releases_after(), None);
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
    //! Schemas of fields whose Rust type is open or foreign.
    #![expect(dead_code, reason = "only their schema is used")]

    use schemars::JsonSchema;

    /// Action taken if the condition of a gate is not True within the gate's timeout.
    #[derive(Default, JsonSchema, serde::Serialize)]
    pub(super) enum Action {
        #[default]
        Taint,
        BypassWithWarning,
    }

    /// Effect of a taint.
    #[derive(JsonSchema)]
    pub(super) enum Effect {
        NoSchedule,
        PreferNoSchedule,
        NoExecute,
    }

    /// Taint of a node.
    #[derive(JsonSchema)]
    pub(super) struct ReadinessTaint {
        key: String,
        value: Option<String>,
        effect: Effect,
    }
}
