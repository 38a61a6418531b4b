//! `/healthz` of a program with a check of its own.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dra_live::vitals::Vitals;

/// Returns the answer to a request.
async fn get(address: SocketAddr, path: &'static str) -> String {
    let ask = move || {
        let mut connection = TcpStream::connect(address).unwrap();
        write!(connection, "GET {path} HTTP/1.1\r\nHost: me\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        answer
    };
    tokio::task::spawn_blocking(ask).await.unwrap()
}

#[tokio::test]
async fn a_check_decides_about_health() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (vitals, is_taken) = (Vitals::default(), Arc::new(AtomicBool::new(true)));
    let taken = Arc::clone(&is_taken);
    vitals.check(move || if taken.load(Ordering::Relaxed) { Ok(()) } else { Err("nobody has taken it".to_owned()) });
    vitals.serve(Some(address)).await.unwrap();
    vitals.round();
    assert!(get(address, "/healthz").await.ends_with("\r\n\r\nok"));
    is_taken.store(false, Ordering::Relaxed);
    let answer = get(address, "/healthz").await;
    assert!(answer.starts_with("HTTP/1.1 500") && answer.ends_with("nobody has taken it"), "{answer}");
}
