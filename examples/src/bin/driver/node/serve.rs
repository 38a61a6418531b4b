//! The kubelet's calls, with manifests that stand for the API server.

use std::io;
use std::sync::Arc;

use dra_alloc::kubelet::ClaimRef;
use dra_live::grpc::{self, ClaimLookup, DriverCalls, Happening, RegistrationState};
use dra_live::now;
use dra_live::prepared_claims::PreparedClaimsError;
use examples::output::OutputError;
use k8s_openapi::api::resource::v1::ResourceClaim;
use tokio::sync::watch;

use super::command::{self, ServeArgs};
use super::line::Line;

/// Reason that the driver does not serve.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    #[error(transparent)]
    Claims(#[from] PreparedClaimsError),
    #[error(transparent)]
    Serve(#[from] grpc::ServeError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Runtime(io::Error),
}

/// Manifests that stand for the API server.
#[derive(Clone, Debug)]
struct ApiFiles(Vec<String>);

impl ApiFiles {
    /// Returns the claim that has the name now.
    ///
    /// # Errors
    /// The manifests can't be read: nothing is known about the claim.
    fn find(&self, asked: &ClaimRef) -> Result<Option<ResourceClaim>, String> {
        Ok(command::find(&command::read(&self.0)?, asked))
    }
}

impl ClaimLookup for ApiFiles {
    async fn find(&self, claim: &ClaimRef) -> Result<Option<ResourceClaim>, String> {
        Self::find(self, claim)
    }
}

/// Serves until the process is killed.
///
/// # Errors
/// A socket can't be created, or a server stopped.
pub(super) fn serve(args: &ServeArgs) -> Result<(), ServeError> {
    let (form, driver) = (args.output, args.driver().to_owned());
    let api = ApiFiles(args.files.clone());
    let claims = Arc::new(args.claims()?);
    claims.start(&|asked| ApiFiles::find(&api, asked), now())?;
    // A closed output is no reason to reject claims.
    let tell = move |happening: &Happening| drop(Line::put(form, happening));
    let calls = DriverCalls::new(claims, api, Arc::new(tell));
    // Nobody tells it to stop.
    let (_running, stopped) = watch::channel(false);
    let mut told = Ok(());
    let begun = |socket: &std::path::Path| {
        told = Line::put(form, &Happening::Serves { driver: driver.clone(), socket: socket.display().to_string() });
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ServeError::Runtime)?;
    runtime.block_on(grpc::serve(calls, &driver, &args.sockets(), &RegistrationState::default(), stopped, begun))?;
    Ok(told?)
}
