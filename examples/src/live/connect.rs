//! The way to a cluster.

use dra_attrs::{Component, Profile};
use hyper::header::{HeaderValue, USER_AGENT};
use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use super::failure::LiveError;
use super::retry::answered_within;
use super::times::TimesLayer;
use crate::cluster_args::{ClusterArgs, ClusterPlace};
use crate::output::say;

/// Attempts before a server counts as absent: some seconds.
const FIRST_ATTEMPTS: u32 = 6;

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
}

impl Cluster {
    /// Finds the cluster for a program: the one of the flags, of the kubeconfig of the environment, or the one that the
    /// program runs in. Asks the server for its version. Each request has the program's name as its User-Agent, from which
    /// the API server takes the `manager` of `managedFields`.
    ///
    /// # Errors
    /// There is no cluster, or it does not answer.
    pub async fn connect(program: &str, args: &ClusterArgs) -> Result<Self, LiveError> {
        let mut config = config(&args.place).await?;
        let agent = HeaderValue::try_from(format!("dra-sdk-{program}/{}", env!("CARGO_PKG_VERSION")));
        config.headers.extend(agent.ok().map(|agent| (USER_AGENT, agent)));
        let (url, namespace) = (config.cluster_url.to_string(), config.default_namespace.clone());
        let builder = ClientBuilder::try_from(config).map_err(|error| LiveError::NoConfig(error.to_string()))?;
        let client = builder.with_layer(&TimesLayer).build();
        let version = answered_within(FIRST_ATTEMPTS, || client.apiserver_version()).await.outcome;
        let version = version.map_err(|error| LiveError::from_first_call(url.clone(), &error))?;
        Ok(Self { release: Profile::of_server(&version)?, client, url, namespace })
    }
}

impl Cluster {
    /// Returns the API server with its gates: read from its metrics, or the defaults of its release if they can't be read,
    /// since nobody may or a gate is not in them.
    pub async fn api_server(&self) -> Component {
        let request = hyper::Request::get("/metrics").body(Vec::new()).ok();
        let text = match request {
            Some(request) => self.client.request_text(request).await.ok(),
            None => None,
        };
        let read = text.and_then(|text| Component::from_metrics(self.release, &text).ok());
        read.unwrap_or_else(|| Component::of(self.release))
    }

    /// Says for a program if the API server is of another release than the rules that it follows: those of the other
    /// components, of which none is asked.
    pub fn say_other_release(&self, program: &str, rules: Profile) {
        let release = self.release;
        if rules != release && Profile::RELEASES.contains(&rules) {
            say(&format_args!(
                "{program}: the API server is of {release}; the other components are taken to be of {rules}, and their \
                 gates its defaults but for --feature-gates: --release {release} follows the server"
            ));
        }
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("url", &self.url).field("release", &self.release).finish_non_exhaustive()
    }
}

async fn config(args: &ClusterPlace) -> Result<Config, LiveError> {
    let none = |error: &dyn std::fmt::Display| LiveError::NoConfig(error.to_string());
    if let Some(url) = &args.server {
        let url = url.parse::<hyper::Uri>().map_err(|error| none(&format_args!("--server {url}: {error}")))?;
        return Ok(Config::new(url));
    }
    let options = KubeConfigOptions { context: args.context.clone(), ..KubeConfigOptions::default() };
    if let Some(path) = &args.kubeconfig {
        let file = Kubeconfig::read_from(path).map_err(|error| none(&error))?;
        return Config::from_custom_kubeconfig(file, &options).await.map_err(|error| none(&error));
    }
    if args.context.is_some() {
        return Config::from_kubeconfig(&options).await.map_err(|error| none(&error));
    }
    Config::infer().await.map_err(|error| none(&error))
}
