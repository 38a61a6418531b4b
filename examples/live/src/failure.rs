//! Failures of calls to an API server, each as one sentence that says what to do.

use std::io;
use std::net::SocketAddr;

use kube::Error;
use kube::core::Status;
use kube::runtime::watcher;
use tokio_rustls::rustls::{AlertDescription, Error as TlsError};

use super::answers::AnswerError;
use crate::causes::{causes, with_causes};

/// Reason that a program can't go on with its cluster.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// There is neither a kubeconfig nor a service account.
    #[error("no cluster to work on: {0}")]
    NoConfig(String),
    /// The server did not answer.
    #[error("{url}: no answer: {error}")]
    Unreachable {
        /// Address of the server.
        url: String,
        /// Last error.
        error: String,
    },
    /// The server's certificate is not to be trusted.
    #[error(
        "{url}: the server's certificate is refused: {error}; it has to be valid for that host now, and signed by the \
         certificate-authority of the kubeconfig"
    )]
    Untrusted {
        /// Address of the server.
        url: String,
        /// Error of the handshake.
        error: String,
    },
    /// The server does not know who asks.
    #[error(
        "the API server does not know who asks: {0}; the token or client certificate of the kubeconfig is missing, wrong or \
         has expired"
    )]
    Unauthenticated(String),
    /// The program is not allowed to do something.
    #[error("not allowed to {verb} {resource}: {answer}; the program's role needs that verb")]
    Forbidden {
        /// Verb of the request.
        verb: &'static str,
        /// Resource of the request.
        resource: &'static str,
        /// Text of the server.
        answer: String,
    },
    /// The server has no such kind.
    #[error("the API server does not serve {resource}: {}", needs(resource))]
    NotServed {
        /// Resource of the request.
        resource: &'static str,
    },
    /// The server has refused a call for another reason.
    #[error("{verb} {resource}: {error}")]
    Call {
        /// Verb of the request.
        verb: &'static str,
        /// Resource of the request.
        resource: &'static str,
        /// Error of the call.
        error: String,
    },
    /// Another copy of the program works now.
    #[error(
        "{holder} holds the lease {lease} now: another copy of the program works; this one ends, and may be started again"
    )]
    LeaseTaken {
        /// Namespace and name of the lease.
        lease: String,
        /// Holder of the lease.
        holder: String,
    },
    /// Lists of a cluster did not come in time.
    #[error(
        "the lists of the cluster did not come in half a minute: {listed} of {kinds} kinds; the lines above say why"
    )]
    NotListed {
        /// Number of kinds whose list is there.
        listed: usize,
        /// Number of all kinds.
        kinds: usize,
    },
    /// The version of the server can't be read.
    #[error(transparent)]
    Version(#[from] dra_attrs::ServerVersionError),
    /// Metrics can't be served at an address.
    #[error("metrics at {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Error of the operating system.
        error: io::Error,
    },
    /// The program could not be started.
    #[error(transparent)]
    Runtime(io::Error),
}

/// Class of a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trouble {
    /// No answer, or one that asks for patience: the call may have been carried out.
    Unanswered,
    /// The server asks to come back later, and has done nothing.
    Later,
    /// The object has changed since it was read, is another one, or is not in a state for the call.
    Conflict,
    /// There is an object of this name.
    Exists,
    /// There is no such object.
    Missing,
    /// The server has no such kind.
    NotServed,
    /// The server does not know the caller.
    Unauthenticated,
    /// The caller has no permission.
    Forbidden,
    /// The certificate of the server is not to be trusted.
    Untrusted,
    /// Anything else, which a repetition would not change.
    Refused,
}

/// Alerts with which a server ends the handshake since the client's certificate is missing or no good.
const NO_CLIENT_CERTIFICATE: [AlertDescription; 6] = [
    AlertDescription::CertificateRequired,
    AlertDescription::BadCertificate,
    AlertDescription::UnsupportedCertificate,
    AlertDescription::CertificateRevoked,
    AlertDescription::CertificateExpired,
    AlertDescription::CertificateUnknown,
];

/// Classifies a failed call.
#[must_use]
pub fn trouble(error: &Error) -> Trouble {
    match error {
        Error::Api(status) => trouble_of_status(status),
        Error::HyperError(error) => trouble_of_connection(error),
        Error::Service(error) => trouble_of_connection(&**error),
        Error::ReadEvents(_) | Error::HttpError(_) => Trouble::Unanswered,
        // An answer that was cut off.
        Error::SerdeError(error) if error.is_eof() => Trouble::Unanswered,
        _ => Trouble::Refused,
    }
}

