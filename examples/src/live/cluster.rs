//! The cluster that the flags of a program name.

use dra_attrs::Profile;
use dra_live::connect::{Cluster, ClusterPlace as Place};
use dra_live::failure::LiveError;
use dra_live::lease::LeaseTerms;

use crate::cluster_args::{ClusterArgs, ClusterPlace, LeaseArgs};
use crate::output::say;

/// Finds the cluster for a program: the one of the flags, of the kubeconfig of the environment, or the one that the program
/// runs in.
///
/// # Errors
/// There is no cluster, or it does not answer.
pub async fn connect(program: &str, args: &ClusterArgs) -> Result<Cluster, LiveError> {
    let agent = format!("dra-sdk-{program}/{}", env!("CARGO_PKG_VERSION"));
    Cluster::connect(&agent, &place(&args.place)).await.map_err(|error| match error {
        LiveError::NoConfig(reason) => LiveError::NoConfig(format!(
            "{reason}; --kubeconfig names a file, and the stand-in for a cluster is cargo run -p examples --features live \
             --bin apiserver"
        )),
        error => error,
    })
}

fn place(flags: &ClusterPlace) -> Place {
    match (&flags.server, &flags.kubeconfig, &flags.context) {
        (Some(url), _, _) => Place::Server(url.clone()),
        (None, Some(path), context) => Place::Kubeconfig { path: path.clone(), context: context.clone() },
        (None, None, Some(context)) => Place::Context(context.clone()),
        (None, None, None) => Place::Found,
    }
}

/// Says for a program if the API server is of another release than the rules that it follows: those of the other
/// components, of which none is asked.
pub fn say_other_release(program: &str, cluster: &Cluster, rules: Profile) {
    let release = cluster.release;
    if rules != release && Profile::RELEASES.contains(&rules) {
        say(&format_args!(
            "{program}: the API server is of {release}; the other components are taken to be of {rules}, and their \
             gates its defaults but for --feature-gates: --release {release} follows the server"
        ));
    }
}

impl LeaseArgs {
    /// Returns the place and the length of the lease.
    #[must_use]
    pub fn terms(&self) -> LeaseTerms {
        LeaseTerms { namespace: self.lease_namespace.clone(), duration: self.duration() }
    }
}
