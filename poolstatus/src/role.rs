//! Permission to send and read requests, by the rules of a `ClusterRole` (KEP-5677, RBAC).
//!
//! No role of Kubernetes grants it but `cluster-admin`: administrators grant it to whom they want.

use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::status_request::StatusRequest;

/// Group of requests in the API.
const GROUP: &str = "resource.k8s.io";

/// Name of requests in URLs and rules.
const RESOURCE: &str = "resourcepoolstatusrequests";

/// Text in a rule that stands for every group, resource or verb.
const ALL: &str = "*";

impl StatusRequest<'_> {
    /// Creates the `ClusterRole` of the KEP's example, `pool-status-reader`: it grants what a user needs who asks for the
    /// status of pools, reads the answer and deletes the request.
    ///
    /// Whoever has it learns the names of drivers, pools and nodes, and how many devices of each are in use.
    ///
    /// ```
    /// use poolstatus::StatusRequest;
    /// let role = StatusRequest::reader_role();
    /// assert!(StatusRequest::is_granted_by(&role, "create", "") && StatusRequest::is_granted_by(&role, "get", "check-gpus"));
    /// assert!(!StatusRequest::is_granted_by(&role, "update", "check-gpus"));
    /// ```
    #[must_use]
    pub fn reader_role() -> ClusterRole {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let rule = PolicyRule {
            api_groups: Some(texts(&[GROUP])),
            resources: Some(texts(&[RESOURCE])),
            verbs: texts(&["create", "get", "list", "delete"]),
            ..PolicyRule::default()
        };
        let metadata = ObjectMeta { name: Some("pool-status-reader".to_owned()), ..ObjectMeta::default() };
        ClusterRole { metadata, rules: Some(vec![rule]), aggregation_rule: None }
    }

    /// Returns true if a rule of `role` grants `verb` on the `ResourcePoolStatusRequest` called `name`, as the API server's
    /// RBAC authorizer decides. `name` is empty for `create` and `list`, which a rule with `resourceNames` never grants.
    /// Linear in the size of the role.
    ///
    /// ```
    /// use k8s_openapi::api::rbac::v1::ClusterRole;
    /// use poolstatus::StatusRequest;
    /// let role: ClusterRole = serde_json::from_str(r#"{"metadata": {"name": "one"}, "rules": [
    ///     {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get"], "resourceNames": ["check-gpus"]}]}"#)?;
    /// assert!(StatusRequest::is_granted_by(&role, "get", "check-gpus"));
    /// assert!(!StatusRequest::is_granted_by(&role, "get", "other") && !StatusRequest::is_granted_by(&role, "list", ""));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn is_granted_by(role: &ClusterRole, verb: &str, name: &str) -> bool {
        let has = |texts: &[String], text: &str| texts.iter().any(|one| one == ALL || one == text);
        role.rules.iter().flatten().any(|rule| {
            let names = rule.resource_names.as_deref().unwrap_or_default();
            has(&rule.verbs, verb)
                && has(rule.api_groups.as_deref().unwrap_or_default(), GROUP)
                && has(rule.resources.as_deref().unwrap_or_default(), RESOURCE)
                && (names.is_empty() || names.iter().any(|one| one == name))
        })
    }
}
