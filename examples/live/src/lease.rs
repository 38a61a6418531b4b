//! Lease of a program of which one copy works at a time.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::PostParams;
use kube::{Api, Client, Error};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::connect::Cluster;
use super::failure::{LiveError, Trouble, text, trouble};
use super::now;
use super::stop::told_to_stop;
use crate::say::say;

/// Renewals in the time that a lease lasts without one.
const RENEWALS: u32 = 5;

/// Time before the lease is looked at anew after a call that failed.
const PAUSE: Duration = Duration::from_millis(500);

/// Place and length of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "arguments by name")]
pub struct LeaseTerms {
    /// Namespace of the lease.
    pub namespace: String,
    /// Time that the lease lasts without being renewed.
    pub duration: Duration,
}

/// Works while no other copy of the program does: waits for the lease `name`, holds it during `work`, and gives it back. Ends
/// when the work does, when the program is told to stop, or when another copy has the lease. A server that is away is waited
/// for: the work is dropped when the lease could not be renewed, and begun anew with the lease.
///
/// # Errors
/// Those of the work; leases can't be read or written; another copy has the lease.
pub async fn work_alone<E: From<LiveError>>(
    cluster: &Cluster,
    terms: &LeaseTerms,
    name: &str,
    mut work: impl AsyncFnMut() -> Result<(), E>,
) -> Result<(), E> {
    let mut stop = pin!(told_to_stop());
    loop {
        let mut held = tokio::select! {
            held = HeldLease::acquire(cluster, terms, name) => held?,
            stopped = &mut stop => return Ok(stopped?),
        };
        let ended = tokio::select! {
            ended = work() => Some(ended),
            end = held.end() => match end {
                LeaseEnd::NotRenewed(reason) => {
                    say(&format_args!("{reason}; nothing is done until the lease is held again"));
                    None
                }
                LeaseEnd::Failed(error) => Some(Err(error.into())),
            },
            stopped = &mut stop => Some(stopped.map_err(E::from)),
        };
        match ended {
            Some(ended) => {
                held.release(&cluster.client).await;
                return ended;
            }
            None => drop(held),
        }
    }
}

/// End of a lease that this program did not want.
#[derive(Debug)]
enum LeaseEnd {
    /// The lease could not be renewed in time, for a reason that may pass.
    NotRenewed(String),
    /// Another copy has the lease, or the server refuses this one.
    Failed(LiveError),
}

/// Lease that this program holds. It is renewed by a thread of its own, which waits neither for decisions nor for other calls,
/// and given back by [`HeldLease::release`].
///
/// Between the end of a lease and the moment at which its former holder notices, two copies may work; each of their writes
/// names the version that it is about, so that one of two that collide is refused.
#[derive(Debug)]
struct HeldLease {
    place: Arc<Place>,
    ended: oneshot::Receiver<LeaseEnd>,
    /// The renewal ends with this value.
    renewal: oneshot::Sender<()>,
}

#[derive(Debug)]
struct Place {
    namespace: String,
    name: String,
    identity: String,
    /// Time that the lease lasts without being renewed.
    duration: Duration,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl Place {
    fn not_renewed(&self, reason: &str) -> LeaseEnd {
        LeaseEnd::NotRenewed(format!("the lease {self} was not renewed for {} s: {reason}", self.duration.as_secs()))
    }

    fn renewal(&self) -> Duration {
        self.duration.checked_div(RENEWALS).unwrap_or_default()
    }
}

impl HeldLease {
    /// Waits until no other copy holds the lease, and takes it. For as long as it lasts without being renewed, nobody
    /// works after its holder was killed.
    async fn acquire(cluster: &Cluster, terms: &LeaseTerms, name: &str) -> Result<Self, LiveError> {
        let LeaseTerms { namespace, duration } = terms.clone();
        let place = Arc::new(Place { namespace, name: name.to_owned(), identity: identity(), duration });
        let api: Api<Lease> = Api::namespaced(cluster.client.clone(), &place.namespace);
        // The holder's clock may be another one: a lease has ended when it did not change for its duration.
        let mut seen: Option<(LeaseSpec, Instant)> = None;
        loop {
            match attempt(&api, &place, &mut seen).await? {
                Attempt::Held => break,
                Attempt::Again(_) => {}
                Attempt::Other(holder) => {
                    say(&format_args!("waiting for the lease {place}, which {holder} holds"));
                    tokio::time::sleep(place.renewal()).await;
                }
            }
        }
        let ((end, ended), (renewal, is_over)) = (oneshot::channel(), oneshot::channel());
        let (cluster, renewed) = (cluster.clone(), Arc::clone(&place));
        std::thread::spawn(move || {
            // Who has stopped to work needs no reason.
            let _ = renew_apart(&cluster, &renewed, is_over).map(|reason| end.send(reason));
        });
        Ok(Self { place, ended, renewal })
    }

    /// Waits for the end of the lease, which may be never.
    async fn end(&mut self) -> LeaseEnd {
        let ended = (&mut self.ended).await;
        ended.unwrap_or_else(|_| LeaseEnd::NotRenewed(format!("the lease {} is not renewed any more", self.place)))
    }

