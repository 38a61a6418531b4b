//! In which order list attributes are rolled out and back (KEP-5491, KEP-6072).
//!
//! The gate `DRAListTypeAttributes` is turned on in the API servers and schedulers first; then drivers may publish lists.
//! Back, the drivers publish scalars again before the gate goes off. The kubelet plays no part. Nothing is migrated: what
//! counts is what the components are at a moment.
//!
//! ```
//! use dra_alloc::rollout::{Consequence, Form, ListSupport, Rollout, Step};
//!
//! let (off, on) = (ListSupport::Off, ListSupport::On);
//! let order = [Step::ApiServer(on), Step::Scheduler(on), Step::Driver(Form::Lists)];
//! assert!(Rollout::new(off, off).check(&order).is_ok());
//!
//! let wrong = [Step::ApiServer(on), Step::Driver(Form::Lists), Step::Scheduler(on)];
//! let error = Rollout::new(off, off).check(&wrong).unwrap_err();
//! assert_eq!((error.step, error.consequence), (1, Consequence::ClaimsPending { scheduler: off }));
//! ```

use dra_attrs::semver::Version;

/// What a component makes of list attributes, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a release without the gate, or the gate with its two values")]
pub enum ListSupport {
    /// A release that does not have the gate.
    Unknown,
    /// The gate is off.
    Off,
    /// The gate is on.
    On,
}

/// What a driver publishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "an attribute is a scalar or a list")]
pub enum Form {
    /// Scalars only, which always work.
    Scalars,
    /// Lists.
    Lists,
}

/// One change of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Step {
    /// The API servers change; of several, the one with the least support counts.
    ApiServer(ListSupport),
    /// The schedulers change; of several, the one with the least support counts.
    Scheduler(ListSupport),
    /// A kubelet changes. It does not read attributes.
    Kubelet(ListSupport),
    /// The driver is configured.
    Driver(Form),
}

/// What goes wrong while a driver publishes lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Consequence {
    /// The API server drops the lists of a slice and then refuses attributes without a value. Slices that have lists
    /// already can be updated.
    #[error("new slices with list attributes are rejected: {} in the API server", reason(*api_server))]
    PublishRejected {
        /// What the API server makes of lists.
        api_server: ListSupport,
    },
    /// Claims with a constraint on a list attribute stay pending.
    #[error("claims that match list attributes stay pending: {} in the scheduler", reason(*scheduler))]
    ClaimsPending {
        /// What the scheduler makes of lists.
        scheduler: ListSupport,
    },
}

const fn reason(support: ListSupport) -> &'static str {
    match support {
        ListSupport::Unknown => "the feature gate DRAListTypeAttributes does not exist",
        ListSupport::Off => "the feature gate DRAListTypeAttributes is off",
        ListSupport::On => "the feature gate DRAListTypeAttributes is on",
    }
}

/// A step that was taken too early or too late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("step {}: {consequence}", step.saturating_add(1))]
#[non_exhaustive]
pub struct OrderError {
    /// The index of the step.
    pub step: usize,
    /// What goes wrong from there on.
    pub consequence: Consequence,
}

impl ListSupport {
    /// Minor release of Kubernetes 1 that has the gate first, off by default.
    const SINCE: u64 = 36;

    /// What a component of a release makes of lists, given what its configuration says about the gate, if anything.
    ///
    /// ```
    /// use dra_alloc::rollout::ListSupport;
    /// assert_eq!(ListSupport::of(&"1.35.4".parse()?, Some(true)), ListSupport::Unknown);
    /// assert_eq!(ListSupport::of(&"1.37.0".parse()?, None), ListSupport::Off);
    /// assert_eq!(ListSupport::of(&"1.37.0".parse()?, Some(true)), ListSupport::On);
    /// # Ok::<(), dra_attrs::semver::VersionError>(())
    /// ```
    #[must_use]
    pub fn of(release: &Version, gate: Option<bool>) -> Self {
        match (release.major(), release.minor()) {
            (0, _) => Self::Unknown,
            (1, minor) if minor < Self::SINCE => Self::Unknown,
            _ if gate == Some(true) => Self::On,
            _ => Self::Off,
        }
    }
}

/// The components that matter, at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rollout {
    /// The API servers.
    pub api_server: ListSupport,
    /// The schedulers.
    pub scheduler: ListSupport,
    /// The driver.
    pub driver: Form,
}

impl Rollout {
    /// A cluster whose driver publishes scalars.
    #[must_use]
    pub const fn new(api_server: ListSupport, scheduler: ListSupport) -> Self {
        Self { api_server, scheduler, driver: Form::Scalars }
    }

    /// The cluster after a step.
    #[must_use]
    pub const fn after(self, step: Step) -> Self {
        match step {
            Step::ApiServer(api_server) => Self { api_server, ..self },
            Step::Scheduler(scheduler) => Self { scheduler, ..self },
            Step::Kubelet(_) => self,
            Step::Driver(driver) => Self { driver, ..self },
        }
    }

    /// What goes wrong now; the gravest first.
    ///
    /// ```
    /// use dra_alloc::rollout::{Form, ListSupport, Rollout, Step};
    /// let lists = Rollout::new(ListSupport::Off, ListSupport::Off).after(Step::Driver(Form::Lists));
    /// assert_eq!(
    ///     lists.consequences()[0].to_string(),
    ///     "new slices with list attributes are rejected: the feature gate DRAListTypeAttributes is off in the API server"
    /// );
    /// ```
    #[must_use]
    pub fn consequences(self) -> Vec<Consequence> {
        let Self { api_server, scheduler, driver } = self;
        if driver == Form::Scalars {
            return Vec::new();
        }
        let rejected = (api_server < ListSupport::On).then_some(Consequence::PublishRejected { api_server });
        let pending = (scheduler < ListSupport::On).then_some(Consequence::ClaimsPending { scheduler });
        rejected.into_iter().chain(pending).collect()
    }

    /// What would go wrong if the driver published lists now. Nothing means that it may.
    ///
    /// ```
    /// use dra_alloc::rollout::{ListSupport, Rollout};
    /// assert!(Rollout::new(ListSupport::On, ListSupport::On).before_lists().is_empty());
    /// assert_eq!(Rollout::new(ListSupport::On, ListSupport::Off).before_lists().len(), 1);
    /// ```
    #[must_use]
    pub fn before_lists(self) -> Vec<Consequence> {
        self.after(Step::Driver(Form::Lists)).consequences()
    }

    /// Takes steps in order.
    ///
    /// # Errors
    /// The first step after which something goes wrong.
    pub fn check(self, steps: &[Step]) -> Result<Self, OrderError> {
        steps.iter().enumerate().try_fold(self, |state, (index, step)| {
            let state = state.after(*step);
            match state.consequences().first() {
                Some(&consequence) => Err(OrderError { step: index, consequence }),
                None => Ok(state),
            }
        })
    }
}
