//! Service `Registration`: who the driver is, and whether the kubelet has taken it.

use std::sync::{Arc, Mutex, PoisonError};

use dra_node::driver::{PluginInfo, Registration, RegistrationEvent, RegistrationReply};
use k8s_openapi::jiff::Timestamp;
use tonic::{Request, Response, Status};

use super::api::registration::registration_server::Registration as Service;
use super::api::registration::{self, InfoRequest, RegistrationStatus, RegistrationStatusResponse};

/// Registration of a driver that [`serve`](super::serve) serves: has the kubelet taken it? Clones are of one registration.
///
/// ```
/// use dra_live::grpc::RegistrationState;
/// use k8s_openapi::jiff::Timestamp;
/// let (state, start) = (RegistrationState::default(), Timestamp::UNIX_EPOCH);
/// assert!(state.is_live(start, start), "a kubelet may take its time");
/// ```
#[derive(Clone, Debug, Default)]
pub struct RegistrationState(Arc<Mutex<Registration>>);

impl RegistrationState {
    /// Returns the answer of a liveness probe: see [`Registration::is_live`].
    #[must_use]
    pub fn is_live(&self, started_at: Timestamp, now: Timestamp) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_live(started_at, now)
    }

    pub(super) fn apply(&self, event: RegistrationEvent) -> RegistrationReply {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).apply(event)
    }
}

/// Registration with the kubelet.
#[derive(Debug)]
pub(super) struct Registrar {
    pub(super) info: PluginInfo,
    pub(super) registration: RegistrationState,
}

impl Registrar {
    fn apply(&self, event: RegistrationEvent) -> Result<(), Status> {
        match self.registration.apply(event) {
            RegistrationReply::Info | RegistrationReply::Acknowledge => Ok(()),
            _ => Err(Status::unavailable("the driver stops")),
        }
    }
}

#[tonic::async_trait]
impl Service for Registrar {
    async fn get_info(&self, _: Request<InfoRequest>) -> Result<Response<registration::PluginInfo>, Status> {
        self.apply(RegistrationEvent::GetInfo)?;
        Ok(Response::new(registration::PluginInfo {
            r#type: self.info.plugin_type.to_owned(),
            name: self.info.name.clone(),
            endpoint: self.info.endpoint.clone(),
            supported_versions: self.info.supported_versions.iter().map(ToString::to_string).collect(),
        }))
    }

    async fn notify_registration_status(
        &self,
        request: Request<RegistrationStatus>,
    ) -> Result<Response<RegistrationStatusResponse>, Status> {
        let RegistrationStatus { plugin_registered, error } = request.into_inner();
        self.apply(RegistrationEvent::Notified(if plugin_registered { Ok(()) } else { Err(error) }))?;
        Ok(Response::new(RegistrationStatusResponse::default()))
    }
}