/// Classifies a call without an answer by the TLS of its connection.
fn trouble_of_connection(error: &(dyn std::error::Error + 'static)) -> Trouble {
    if causes(error).any(|cause| matches!(cause.downcast_ref(), Some(AnswerError::TooLong { .. }))) {
        return Trouble::Refused;
    }
    match causes(error).find_map(of_tls) {
        Some(TlsError::InvalidCertificate(_)) => Trouble::Untrusted,
        Some(TlsError::AlertReceived(alert)) if NO_CLIENT_CERTIFICATE.contains(alert) => Trouble::Unauthenticated,
        _ => Trouble::Unanswered,
    }
}

/// Returns the error of TLS in an error, which may have errors of IO around it.
fn of_tls<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e TlsError> {
    let mut error = error;
    while let Some(outer) = error.downcast_ref::<io::Error>() {
        error = outer.get_ref()?;
    }
    error.downcast_ref()
}

fn trouble_of_status(status: &Status) -> Trouble {
    let is_about_object = status.details.as_ref().is_some_and(|details| !details.name.is_empty());
    match (status.code, status.reason.as_str()) {
        (409, "AlreadyExists") => Trouble::Exists,
        (409, _) => Trouble::Conflict,
        (404, _) if is_about_object => Trouble::Missing,
        (404, _) => Trouble::NotServed,
        (401, _) => Trouble::Unauthenticated,
        (403, _) => Trouble::Forbidden,
        (429 | 503, _) => Trouble::Later,
        (500 | 502 | 504, _) => Trouble::Unanswered,
        _ => Trouble::Refused,
    }
}

impl LiveError {
    /// Builds the error of a call.
    #[must_use]
    pub fn from_call(verb: &'static str, resource: &'static str, error: &Error) -> Self {
        match trouble(error) {
            Trouble::Unauthenticated => Self::Unauthenticated(text(error)),
            Trouble::Forbidden => Self::Forbidden { verb, resource, answer: text(error) },
            Trouble::NotServed => Self::NotServed { resource },
            _ => Self::Call { verb, resource, error: text(error) },
        }
    }

    /// Builds the error of the first call to a server.
    #[must_use]
    pub fn from_first_call(url: String, error: &Error) -> Self {
        match trouble(error) {
            Trouble::Unauthenticated | Trouble::Forbidden => Self::from_call("get", "/version", error),
            Trouble::Untrusted => Self::Untrusted { url, error: text(error) },
            _ => Self::Unreachable { url, error: text(error) },
        }
    }

    /// Returns the error that ends a watch for good; `None` for one that the next attempt may not have.
    #[must_use]
    pub fn from_watch(resource: &'static str, error: &watcher::Error) -> Option<Self> {
        let (verb, error) = match error {
            watcher::Error::InitialListFailed(error) => ("list", error),
            watcher::Error::WatchStartFailed(error) => ("watch", error),
            _ => return None,
        };
        matches!(trouble(error), Trouble::Unauthenticated | Trouble::Forbidden | Trouble::NotServed)
            .then(|| Self::from_call(verb, resource, error))
    }
}

/// Returns the text of an interrupted watch.
#[must_use]
pub fn watch_text(error: &watcher::Error) -> String {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => text(error),
        watcher::Error::WatchError(status) => status.message.clone(),
        watcher::Error::NoResourceVersion => error.to_string(),
    }
}

/// Returns the server's own words, or those of the way to it.
#[must_use]
pub fn text(error: &Error) -> String {
    match error {
        Error::Api(status) => status.message.clone(),
        Error::HyperError(error) => with_causes(error),
        Error::Service(error) => with_causes(&**error),
        Error::ReadEvents(error) => with_causes(error),
        Error::SerdeError(error) if error.is_eof() => format!("the answer is cut off: {error}"),
        Error::SerdeError(error) => format!("the answer is no object of the Kubernetes API: {error}"),
        error => error.to_string(),
    }
}

/// Kinds that not every cluster has, with what they need.
const NEEDS: [(&str, &str); 4] = [
    (
        "resourcepoolstatusrequests",
        "it needs Kubernetes 1.36 with the gate DRAResourcePoolStatus and v1alpha3 of resource.k8s.io",
    ),
    ("devicetaintrules", "Kubernetes 1.36 has it in v1beta2, with the gate DRADeviceTaintRules, and 1.37 in v1"),
    ("deviceclasses", "v1 of resource.k8s.io has it since Kubernetes 1.34"),
    ("resource", "v1 of resource.k8s.io has it since Kubernetes 1.34"),
];

fn needs(resource: &str) -> &'static str {
    let found = NEEDS.iter().find(|(beginning, _)| resource.starts_with(beginning));
    found.map_or("its version of Kubernetes does not have it", |(_, needs)| needs)
}
