//! Connection whose bytes from the client go through the rewriter of the kubelet's authority.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use dra_node::driver::AuthorityRewriter;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tonic::transport::server::Connected;

/// Largest number of bytes that are read at once.
const CHUNK: usize = 16 * 1024;

/// Connection of a client, which a server reads as if the client had sent another authority.
#[derive(Debug)]
pub struct Rewritten<T> {
    inner: T,
    rewriter: AuthorityRewriter,
    /// Rewritten bytes, of which the first `taken` were read by the server.
    ready: Vec<u8>,
    taken: usize,
}

impl<T> Rewritten<T> {
    /// Returns the connection, of which nothing was read yet.
    pub fn new(inner: T) -> Self {
        Self { inner, rewriter: AuthorityRewriter::default(), ready: Vec::new(), taken: 0 }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Rewritten<T> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.taken == this.ready.len() {
            let mut chunk = vec![0; CHUNK];
            let mut read = ReadBuf::new(&mut chunk);
            ready!(Pin::new(&mut this.inner).poll_read(context, &mut read))?;
            if read.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            (this.ready, this.taken) = (Vec::new(), 0);
            this.rewriter.feed(read.filled(), &mut this.ready);
        }
        let rest = this.ready.get(this.taken..).unwrap_or_default();
        let given = rest.get(..rest.len().min(out.remaining())).unwrap_or_default();
        out.put_slice(given);
        this.taken = this.taken.saturating_add(given.len());
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Rewritten<T> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

impl<T> Connected for Rewritten<T> {
    type ConnectInfo = ();

    fn connect_info(&self) -> Self::ConnectInfo {}
}
