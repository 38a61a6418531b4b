//! Requests for objects: path and query.

use crate::kinds::Kind;
use crate::refusal::Refusal;
use crate::selector::Selector;
use crate::served::Served;

/// Object, or objects, that a request is about.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Target {
    pub(crate) kind: &'static Kind,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Subresource,
}

/// Part of an object that has a path of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subresource {
    None,
    Status,
    Binding,
}

impl Target {
    /// Reads the part of a path below the version of a group.
    ///
    /// # Errors
    /// Nothing is there.
    pub(crate) fn parse(served: &Served, group: &str, version: &str, path: &[&str]) -> Result<Self, Refusal> {
        let (namespace, path) = match path {
            ["namespaces", namespace, rest @ ..] if !matches!(rest, [] | ["status"]) => (Some(*namespace), rest),
            path => (None, path),
        };
        let (plural, name, subresource) = match path {
            [plural] => (*plural, None, Subresource::None),
            [plural, name] => (*plural, Some(*name), Subresource::None),
            [plural, name, "status"] => (*plural, Some(*name), Subresource::Status),
            ["pods", name, "binding"] => ("pods", Some(*name), Subresource::Binding),
            _ => return Err(Refusal::no_path()),
        };
        let kind = served.find(group, version, plural).ok_or_else(Refusal::no_path)?;
        let fits = match namespace {
            Some(_) => kind.is_namespaced(),
            None => !kind.is_namespaced() || name.is_none(),
        };
        if !fits || (subresource == Subresource::Status && !kind.has_status()) {
            return Err(Refusal::no_path());
        }
        Ok(Self { kind, namespace: namespace.map(str::to_owned), name: name.map(str::to_owned), subresource })
    }
}

/// Query of a request.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "flags of the query")]
pub(crate) struct Options {
    pub(crate) is_watch: bool,
    pub(crate) resource_version: String,
    labels: String,
    fields: String,
    pub(crate) timeout_seconds: Option<u64>,
    pub(crate) has_bookmarks: bool,
    /// A watch begins with the objects that there are.
    pub(crate) has_initial_events: bool,
    pub(crate) is_dry_run: bool,
    pub(crate) manager: String,
    pub(crate) is_forced: bool,
    pub(crate) validation: FieldValidation,
    pub(crate) grace_period: Option<i64>,
    /// Largest number of objects of a list; 0 for all.
    pub(crate) limit: usize,
    /// Token at which a list goes on; empty for a new one.
    pub(crate) continue_from: String,
}

/// Treatment of unknown fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

impl Options {
    /// Reads a query. Parameters of other servers are passed over.
    ///
    /// # Errors
    /// A value is none that the parameter can have.
    pub(crate) fn parse(query: &str) -> Result<Self, Refusal> {
        let mut options = Self::default();
        for (parameter, value) in form_urlencoded::parse(query.as_bytes()) {
            let is_true = || matches!(&*value, "true" | "1");
            let number = || value.parse::<u32>().map_err(|_| unusable(&parameter, &value));
            match &*parameter {
                "watch" => options.is_watch = is_true(),
                "resourceVersion" => options.resource_version = value.into_owned(),
                "labelSelector" => options.labels = value.into_owned(),
                "fieldSelector" => options.fields = value.into_owned(),
                "timeoutSeconds" => options.timeout_seconds = Some(number()?.into()),
                "allowWatchBookmarks" => options.has_bookmarks = is_true(),
                "sendInitialEvents" => options.has_initial_events = is_true(),
                "dryRun" if value == "All" => options.is_dry_run = true,
                "dryRun" => return Err(unusable(&parameter, &value)),
                "fieldManager" => options.manager = value.into_owned(),
                "force" => options.is_forced = is_true(),
                "limit" => options.limit = usize::try_from(number()?).unwrap_or(usize::MAX),
                "continue" => options.continue_from = value.into_owned(),
                "gracePeriodSeconds" => options.grace_period = Some(number()?.into()),
                "fieldValidation" => {
                    options.validation = match &*value {
                        "Ignore" => FieldValidation::Ignore,
                        "" | "Warn" => FieldValidation::Warn,
                        "Strict" => FieldValidation::Strict,
                        _ => return Err(unusable(&parameter, &value)),
                    };
                }
                _ => {}
            }
        }
        Ok(options)
    }

    pub(crate) const fn has_selector(&self) -> bool {
        !self.labels.is_empty() || !self.fields.is_empty()
    }

    /// Returns the objects that a list or watch is about.
    ///
    /// # Errors
    /// A selector is malformed.
    pub(crate) fn selector(&self, target: &Target) -> Result<Selector, Refusal> {
        Selector::parse(target.kind, target.namespace.clone(), &self.labels, &self.fields)
    }

    /// Returns the version after which a watch begins; `None` to begin with the objects that there are.
    ///
    /// # Errors
    /// The version is no number.
    pub(crate) fn watched_from(&self) -> Result<Option<u64>, Refusal> {
        match self.resource_version.as_str() {
            "" | "0" => Ok(None),
            _ if self.has_initial_events => Ok(None),
            version => version.parse().map(Some).map_err(|_| unusable("resourceVersion", version)),
        }
    }
}

fn unusable(parameter: &str, value: &str) -> Refusal {
    Refusal::bad_request(format!("{parameter}: Invalid value: {value:?}"))
}
