//! A server that runs beside a test.

use std::io;
use std::sync::mpsc;
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use crate::program::{Listening, StartError, arguments};

/// Server on a port of 127.0.0.1, which ends when it is dropped.
#[derive(Debug)]
pub struct Server {
    url: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server of the newest release on a free port.
    ///
    /// # Errors
    /// There is no free port, or no thread can be started.
    pub fn start() -> Result<Self, StartError> {
        Self::start_with(&[])
    }

    /// Starts a server with the flags of the program `apiserver`. Without `--port` it takes a free port.
    ///
    /// # Errors
    /// The flags are wrong, the port is taken, or no thread can be started.
    ///
    /// ```
    /// let server = stand_in::Server::start_with(&["--release", "1.36", "--seed", "1"])?;
    /// assert!(server.url().starts_with("http://127.0.0.1:"));
    /// assert!(stand_in::Server::start_with(&["--release", "1.33"]).is_err());
    /// # Ok::<(), stand_in::StartError>(())
    /// ```
    pub fn start_with(args: &[&str]) -> Result<Self, StartError> {
        let mut with_port = vec!["--port", "0"];
        if args.iter().any(|arg| arg.starts_with("--port")) {
            with_port.clear();
        }
        with_port.extend(args);
        let args = arguments(&with_port)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (told, hear) = mpsc::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name("stand-in".to_owned()).spawn(move || {
            runtime.block_on(async {
                match Listening::begin(&args).await {
                    Err(error) => drop(told.send(Err(error))),
                    Ok(listening) => {
                        // Who does not wait for the address has gone, and has dropped the other end of `stopped` as well.
                        let _ = told.send(Ok(listening.url.clone()));
                        tokio::select! { () = listening.serve() => {}, _ = stopped => {} }
                    }
                }
            });
        })?;
        let url = hear.recv().map_err(|_| io::Error::other("the thread of the server has ended"))??;
        Ok(Self { url, stop: Some(stop), thread: Some(thread) })
    }

    /// Returns the address, such as `http://127.0.0.1:8001`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
