//! Query of a request, and its rules.

use std::num::NonZeroUsize;

use dra_attrs::{BadValue, FieldError, FieldErrors, FieldPath};
use object_patches::{Object, OnConflict};
use serde_json::Value;

use crate::refusal::Refusal;
use crate::request::Target;
use crate::selector::Selector;

/// Query of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    pub(crate) is_watch: bool,
    pub(crate) resource_version: String,
    version_match: String,
    labels: String,
    fields: String,
    pub(crate) timeout_seconds: Option<u64>,
    pub(crate) has_bookmarks: bool,
    /// A watch begins with the objects that there are.
    pub(crate) initial_events: Option<bool>,
    dry_run: Vec<String>,
    pub(crate) manager: String,
    force: Option<bool>,
    validation: String,
    pub(crate) grace_period: Option<i64>,
    propagation: Option<String>,
    orphans: Option<bool>,
    /// Largest number of objects of a list; 0 for all.
    pub(crate) limit: usize,
    /// Token at which a list goes on; empty for a new one.
    pub(crate) continue_from: String,
}

/// Treatment of unknown fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

/// Verb whose options are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OptionsOf {
    Create,
    Update,
    Patch { is_apply: bool },
    Delete,
    List,
}

impl OptionsOf {
    const fn kind(self) -> &'static str {
        match self {
            Self::Create => "CreateOptions",
            Self::Update => "UpdateOptions",
            Self::Patch { .. } => "PatchOptions",
            Self::Delete => "DeleteOptions",
            Self::List => "ListOptions",
        }
    }
}

/// Longest name of a manager.
const LONGEST_MANAGER: usize = 128;

const NOT_OLDER: &str = "NotOlderThan";

impl Options {
    /// Reads a query. Parameters of other servers are passed over.
    ///
    /// # Errors
    /// A number is none.
    pub(crate) fn parse(query: &str) -> Result<Self, Refusal> {
        let mut options = Self::default();
        for (parameter, value) in form_urlencoded::parse(query.as_bytes()) {
            let is_true = || !matches!(value.to_lowercase().as_str(), "false" | "0");
            match &*parameter {
                "watch" => options.is_watch = is_true(),
                "resourceVersion" => options.resource_version = value.into_owned(),
                "resourceVersionMatch" => options.version_match = value.into_owned(),
                "labelSelector" => options.labels = value.into_owned(),
                "fieldSelector" => options.fields = value.into_owned(),
                "timeoutSeconds" => options.timeout_seconds = u64::try_from(number(&value)?).ok(),
                "allowWatchBookmarks" => options.has_bookmarks = is_true(),
                "sendInitialEvents" => options.initial_events = Some(is_true()),
                "dryRun" => options.dry_run.push(value.into_owned()),
                "fieldManager" => options.manager = value.into_owned(),
                "force" => options.force = Some(is_true()),
                "limit" => options.limit = usize::try_from(number(&value)?).unwrap_or_default(),
                "continue" => options.continue_from = value.into_owned(),
                "gracePeriodSeconds" => options.grace_period = Some(number(&value)?),
                "fieldValidation" => options.validation = value.into_owned(),
                "propagationPolicy" => options.propagation = Some(value.into_owned()),
                "orphanDependents" => options.orphans = Some(is_true()),
                _ => {}
            }
        }
        Ok(options)
    }

    /// Limits lists to so many objects, whatever the client asks for.
    pub(crate) fn cut_at(self, most: Option<NonZeroUsize>) -> Self {
        let limit = match most.map(NonZeroUsize::get) {
            Some(most) if self.limit == 0 || self.limit > most => most,
            _ => self.limit,
        };
        Self { limit, ..self }
    }

