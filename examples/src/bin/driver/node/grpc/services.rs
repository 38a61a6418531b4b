//! Services of the driver: each call is a decision of `dra_alloc::driver`, carried out.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dra_alloc::driver::{
    DeviceHealth, HealthReporter, HealthStatus, PluginInfo, Registration, RegistrationEvent, RegistrationReply,
    claim_responses,
};
use dra_alloc::kubelet::{ClaimRef, PreparedDevice, Responses};
use dra_alloc::skip::SkipSet;
use examples::grpc_api::dra::dra_plugin_server::DraPlugin;
use examples::grpc_api::dra::{
    Claim, Device, NodePrepareResourceResponse, NodePrepareResourcesRequest, NodePrepareResourcesResponse,
    NodeUnprepareResourceResponse, NodeUnprepareResourcesRequest, NodeUnprepareResourcesResponse,
};
use examples::grpc_api::health::dra_resource_health_server::DraResourceHealth;
use examples::grpc_api::health::{self, NodeWatchResourcesRequest, NodeWatchResourcesResponse};
use examples::grpc_api::registration::registration_server::Registration as RegistrationService;
use examples::grpc_api::registration::{self, InfoRequest, RegistrationStatus, RegistrationStatusResponse};
use examples::output::{LineForm, put_line};
use tokio::sync::watch;
use tokio_stream::wrappers::IntervalStream;
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status};

use super::super::command::now;
use super::super::{NodeError, NodePlugin};
use super::claim_source::ClaimSource;
use super::line::Line;

/// Pause between two looks at the devices.
const LOOK: Duration = Duration::from_secs(1);

/// Preparing and unpreparing of claims.
pub(super) struct Claims {
    pub(super) driver: String,
    pub(super) plugin: NodePlugin,
    pub(super) source: ClaimSource,
    pub(super) form: LineForm,
}

impl Claims {
    /// Says what was done for a claim, and counts it. A closed output is no reason to reject claims.
    fn tell<T>(
        &self,
        method: &'static str,
        asked: &ClaimRef,
        outcome: &Result<T, NodeError>,
        line: impl FnOnce(&T) -> Line,
    ) {
        self.source.count(method, outcome.is_err());
        let line = match outcome {
            Ok(done) => line(done),
            Err(error) => Line::Failed { claim: asked.key.to_string(), method, reason: error.to_string() },
        };
        let _ = put_line(self.form, &line);
    }
}

/// Answers each claim of a call on its own.
fn answers<T>(
    claims: &[Claim],
    mut work: impl FnMut(&ClaimRef) -> Result<T, NodeError>,
) -> impl Iterator<Item = (String, Result<T, String>)> {
    let outcome = |claim: &Claim| {
        let asked = ClaimRef::new(&claim.namespace, &claim.name, &claim.uid);
        (claim.uid.clone(), work(&asked).map_err(|error| error.to_string()))
    };
    let outcomes: Responses<T> = claims.iter().map(outcome).collect();
    let answers = claim_responses(claims.iter().map(|claim| claim.uid.as_str()), outcomes);
    answers.into_iter().map(|(uid, answer)| (uid, answer.map_err(|failure| failure.to_string())))
}

fn device(device: PreparedDevice) -> Device {
    Device {
        request_names: device.requests,
        pool_name: device.pool,
        device_name: device.device,
        cdi_device_ids: device.cdi_ids,
        share_id: device.share_id,
    }
}

