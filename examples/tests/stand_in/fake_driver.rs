//! Driver on a socket that behaves as a test says.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use dra_live::grpc::api::dra::dra_plugin_server::{DraPlugin, DraPluginServer};
use dra_live::grpc::api::dra::{
    Claim, Device, NodePrepareResourceResponse, NodePrepareResourcesRequest, NodePrepareResourcesResponse,
    NodeUnprepareResourceResponse, NodeUnprepareResourcesRequest, NodeUnprepareResourcesResponse,
};
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

/// Way in which a driver answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    Works,
    /// It never answers.
    Hangs,
    /// It answers for a claim that it was not asked about.
    AnswersForOthers,
    /// Its answer has no claim.
    AnswersNothing,
    /// It answers with its device a number of times.
    Repeats(usize),
    /// The CDI id of its device has a number of bytes, each of which a checkpoint escapes.
    LongIds(usize),
}

/// Driver that serves on a thread of its own, for as long as the test lives: a test may wait meanwhile.
#[derive(Clone)]
pub(crate) struct FakeDriver {
    name: String,
    socket: PathBuf,
    manner: Arc<Mutex<Manner>>,
}

impl FakeDriver {
    pub(crate) fn start(folder: &Path, name: &str) -> Self {
        let socket = folder.join(format!("{name}.sock"));
        let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        listener.set_nonblocking(true).unwrap();
        let driver = Self { name: name.to_owned(), socket, manner: Arc::new(Mutex::new(Manner::Works)) };
        let server = Server::builder().add_service(DraPluginServer::new(driver.clone()));
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let connections = UnixListenerStream::new(UnixListener::from_std(listener).unwrap());
                server.serve_with_incoming(connections).await.unwrap();
            });
        });
        driver
    }

    /// Returns the driver as the kubelet's flag names it.
    pub(crate) fn plugin(&self) -> String {
        format!("{}={}", self.name, self.socket.display())
    }

    pub(crate) fn set(&self, manner: Manner) {
        *self.manner.lock().unwrap() = manner;
    }

    /// Returns the UIDs to answer for, each with the name of its claim.
    async fn answered(&self, claims: Vec<Claim>) -> Vec<(String, String)> {
        let manner = *self.manner.lock().unwrap();
        match manner {
            Manner::Works | Manner::Repeats(_) | Manner::LongIds(_) => {
                claims.into_iter().map(|claim| (claim.uid, claim.name)).collect()
            }
            Manner::Hangs => std::future::pending().await,
            Manner::AnswersForOthers => vec![("another-uid".to_owned(), "another".to_owned())],
            Manner::AnswersNothing => Vec::new(),
        }
    }
}

#[tonic::async_trait]
impl DraPlugin for FakeDriver {
    async fn node_prepare_resources(
        &self,
        request: Request<NodePrepareResourcesRequest>,
    ) -> Result<Response<NodePrepareResourcesResponse>, Status> {
        let prepared = |(uid, name): (String, String)| {
            let manner = *self.manner.lock().unwrap();
            let cdi_device_ids = match manner {
                Manner::LongIds(bytes) => vec!["<".repeat(bytes)],
                _ => vec![format!("{}/device={name}", self.name)],
            };
            let device =
                Device { pool_name: "node-1".to_owned(), device_name: name, cdi_device_ids, ..Device::default() };
            let devices = vec![device; if let Manner::Repeats(times) = manner { times } else { 1 }];
            (uid, NodePrepareResourceResponse { devices, error: String::new() })
        };
        let claims = self.answered(request.into_inner().claims).await.into_iter().map(prepared).collect();
        Ok(Response::new(NodePrepareResourcesResponse { claims }))
    }

    async fn node_unprepare_resources(
        &self,
        request: Request<NodeUnprepareResourcesRequest>,
    ) -> Result<Response<NodeUnprepareResourcesResponse>, Status> {
        let answered = self.answered(request.into_inner().claims).await.into_iter();
        let claims = answered.map(|(uid, _)| (uid, NodeUnprepareResourceResponse::default())).collect();
        Ok(Response::new(NodeUnprepareResourcesResponse { claims }))
    }
}
