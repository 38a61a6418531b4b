//! Condition that the controller writes into a taint rule.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::resource::v1::DeviceTaintRule;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::preview::RulePreview;
use super::time::NO_EXECUTE;

/// Shortest time between two changes of a rule's condition.
const RULE_STATUS_PERIOD: SignedDuration = SignedDuration::from_secs(10);

/// Type of the condition.
const EVICTION_IN_PROGRESS: &str = "EvictionInProgress";

/// End of the message about a rule with the effect `None`.
const NO_EFFECT: &str = "if the effect was NoExecute. This information will not be updated again. \
                         Recreate the DeviceTaintRule to trigger an update.";

/// Change of a rule's condition.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RuleUpdate {
    /// The condition has changed within ten seconds; ask again at this time.
    Wait(Timestamp),
    /// The condition is as it should be.
    Unchanged,
    /// The condition to write, by a forced apply on the rule's status.
    Write(Condition),
}

impl RuleUpdate {
    /// Decides about the condition `EvictionInProgress` of a rule.
    ///
    /// `evicted` is the number of pods that the controller has evicted because of the rule since it started. `preview` is asked
    /// only if the pods matter: for the effect `NoExecute` beside all other rules, for `None` without them.
    ///
    /// ```
    /// use dra_alloc::eviction::{RulePreview, RuleUpdate};
    /// use k8s_openapi::api::resource::v1::DeviceTaintRule;
    /// use k8s_openapi::jiff::Timestamp;
    /// let mut rule = DeviceTaintRule::default();
    /// rule.spec.taint.effect = "NoExecute".into();
    /// let update = RuleUpdate::of_rule(&rule, 1, Timestamp::UNIX_EPOCH, RulePreview::default);
    /// let RuleUpdate::Write(condition) = update else { panic!("there is none yet") };
    /// assert_eq!((condition.reason.as_str(), condition.status.as_str()), ("Completed", "False"));
    /// assert_eq!(condition.message, "1 pod evicted since starting the controller.");
    /// ```
    pub fn of_rule(
        rule: &DeviceTaintRule,
        evicted: u64,
        now: Timestamp,
        preview: impl FnOnce() -> RulePreview,
    ) -> Self {
        let conditions = rule.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let existing = conditions.into_iter().find(|condition| condition.type_ == EVICTION_IN_PROGRESS);
        let generation = rule.metadata.generation.unwrap_or_default();
        if let Some(existing) = existing {
            let next = existing.last_transition_time.0.checked_add(RULE_STATUS_PERIOD).unwrap_or(Timestamp::MAX);
            if existing.observed_generation.unwrap_or_default() == generation && now < next {
                return Self::Wait(next);
            }
        }
        let (status, reason, message) = text(&rule.spec.taint.effect, evicted, preview);
        let condition = Condition {
            last_transition_time: existing.map_or(Time(now), |existing| existing.last_transition_time.clone()),
            message,
            observed_generation: Some(generation),
            reason: reason.to_owned(),
            status: status.to_owned(),
            type_: EVICTION_IN_PROGRESS.to_owned(),
        };
        if existing == Some(&condition) {
            return Self::Unchanged;
        }
        Self::Write(Condition { last_transition_time: Time(now), ..condition })
    }
}

/// Returns status, reason and message.
fn text(effect: &str, evicted: u64, preview: impl FnOnce() -> RulePreview) -> (&'static str, &'static str, String) {
    let (status, reason, message) = match effect {
        NO_EXECUTE => {
            let preview = preview();
            match preview.pods.len() {
                0 if evicted > 0 => ("False", "Completed", String::new()),
                0 => ("False", "NotStarted", String::new()),
                pods => ("True", "PodsPendingEviction", pending(pods, preview.by_namespace().len())),
            }
        }
        "None" => ("False", "NoEffect", simulated(&preview())),
        _ => ("False", "OtherEffect", "Eviction only happens for the NoExecute effect.".to_owned()),
    };
    let gone = (evicted > 0).then(|| format!("{} evicted since starting the controller.", pods_text(evicted)));
    let parts: Vec<String> = [message].into_iter().chain(gone).filter(|part| !part.is_empty()).collect();
    (status, reason, parts.join(" "))
}

fn pending(pods: usize, namespaces: usize) -> String {
    let verb = if pods == 1 { "needs" } else { "need" };
    format!("{} {verb} to be evicted in {}.", pods_text(pods as u64), namespaces_text(namespaces))
}

fn simulated(preview: &RulePreview) -> String {
    let RulePreview { published, allocated, pods } = preview;
    let devices = |count: usize, kind: &str| {
        let ending = if count == 1 { "" } else { "s" };
        format!("{count} {kind} device{ending} selected. ")
    };
    let (published, allocated) = (devices(*published, "published"), devices(*allocated, "allocated"));
    let namespaces = namespaces_text(preview.by_namespace().len());
    format!("{published}{allocated}{} would be evicted in {namespaces} {NO_EFFECT}", pods_text(pods.len() as u64))
}

fn pods_text(count: u64) -> String {
    if count == 1 { "1 pod".to_owned() } else { format!("{count} pods") }
}

fn namespaces_text(count: usize) -> String {
    if count == 1 { "1 namespace".to_owned() } else { format!("{count} different namespaces") }
}