#[tonic::async_trait]
impl DraPlugin for Claims {
    async fn node_prepare_resources(
        &self,
        request: Request<NodePrepareResourcesRequest>,
    ) -> Result<Response<NodePrepareResourcesResponse>, Status> {
        let claims = request.into_inner().claims;
        let mut found = BTreeMap::new();
        for claim in &claims {
            let asked = ClaimRef::new(&claim.namespace, &claim.name, &claim.uid);
            found.insert(claim.uid.clone(), self.source.find(&asked).await);
        }
        let find = |asked: &ClaimRef| found.get(&asked.uid).cloned().unwrap_or_else(|| Err("not asked".to_owned()));
        let answers = answers(&claims, |asked| {
            let prepared = self.plugin.prepare(asked, &find, now());
            self.tell(SkipSet::NODE_PREPARE_RESOURCES, asked, &prepared, |devices| Line::prepared(asked, devices));
            self.source.report(&self.driver, asked, prepared.as_deref().unwrap_or_default());
            prepared
        });
        let response = |answer: Result<Vec<PreparedDevice>, String>| match answer {
            Ok(devices) => {
                NodePrepareResourceResponse { devices: devices.into_iter().map(device).collect(), error: String::new() }
            }
            Err(error) => NodePrepareResourceResponse { devices: Vec::new(), error },
        };
        let claims = answers.map(|(uid, answer)| (uid, response(answer))).collect();
        Ok(Response::new(NodePrepareResourcesResponse { claims }))
    }

    async fn node_unprepare_resources(
        &self,
        request: Request<NodeUnprepareResourcesRequest>,
    ) -> Result<Response<NodeUnprepareResourcesResponse>, Status> {
        let claims = request.into_inner().claims;
        let answers = answers(&claims, |asked| {
            self.source.end_report(asked);
            let unprepared = self.plugin.unprepare(&asked.uid, now());
            self.tell(SkipSet::NODE_UNPREPARE_RESOURCES, asked, &unprepared, |()| Line::Unprepared {
                claim: asked.key.to_string(),
            });
            unprepared
        });
        let response =
            |answer: Result<(), String>| NodeUnprepareResourceResponse { error: answer.err().unwrap_or_default() };
        let claims = answers.map(|(uid, answer)| (uid, response(answer))).collect();
        Ok(Response::new(NodeUnprepareResourcesResponse { claims }))
    }
}

/// Registration with the kubelet.
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
impl RegistrationService for Registrar {
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

/// Health of the devices that are in use: all are well as long as the ledger can be read.
pub(super) struct Health {
    pub(super) plugin: NodePlugin,
    pub(super) stopped: watch::Receiver<bool>,
}

#[tonic::async_trait]
impl DraResourceHealth for Health {
    type NodeWatchResourcesStream = Pin<Box<dyn Stream<Item = Result<NodeWatchResourcesResponse, Status>> + Send>>;

    async fn node_watch_resources(
        &self,
        _: Request<NodeWatchResourcesRequest>,
    ) -> Result<Response<Self::NodeWatchResourcesStream>, Status> {
        let plugin = self.plugin.clone();
        let mut reporter = HealthReporter::default();
        let look = move |_| {
            reporter.set_devices(plugin.health());
            let devices = reporter.poll(now())?.iter().map(wire).collect();
            Some(Ok(NodeWatchResourcesResponse { devices }))
        };
        let stopped = self.stopped.clone();
        // A stream that goes on would keep the driver from its end.
        let looks = IntervalStream::new(tokio::time::interval(LOOK)).take_while(move |_| !*stopped.borrow());
        Ok(Response::new(Box::pin(looks.filter_map(look))))
    }
}

fn wire(device: &DeviceHealth) -> health::DeviceHealth {
    let health = match device.health {
        HealthStatus::Unknown => health::HealthStatus::Unknown,
        HealthStatus::Healthy => health::HealthStatus::Healthy,
        HealthStatus::Unhealthy => health::HealthStatus::Unhealthy,
    };
    health::DeviceHealth {
        device: Some(health::DeviceIdentifier { pool_name: device.pool.clone(), device_name: device.device.clone() }),
        health: health.into(),
        last_updated_time: now().as_second(),
        health_check_timeout_seconds: device.timeout.map_or(0, |timeout| timeout.as_secs()),
        message: device.message.clone(),
    }
}
