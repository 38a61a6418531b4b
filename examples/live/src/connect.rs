//! The way to a cluster.

use std::path::PathBuf;
use std::time::Duration;

use dra_attrs::{Component, Profile};
use http_body_util::{BodyExt, Limited};
use hyper::header::{HeaderValue, USER_AGENT};
use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use super::answers::{AnswersLayer, LIMITS};
use super::failure::LiveError;
use super::retry::answered_within;

/// Longest metrics of an API server that are read: those of a large cluster have some ten million bytes.
const METRICS_LEN: usize = 64 * 1024 * 1024;

/// Longest time for its metrics.
const METRICS_TIME: Duration = Duration::from_secs(30);

/// Attempts before a server counts as absent: some seconds.
const FIRST_ATTEMPTS: u32 = 6;

/// Place of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClusterPlace {
    /// The kubeconfig of the environment, or the cluster that the program runs in.
    #[default]
    Found,
    /// Address of an API server that asks nobody who they are, such as the stand-in.
    Server(String),
    /// Context of the kubeconfig of the environment.
    Context(String),
    /// A kubeconfig.
    Kubeconfig {
        /// Path of the file.
        path: PathBuf,
        /// Context, if it is not the current one.
        context: Option<String>,
    },
}

/// Cluster that a program works on.
#[derive(Clone)]
#[non_exhaustive]
pub struct Cluster {
    /// Client of the API server.
    pub client: Client,
    /// Address of the API server.
    pub url: String,
    /// Release of the API server, as it says.
    pub release: Profile,
    /// Namespace of the context.
    pub namespace: String,
    config: Config,
}

impl Cluster {
    /// Finds the cluster, and asks the server for its version. Each request has the User-Agent `agent`, such as
    /// `gpu-driver/1.0`, from which the API server takes the `manager` of `managedFields`.
    ///
    /// # Errors
    /// There is no cluster, or it does not answer.
    pub async fn connect(agent: &str, place: &ClusterPlace) -> Result<Self, LiveError> {
        let mut config = config(place).await?;
        config.headers.extend(HeaderValue::try_from(agent).ok().map(|agent| (USER_AGENT, agent)));
        let (url, namespace) = (config.cluster_url.to_string(), config.default_namespace.clone());
        let client = client_of(config.clone())?;
        let version = answered_within(FIRST_ATTEMPTS, || client.apiserver_version()).await.outcome;
        let version = version.map_err(|error| LiveError::from_first_call(url.clone(), &error))?;
        Ok(Self { release: Profile::of_server(&version)?, client, url, namespace, config })
    }

    /// Returns another client, which works in the runtime of the caller and waits for no call of the first one.
    ///
    /// # Errors
    /// Keys or certificates can't be read any more.
    pub fn another_client(&self) -> Result<Client, LiveError> {
        client_of(self.config.clone())
    }
}

fn client_of(config: Config) -> Result<Client, LiveError> {
    let builder = ClientBuilder::try_from(config).map_err(|error| LiveError::NoConfig(error.to_string()))?;
    Ok(builder.with_layer(&AnswersLayer(LIMITS)).build())
}

impl Cluster {
    /// Returns the API server with its gates: read from its metrics, or the defaults of its release if they can't be read,
    /// since nobody may, they are too long or too late, or a gate is not in them.
    pub async fn api_server(&self) -> Component {
        let text = tokio::time::timeout(METRICS_TIME, self.metrics()).await.ok().flatten();
        let read = text.and_then(|text| Component::from_metrics(self.release, &text).ok());
        read.unwrap_or_else(|| Component::of(self.release))
    }

    async fn metrics(&self) -> Option<String> {
        let request = hyper::Request::get("/metrics").body(kube::client::Body::empty()).ok()?;
        let answer = self.client.send(request).await.ok().filter(|answer| answer.status().is_success())?;
        let body = Limited::new(answer.into_body(), METRICS_LEN).collect().await.ok()?;
        String::from_utf8(body.to_bytes().to_vec()).ok()
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("url", &self.url).field("release", &self.release).finish_non_exhaustive()
    }
}

async fn config(place: &ClusterPlace) -> Result<Config, LiveError> {
    let none = |error: &dyn std::fmt::Display| LiveError::NoConfig(error.to_string());
    let options =
        |context: &Option<String>| KubeConfigOptions { context: context.clone(), ..KubeConfigOptions::default() };
    match place {
        ClusterPlace::Found => Config::infer().await.map_err(|error| none(&error)),
        ClusterPlace::Server(url) => {
            let url = url.parse::<hyper::Uri>().map_err(|error| none(&format_args!("server {url}: {error}")))?;
            Ok(Config::new(url))
        }
        ClusterPlace::Context(context) => {
            Config::from_kubeconfig(&options(&Some(context.clone()))).await.map_err(|error| none(&error))
        }
        ClusterPlace::Kubeconfig { path, context } => {
            let file = Kubeconfig::read_from(path).map_err(|error| none(&error))?;
            Config::from_custom_kubeconfig(file, &options(context)).await.map_err(|error| none(&error))
        }
    }
}
