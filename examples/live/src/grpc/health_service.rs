//! Service `DRAResourceHealth`, in both versions. A stream hangs: it ends with the driver.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use dra_node::driver::{DeviceHealth, HealthReporter, HealthStatus};
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status};

use super::api::{health, health_v1};
use super::calls::KubeletCalls;
use crate::now;

/// Pause between two looks at the devices.
const LOOK: Duration = Duration::from_secs(1);

/// Service over the calls of a driver.
#[derive(Debug)]
pub(super) struct HealthService<C> {
    pub(super) calls: Arc<C>,
    pub(super) stopped: watch::Receiver<bool>,
}

impl<C: KubeletCalls> HealthService<C> {
    /// Returns the complete lists as they are due, until the driver stops or nobody reads them.
    fn lists(&self) -> impl Stream<Item = Vec<DeviceHealth>> + Send + use<C> {
        let (sender, lists) = tokio::sync::mpsc::channel(1);
        let (calls, mut stopped) = (Arc::clone(&self.calls), self.stopped.clone());
        tokio::spawn(async move {
            let mut reporter = HealthReporter::default();
            loop {
                reporter.set_devices(calls.health().await);
                if let Some(list) = reporter.poll(now())
                    && sender.send(list.to_vec()).await.is_err()
                {
                    return;
                }
                tokio::select! {
                    () = sleep(LOOK) => {}
                    () = sender.closed() => return,
                    // A stream that goes on would keep the driver from its end.
                    _ = stopped.wait_for(|is_stopped| *is_stopped) => return,
                }
            }
        });
        ReceiverStream::new(lists)
    }
}

macro_rules! health_service {
    ($api:ident) => {
        #[tonic::async_trait]
        impl<C: KubeletCalls> $api::dra_resource_health_server::DraResourceHealth for HealthService<C> {
            type NodeWatchResourcesStream =
                Pin<Box<dyn Stream<Item = Result<$api::NodeWatchResourcesResponse, Status>> + Send>>;

            async fn node_watch_resources(
                &self,
                _: Request<$api::NodeWatchResourcesRequest>,
            ) -> Result<Response<Self::NodeWatchResourcesStream>, Status> {
                let wire = |device: DeviceHealth| $api::DeviceHealth {
                    device: Some($api::DeviceIdentifier { pool_name: device.pool, device_name: device.device }),
                    health: match device.health {
                        HealthStatus::Unknown => $api::HealthStatus::Unknown,
                        HealthStatus::Healthy => $api::HealthStatus::Healthy,
                        HealthStatus::Unhealthy => $api::HealthStatus::Unhealthy,
                    }
                    .into(),
                    last_updated_time: now().as_second(),
                    health_check_timeout_seconds: device.timeout.map_or(0, |timeout| timeout.as_secs()),
                    message: device.message,
                };
                let response = move |list: Vec<DeviceHealth>| {
                    Ok($api::NodeWatchResourcesResponse { devices: list.into_iter().map(wire).collect() })
                };
                Ok(Response::new(Box::pin(self.lists().map(response))))
            }
        }
    };
}

health_service!(health);
health_service!(health_v1);
