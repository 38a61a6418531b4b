//! Lease of a program of which one copy works at a time.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::PostParams;
use kube::{Api, Client, Error};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::failure::{LiveError, Trouble, trouble};
use super::now;
use super::stop::told_to_stop;
use crate::cluster_args::LeaseArgs;
use crate::output::say;

/// Renewals in the time that a lease lasts without one.
const RENEWALS: u32 = 5;

/// Time before the lease is looked at anew after a call that failed.
const PAUSE: Duration = Duration::from_millis(500);

/// Works while no other copy of the program does: waits for the lease `name`, holds it during `work`, and gives it back. Ends
/// when the work does, when the program is told to stop, or when the lease is lost.
///
/// # Errors
/// Those of the work; leases can't be read or written; the lease is lost.
pub async fn work_alone<E: From<LiveError>>(
    client: &Client,
    lease: &LeaseArgs,
    name: &str,
    work: impl AsyncFnOnce() -> Result<(), E>,
) -> Result<(), E> {
    let mut stop = pin!(told_to_stop());
    let mut lease = tokio::select! {
        lease = HeldLease::acquire(client, lease, name) => lease?,
        stopped = &mut stop => return Ok(stopped?),
    };
    let ended = tokio::select! {
        ended = work() => ended,
        lost = lease.lost() => Err(lost.into()),
        stopped = &mut stop => stopped.map_err(E::from),
    };
    lease.release(client).await;
    ended
}

/// Lease that this program holds. It is renewed in the background, and given back by [`HeldLease::release`].
///
/// Between the end of a lease and the moment at which its former holder notices, two copies may work; each of their writes
/// names the version that it is about, so that one of two that collide is refused.
#[derive(Debug)]
struct HeldLease {
    place: Arc<Place>,
    is_lost: watch::Receiver<bool>,
    renewal: JoinHandle<()>,
}

#[derive(Debug)]
struct Place {
    namespace: String,
    name: String,
    identity: String,
    /// Time that the lease lasts without being renewed.
    duration: Duration,
}

impl Place {
    fn renewal(&self) -> Duration {
        self.duration.checked_div(RENEWALS).unwrap_or_default()
    }
}

impl HeldLease {
    /// Waits until no other copy holds the lease, and takes it. For as long as it lasts without being renewed, nobody
    /// works after its holder was killed.
    async fn acquire(client: &Client, lease: &LeaseArgs, name: &str) -> Result<Self, LiveError> {
        let (namespace, duration) = (lease.lease_namespace.clone(), lease.duration());
        let place = Arc::new(Place { namespace, name: name.to_owned(), identity: identity(), duration });
        let api: Api<Lease> = Api::namespaced(client.clone(), &place.namespace);
        // The holder's clock may be another one: a lease has ended when it did not change for its duration.
        let mut seen: Option<(LeaseSpec, Instant)> = None;
        loop {
            match attempt(&api, &place, &mut seen).await? {
                Attempt::Held => break,
                Attempt::Again => {}
                Attempt::Other(holder) => {
                    say(&format_args!(
                        "waiting for the lease {}/{}, which {holder} holds",
                        place.namespace, place.name
                    ));
                    tokio::time::sleep(place.renewal()).await;
                }
            }
        }
        let (lost, is_lost) = watch::channel(false);
        let renewed = Arc::clone(&place);
        let renewal = tokio::spawn(async move {
            renew(&api, &renewed).await;
            let _ = lost.send(true);
        });
        Ok(Self { place, is_lost, renewal })
    }

    /// Waits until the lease is lost, which may be never.
    async fn lost(&mut self) -> LiveError {
        // An ended task has lost it too.
        let _ = self.is_lost.wait_for(|is_lost| *is_lost).await;
        LiveError::LeaseLost { lease: format!("{}/{}", self.place.namespace, self.place.name) }
    }

    /// Gives the lease back, so that another copy need not wait.
    async fn release(self, client: &Client) {
        self.renewal.abort();
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
    Again,
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
    Ok(Attempt::Again)
}

/// Renews a lease until somebody else has it, or it was not renewed in time.
async fn renew(api: &Api<Lease>, place: &Place) {
    let mut renewed = Instant::now();
    while renewed.elapsed() < place.duration {
        let mut seen = None;
        match tokio::time::timeout(place.renewal(), attempt(api, place, &mut seen)).await {
            Ok(Ok(Attempt::Held)) => {
                renewed = Instant::now();
                tokio::time::sleep(place.renewal()).await;
            }
            Ok(Ok(Attempt::Other(_))) => return,
            Ok(Err(_)) => tokio::time::sleep(PAUSE).await,
            Ok(Ok(Attempt::Again)) | Err(_) => {}
        }
    }
}
