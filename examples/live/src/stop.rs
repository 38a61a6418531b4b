//! End of a program that stays: SIGTERM, or Ctrl-C.

use tokio::signal::unix::{SignalKind, signal};

use super::failure::LiveError;

/// Waits until the program is told to stop.
///
/// # Errors
/// Signals can't be received.
pub async fn told_to_stop() -> Result<(), LiveError> {
    let mut terminate = signal(SignalKind::terminate()).map_err(LiveError::Runtime)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(LiveError::Runtime)?;
    tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
    Ok(())
}
