//! Service `Registration`: who the driver is, and whether the kubelet has taken it.

use std::sync::{Arc, Mutex, PoisonError};

use dra_node::driver::{PluginInfo, Registration, RegistrationEvent, RegistrationReply};
use tonic::{Request, Response, Status};

use super::api::registration::registration_server::Registration as Service;
use super::api::registration::{self, InfoRequest, RegistrationStatus, RegistrationStatusResponse};

/// Registration with the kubelet.
#[derive(Debug)]
pub(super) struct Registrar {
    pub(super) info: PluginInfo,
    pub(super) registration: Arc<Mutex<Registration>>,
}

impl Registrar {
    fn apply(&self, event: RegistrationEvent) -> Result<(), Status> {
        let reply = self.registration.lock().unwrap_or_else(PoisonError::into_inner).apply(event);
        match reply {
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
