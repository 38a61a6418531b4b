//! Driver that speaks HTTP/2 by hand on a unix socket, and falls silent where a test says.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// First bytes of a client.
const PREFACE: usize = 24;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const ACK: u8 = 1;

/// Answer to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// None, nor any other byte of HTTP/2.
    Nothing,
    /// The head.
    Head,
    /// The head and the beginning of a message.
    PartOfMessage,
    /// The head and a message, without the trailers that end it.
    NoTrailers(Vec<u8>),
    /// The head and a message that never ends, a byte at a time.
    Trickle,
    /// Pings without end, by a driver that never reads.
    PingsUnread,
    /// A message with its trailers.
    Whole(Vec<u8>),
}

/// Driver that gives its answers in turn, the last one for ever.
#[derive(Debug)]
pub(crate) struct RawDriver {
    pub(crate) socket: PathBuf,
    /// Number of connections that were begun.
    pub(crate) begun: Arc<AtomicUsize>,
    /// Number of connections that the client has ended.
    pub(crate) ended: Arc<AtomicUsize>,
}

impl RawDriver {
    pub(crate) fn start(socket: &Path, answers: &[Answer]) -> Self {
        let listener = UnixListener::bind(socket).unwrap();
        let driver = Self { socket: socket.to_owned(), begun: Arc::default(), ended: Arc::default() };
        let (begun, ended, answers) = (Arc::clone(&driver.begun), Arc::clone(&driver.ended), answers.to_vec());
        let call = Arc::new(AtomicUsize::new(0));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                begun.fetch_add(1, Ordering::SeqCst);
                let (ended, answers, call) = (Arc::clone(&ended), answers.clone(), Arc::clone(&call));
                std::thread::spawn(move || {
                    let next = || {
                        let call = call.fetch_add(1, Ordering::SeqCst);
                        answers[call.min(answers.len() - 1)].clone()
                    };
                    let _ = serve(stream.unwrap(), &answers, next);
                    ended.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        driver
    }
}

/// Serves a connection until the client ends it.
fn serve(mut stream: UnixStream, answers: &[Answer], mut next: impl FnMut() -> Answer) -> io::Result<()> {
    match answers {
        [Answer::Nothing] => return io::copy(&mut stream, &mut io::sink()).map(drop),
        [Answer::PingsUnread] => loop {
            stream.write_all(&frame(PING, 0, 0, &[0; 8]))?;
        },
        _ => {}
    }
    stream.read_exact(&mut [0; PREFACE])?;
    stream.write_all(&frame(SETTINGS, 0, 0, &[]))?;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head)?;
        let (kind, flags, id) = (head[3], head[4], u32::from_be_bytes([head[5], head[6], head[7], head[8]]));
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        io::copy(&mut (&mut stream).take(u64::from(length)), &mut io::sink())?;
        match kind {
            SETTINGS if flags & ACK == 0 => stream.write_all(&frame(SETTINGS, ACK, 0, &[]))?,
            HEADERS | DATA if flags & END_STREAM != 0 => answer(&mut stream, id, next())?,
            _ => {}
        }
    }
}

fn answer(stream: &mut UnixStream, id: u32, answer: Answer) -> io::Result<()> {
    // `:status` 200 and `content-type`, whose name is entry 31 of HPACK's table.
    let head = [&[0x88, 0x5f, 16][..], b"application/grpc"].concat();
    if matches!(answer, Answer::Nothing | Answer::PingsUnread) {
        return Ok(());
    }
    stream.write_all(&frame(HEADERS, END_HEADERS, id, &head))?;
    match answer {
        Answer::PartOfMessage => stream.write_all(&frame(DATA, 0, id, &[0, 0, 0, 0, 5, 10])),
        Answer::NoTrailers(message) => stream.write_all(&frame(DATA, 0, id, &prefixed(&message))),
        Answer::Trickle => {
            stream.write_all(&frame(DATA, 0, id, &[0, 0, 0, 255, 255]))?;
            loop {
                stream.write_all(&frame(DATA, 0, id, &[0]))?;
                std::thread::sleep(Duration::from_millis(200));
            }
        }
        Answer::Whole(message) => {
            stream.write_all(&frame(DATA, 0, id, &prefixed(&message)))?;
            let trailers = [&[0, 11][..], b"grpc-status", &[1], b"0"].concat();
            stream.write_all(&frame(HEADERS, END_HEADERS | END_STREAM, id, &trailers))
        }
        Answer::Nothing | Answer::Head | Answer::PingsUnread => Ok(()),
    }
}

fn frame(kind: u8, flags: u8, id: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &id.to_be_bytes(), payload].concat()
}

/// Returns a message as gRPC sends it: not compressed, after its length.
fn prefixed(message: &[u8]) -> Vec<u8> {
    [&[0][..], &u32::try_from(message.len()).unwrap().to_be_bytes(), message].concat()
}