    /// Takes the options in the body of a delete, which is read instead of the query if there is one.
    ///
    /// # Errors
    /// The body is about something else than a delete.
    pub(crate) fn with_body(&self, body: &Value) -> Result<Self, Refusal> {
        let mut options = self.clone();
        if body.as_object().is_none_or(serde_json::Map::is_empty) {
            return Ok(options);
        }
        let kind = body.text("/kind");
        if !["", "DeleteOptions"].contains(&kind) {
            return Err(Refusal::bad_request(format!(
                "decoded object cannot be converted to DeleteOptions: {kind} is none"
            )));
        }
        options.grace_period = body.get("gracePeriodSeconds").and_then(Value::as_i64).or(self.grace_period);
        let texts = body.get("dryRun").and_then(Value::as_array);
        let texts = texts.into_iter().flatten().filter_map(Value::as_str);
        options.dry_run.extend(texts.map(str::to_owned));
        if let Some(policy) = body.get("propagationPolicy").and_then(Value::as_str) {
            options.propagation = Some(policy.to_owned());
        }
        options.orphans = body.get("orphanDependents").and_then(Value::as_bool).or(self.orphans);
        Ok(options)
    }

    /// Returns the options of a writer that takes fields from others.
    pub(crate) fn forced() -> Self {
        Self { force: Some(true), ..Self::default() }
    }

    pub(crate) fn is_dry_run(&self) -> bool {
        !self.dry_run.is_empty()
    }

    /// Returns true for a delete that leaves what the object owns.
    pub(crate) fn orphans(&self) -> bool {
        self.orphans == Some(true) || self.propagation.as_deref() == Some("Orphan")
    }

    pub(crate) fn on_conflict(&self) -> OnConflict {
        if self.force == Some(true) { OnConflict::Take } else { OnConflict::Refuse }
    }

    pub(crate) fn validation(&self) -> FieldValidation {
        match self.validation.as_str() {
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            _ => FieldValidation::Warn,
        }
    }