    /// Gives the lease back, so that another copy need not wait.
    async fn release(self, client: &Client) {
        drop(self.renewal);
        let api: Api<Lease> = Api::namespaced(client.clone(), &self.place.namespace);
        let Ok(mut lease) = api.get(&self.place.name).await else { return };
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_deref() == Some(&self.place.identity) {
            spec.holder_identity = None;
            let _ = api.replace(&self.place.name, &PostParams::default(), &lease).await;
        }
    }
}

/// Returns a name of this run, which no other run has.
fn identity() -> String {
    let host = std::fs::read_to_string("/etc/hostname").unwrap_or_default();
    format!("{}_{}_{}", host.trim(), std::process::id(), now().as_nanosecond())
}

/// Outcome of one attempt to take a lease.
enum Attempt {
    Held,
    /// It did not come to an end, for this reason.
    Again(String),
    Other(String),
}

async fn attempt(
    api: &Api<Lease>,
    place: &Place,
    seen: &mut Option<(LeaseSpec, Instant)>,
) -> Result<Attempt, LiveError> {
    let found = match api.get_opt(&place.name).await {
        Ok(found) => found,
        Err(error) => return again("get", &error).await,
    };
    let spec = found.as_ref().and_then(|lease| lease.spec.clone()).unwrap_or_default();
    let holder = spec.holder_identity.clone().filter(|holder| !holder.is_empty() && *holder != place.identity);
    if let Some(holder) = holder {
        let since = match seen {
            Some((known, since)) if *known == spec => *since,
            _ => seen.insert((spec.clone(), Instant::now())).1,
        };
        if since.elapsed() < lasting(&spec, place) {
            return Ok(Attempt::Other(holder));
        }
    }
    write(api, place, found).await
}

/// Returns the time that a lease of somebody else lasts, as its holder has written.
fn lasting(spec: &LeaseSpec, place: &Place) -> Duration {
    let seconds = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    seconds.map_or(place.duration, Duration::from_secs)
}

/// Writes that this program holds the lease now.
async fn write(api: &Api<Lease>, place: &Place, found: Option<Lease>) -> Result<Attempt, LiveError> {
    let time = Some(MicroTime(now()));
    let is_new = found.is_none();
    let mut lease = found.unwrap_or_else(|| Lease {
        metadata: ObjectMeta { name: Some(place.name.clone()), ..ObjectMeta::default() },
        spec: None,
    });
    let spec = lease.spec.get_or_insert_default();
    if spec.holder_identity.as_deref() != Some(&place.identity) {
        spec.acquire_time.clone_from(&time);
        spec.lease_transitions = Some(spec.lease_transitions.unwrap_or_default().saturating_add(1));
    }
    spec.holder_identity = Some(place.identity.clone());
    spec.lease_duration_seconds = i32::try_from(place.duration.as_secs().max(1)).ok();
    spec.renew_time = time;
    let post = PostParams::default();
    let sent = if is_new { api.create(&post, &lease).await } else { api.replace(&place.name, &post, &lease).await };
    match sent {
        Ok(_) => Ok(Attempt::Held),
        // The namespace is missing: waiting would not make it.
        Err(error) if is_new && trouble(&error) == Trouble::Missing => {
            Err(LiveError::from_call("create", "leases", &error))
        }
        Err(error) => again(if is_new { "create" } else { "update" }, &error).await,
    }
}

/// Waits before the lease is looked at anew: what was sent may have been carried out.
async fn again(verb: &'static str, error: &Error) -> Result<Attempt, LiveError> {
    if matches!(
        trouble(error),
        Trouble::Unauthenticated | Trouble::Forbidden | Trouble::NotServed | Trouble::Untrusted | Trouble::Refused
    ) {
        return Err(LiveError::from_call(verb, "leases", error));
    }
    tokio::time::sleep(PAUSE).await;
    Ok(Attempt::Again(text(error)))
}

/// Renews a lease in a runtime of its own, until nobody needs it any more; or returns what has ended it.
fn renew_apart(cluster: &Cluster, place: &Place, is_over: oneshot::Receiver<()>) -> Option<LeaseEnd> {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Some(LeaseEnd::Failed(LiveError::Runtime(error))),
    };
    runtime.block_on(async {
        let api = match cluster.another_client() {
            Ok(client) => Api::namespaced(client, &place.namespace),
            Err(error) => return Some(LeaseEnd::Failed(error)),
        };
        tokio::select! {
            end = renew(&api, place) => Some(end),
            _ = is_over => None,
        }
    })
}

/// Renews a lease until somebody else has it, or it was not renewed in time. Returns what has ended it.
async fn renew(api: &Api<Lease>, place: &Place) -> LeaseEnd {
    let (mut renewed, mut trouble) = (Instant::now(), None);
    while renewed.elapsed() < place.duration {
        let mut seen = None;
        match tokio::time::timeout(place.renewal(), attempt(api, place, &mut seen)).await {
            Ok(Ok(Attempt::Held)) => {
                (renewed, trouble) = (Instant::now(), None);
                tokio::time::sleep(place.renewal()).await;
            }
            Ok(Ok(Attempt::Other(holder))) => {
                return LeaseEnd::Failed(LiveError::LeaseTaken { lease: place.to_string(), holder });
            }
            Ok(Err(error)) => {
                trouble = Some(LeaseEnd::Failed(error));
                tokio::time::sleep(PAUSE).await;
            }
            Ok(Ok(Attempt::Again(reason))) => trouble = Some(place.not_renewed(&reason)),
            Err(_) => trouble = Some(place.not_renewed("no answer")),
        }
    }
    trouble.unwrap_or_else(|| place.not_renewed("this program did not come to it"))
}