    /// Checks the options of a verb.
    ///
    /// # Errors
    /// The options contradict each other, or a value is none of its option.
    pub(crate) fn check(&self, of: OptionsOf) -> Result<(), Refusal> {
        let mut errors = FieldErrors::new();
        match of {
            OptionsOf::List if self.is_watch => self.check_watch(&mut errors),
            OptionsOf::List => self.check_list(&mut errors),
            OptionsOf::Delete => {
                self.check_deletion(&mut errors);
                self.check_dry_run(&mut errors);
            }
            _ => {
                if let OptionsOf::Patch { is_apply } = of {
                    self.check_apply(is_apply, &mut errors);
                }
                self.check_manager(&mut errors);
                self.check_dry_run(&mut errors);
                self.check_validation(&mut errors);
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(Refusal::invalid_of("meta.k8s.io", of.kind(), "", &errors)) }
    }

    fn check_manager(&self, errors: &mut FieldErrors) {
        let at = FieldPath::new("fieldManager");
        if self.manager.len() > LONGEST_MANAGER {
            errors.push(FieldError::too_long(&at, LONGEST_MANAGER));
        }
        for (place, character) in self.manager.char_indices().filter(|(_, character)| character.is_control()) {
            let detail = format!("invalid character U+{:04X} (at position {place})", u32::from(character));
            errors.push(FieldError::invalid(&at, self.manager.as_str(), detail));
        }
    }

    fn check_dry_run(&self, errors: &mut FieldErrors) {
        if self.dry_run.iter().any(|value| value != "All") {
            let shown = BadValue::literal(serde_json::to_string(&self.dry_run).unwrap_or_default());
            errors.push(FieldError::not_supported(&FieldPath::new("dryRun"), shown, &["All"]));
        }
    }

    fn check_validation(&self, errors: &mut FieldErrors) {
        let values = ["", "Ignore", "Strict", "Warn"];
        if !values.contains(&self.validation.as_str()) {
            let at = FieldPath::new("fieldValidation");
            errors.push(FieldError::not_supported(&at, self.validation.as_str(), &values));
        }
    }

    fn check_apply(&self, is_apply: bool, errors: &mut FieldErrors) {
        if !is_apply && self.force.is_some() {
            let detail = "may not be specified for non-apply patch";
            errors.push(FieldError::forbidden(&FieldPath::new("force"), detail));
        }
        if is_apply && self.manager.is_empty() {
            errors.push(FieldError::required(&FieldPath::new("fieldManager"), "is required for apply patch"));
        }
    }

    fn check_deletion(&self, errors: &mut FieldErrors) {
        let at = FieldPath::new("propagationPolicy");
        let Some(policy) = self.propagation.as_deref() else { return };
        if self.orphans.is_some() {
            let detail = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(FieldError::invalid(&at, policy, detail));
        }
        if !["Foreground", "Background", "Orphan"].contains(&policy) {
            errors.push(FieldError::not_supported(&at, policy, &["Foreground", "Background", "Orphan", "nil"]));
        }
    }

    fn check_list(&self, errors: &mut FieldErrors) {
        let at = FieldPath::new("resourceVersionMatch");
        let matched = self.version_match.as_str();
        if !matched.is_empty() {
            if self.resource_version.is_empty() {
                let detail = "resourceVersionMatch is forbidden unless resourceVersion is provided";
                errors.push(FieldError::forbidden(&at, detail));
            }
            if !self.continue_from.is_empty() {
                errors.push(FieldError::forbidden(&at, "resourceVersionMatch is forbidden when continue is provided"));
            }
            if !["Exact", NOT_OLDER].contains(&matched) {
                errors.push(FieldError::not_supported(&at, matched, &["Exact", NOT_OLDER, ""]));
            }
            if (matched, self.resource_version.as_str()) == ("Exact", "0") {
                let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
                errors.push(FieldError::forbidden(&at, detail));
            }
        }
        if self.initial_events.is_some() {
            let detail = "sendInitialEvents is forbidden for list";
            errors.push(FieldError::forbidden(&FieldPath::new("sendInitialEvents"), detail));
        }
    }

    fn check_watch(&self, errors: &mut FieldErrors) {
        let at = FieldPath::new("resourceVersionMatch");
        let matched = self.version_match.as_str();
        if self.initial_events.is_some() && matched != NOT_OLDER {
            let detail = format!("sendInitialEvents requires setting resourceVersionMatch to {NOT_OLDER}");
            errors.push(FieldError::forbidden(&at, detail));
        }
        if matched.is_empty() {
            return;
        }
        if self.initial_events.is_none() {
            let detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            errors.push(FieldError::forbidden(&at, detail));
        }
        if matched != NOT_OLDER {
            errors.push(FieldError::not_supported(&at, matched, &[NOT_OLDER]));
        }
        if !self.continue_from.is_empty() {
            errors.push(FieldError::forbidden(&at, "resourceVersionMatch is forbidden when continue is provided"));
        }
    }

    pub(crate) const fn has_selector(&self) -> bool {
        !self.labels.is_empty() || !self.fields.is_empty()
    }

    pub(crate) fn wants_exact_version(&self) -> bool {
        self.version_match == "Exact"
    }

    /// Returns the objects that a list or watch is about.
    ///
    /// # Errors
    /// A selector is malformed.
    pub(crate) fn selector(&self, target: &Target) -> Result<Selector, Refusal> {
        Selector::parse(target.kind, target.namespace.clone(), &self.labels, &self.fields)
    }

    /// Returns the version of a list or watch; 0 for any.
    ///
    /// # Errors
    /// The version is no number.
    pub(crate) fn version(&self, target: &Target) -> Result<u64, Refusal> {
        if self.resource_version.is_empty() {
            return Ok(0);
        }
        self.resource_version.parse().map_err(|error: std::num::ParseIntError| {
            let problem = match error.kind() {
                std::num::IntErrorKind::PosOverflow => "value out of range",
                _ => "invalid syntax",
            };
            let detail = format!("strconv.ParseUint: parsing {:?}: {problem}", self.resource_version);
            let at = FieldPath::new("resourceVersion");
            let errors = [FieldError::invalid(&at, self.resource_version.as_str(), detail)].into_iter().collect();
            Refusal::invalid_of(target.kind.group, target.kind.plural, "", &errors)
        })
    }

    /// Returns the version after which a watch begins; `None` to begin with the objects that there are.
    ///
    /// # Errors
    /// The version is no number.
    pub(crate) fn watched_from(&self, target: &Target) -> Result<Option<u64>, Refusal> {
        let version = self.version(target)?;
        let begins_anew = self.initial_events == Some(true) || (version == 0 && self.initial_events.is_none());
        Ok(if begins_anew { None } else { Some(version) })
    }
}

fn number(text: &str) -> Result<i64, Refusal> {
    text.parse().map_err(|error: std::num::ParseIntError| {
        let problem = match error.kind() {
            std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        Refusal::bad_request(format!("strconv.ParseInt: parsing {text:?}: {problem}"))
    })
}
