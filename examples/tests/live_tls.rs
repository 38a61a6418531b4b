//! Programs on an API server behind TLS: with a client certificate or a token of a kubeconfig, and what they say when a
//! certificate is no good or nobody knows them.
#![cfg(feature = "live")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod program;
mod recorder;
mod stand_in;

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::ResourceSlice;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, from_value, json};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use program::Run;
use recorder::{Mischief, Recorder, TOKEN};
use stand_in::StandIn;
use stand_in::background::Background;

const CERTIFICATES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tls");
const AUTOSCALER: &str = env!("CARGO_BIN_EXE_autoscaler");
const POOL_STATUS: &str = env!("CARGO_BIN_EXE_pool-status");

fn file(name: &str) -> String {
    format!("{CERTIFICATES}/{name}")
}

/// Opens a door with a certificate, and a check of the client's if that is asked for, before a server. Returns its port.
fn tls(certificate: &str, asks_for_certificate: bool, server: &str) -> u16 {
    let server = server.trim_start_matches("http://").to_owned();
    let certificate = CertificateDer::from_pem_file(file(certificate)).unwrap();
    let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
    let config = ServerConfig::builder();
    let config = if asks_for_certificate {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(file("authority.pem")).unwrap()).unwrap();
        config.with_client_cert_verifier(WebPkiClientVerifier::builder(Arc::new(roots)).build().unwrap())
    } else {
        config.with_no_client_auth()
    };
    let acceptor = TlsAcceptor::from(Arc::new(config.with_single_cert(vec![certificate], key).unwrap()));
    let (send, receive) = std::sync::mpsc::channel();
    // A runtime of its own: a test that waits for a program would keep the program waiting.
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            send.send(listener.local_addr().unwrap().port()).unwrap();
            loop {
                let (connection, _) = listener.accept().await.unwrap();
                let (acceptor, server) = (acceptor.clone(), server.clone());
                tokio::spawn(async move {
                    // A client that does not trust the certificate goes away.
                    let Ok(mut client) = acceptor.accept(connection).await else { return };
                    let mut server = TcpStream::connect(server).await.unwrap();
                    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                });
            }
        });
    });
    receive.recv().unwrap()
}

/// Runs a program with a kubeconfig for a server at a port.
fn run(program: &str, port: u16, authority: &str, user: &Value) -> Run {
    let folder = TempDir::new().unwrap();
    let path = kubeconfig(&folder, port, authority, user);
    Run::of(program, &["--live", "-o", "json", "--kubeconfig", &path], "")
}

/// Writes a kubeconfig for a server at a port, and returns its path.
fn kubeconfig(folder: &TempDir, port: u16, authority: &str, user: &Value) -> String {
    let path = folder.path().join("kubeconfig");
    let cluster = json!({"server": format!("https://127.0.0.1:{port}"), "certificate-authority": file(authority)});
    let context = json!({"cluster": "c", "user": "u"});
    let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "x",
        "clusters": [{"name": "c", "cluster": cluster}], "contexts": [{"name": "x", "context": context}],
        "users": [{"name": "u", "user": user}]});
    fs::write(&path, config.to_string()).unwrap();
    path.display().to_string()
}

/// Cuts connections to a port in the middle: each after another number of bytes of the server, without a word of TLS. Returns the
/// port to use instead, and the number of connections that were cut.
fn cut(port: u16) -> (u16, Arc<AtomicUsize>) {
    let (send, receive) = std::sync::mpsc::channel();
    let cuts = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&cuts);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            send.send(listener.local_addr().unwrap().port()).unwrap();
            for number in 0_u64.. {
                let (mut client, _) = listener.accept().await.unwrap();
                let counted = Arc::clone(&counted);
                tokio::spawn(async move {
                    let mut server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
                        (client.split(), server.split());
                    // A program ends if it can't begin. Later on, from within the handshake to behind some answers.
                    let most = if number < 8 { 20_000 } else { 100 + number * number * 97 % 20_000 };
                    let mut limited = (&mut from_server).take(most);
                    let down = tokio::io::copy(&mut limited, &mut to_client);
                    let up = tokio::io::copy(&mut from_client, &mut to_server);
                    tokio::select! { _ = down => counted.fetch_add(1, Ordering::Relaxed), _ = up => 0 };
                });
            }
        });
    });
    (receive.recv().unwrap(), cuts)
}

#[tokio::test]
async fn connections_that_are_cut_in_the_middle_lose_nothing() {
    let server = server_with_a_node().await;
    let certificate = json!({"client-certificate": file("client.pem"), "client-key": file("client.key")});
    let (port, cuts) = cut(tls("server.pem", true, &server.url));
    let folder = TempDir::new().unwrap();
    let kubeconfig = kubeconfig(&folder, port, "authority.pem", &certificate);
    let mut watching =
        Background::start(POOL_STATUS, &["--live", "--watch", "-o", "json", "--kubeconfig", &kubeconfig]);
    let slices: Api<ResourceSlice> = Api::all(server.client());
    for number in 0..40 {
        let name = format!("pool-{number}");
        let pool = json!({"name": name, "generation": 1, "resourceSliceCount": 1});
        let spec =
            json!({"driver": "gpu.example.com", "nodeName": "node-1", "pool": pool, "devices": [{"name": "gpu-0"}]});
        let slice: ResourceSlice = from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap();
        slices.create(&PostParams::default(), &slice).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    watching.says("pool-39");
    assert!(cuts.load(Ordering::Relaxed) > 0, "{} connections were cut", cuts.load(Ordering::Relaxed));
}

async fn server_with_a_node() -> StandIn {
    let server = StandIn::start(&[]);
    let node: Node = from_value(json!({"metadata": {"name": "node-1"}})).unwrap();
    Api::all(server.client()).create(&PostParams::default(), &node).await.unwrap();
    server
}

#[tokio::test]
async fn programs_work_with_a_certificate_and_with_a_token() {
    let server = server_with_a_node().await;
    let certificate = json!({"client-certificate": file("client.pem"), "client-key": file("client.key")});
    let port = tls("server.pem", true, &server.url);
    let names = |run: Run| run.clean().json()["nodes"][0]["name"].clone();
    assert_eq!(names(run(AUTOSCALER, port, "authority.pem", &certificate)), "node-1");

    let door = Recorder::start(&server.url, None, Mischief::KnowsOne);
    let port = tls("server.pem", false, &door.url);
    assert_eq!(names(run(AUTOSCALER, port, "authority.pem", &json!({"token": TOKEN}))), "node-1");
    assert!(door.used().iter().any(|right| right.verb == "watch"));
}

/// Runs a program that must fail, and returns what it says, with the port as `PORT`.
fn refused(port: u16, authority: &str, user: &Value) -> String {
    let run = run(POOL_STATUS, port, authority, user);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{}", run.stderr);
    run.stderr.replace(&port.to_string(), "PORT")
}

#[tokio::test]
async fn programs_say_what_is_wrong_with_a_certificate() {
    let server = server_with_a_node().await;
    for (certificate, authority, reason) in [
        ("server.pem", "stranger.pem", "UnknownIssuer"),
        ("expired.pem", "authority.pem", "certificate expired: "),
        ("elsewhere.pem", "authority.pem", "certificate not valid for name \"127.0.0.1\""),
    ] {
        let said = refused(tls(certificate, false, &server.url), authority, &json!({}));
        let begin = "pool-status: https://127.0.0.1:PORT/: the server's certificate is refused: ";
        assert!(said.starts_with(begin) && said.contains(reason), "{said}");
        let end = "; it has to be valid for that host now, and signed by the certificate-authority of the kubeconfig\n";
        assert!(said.ends_with(end), "{said}");
    }
}

#[tokio::test]
async fn programs_say_that_nobody_knows_them_or_what_they_may_not_do() {
    let server = server_with_a_node().await;
    let end = "; the token or client certificate of the kubeconfig is missing, wrong or has expired\n";
    let no_certificate = refused(tls("server.pem", true, &server.url), "authority.pem", &json!({}));
    let begin = "pool-status: the API server does not know who asks: ";
    assert!(no_certificate.starts_with(begin) && no_certificate.ends_with(end), "{no_certificate}");

    let door = Recorder::start(&server.url, None, Mischief::KnowsOne);
    let port = tls("server.pem", false, &door.url);
    let wrong_token = refused(port, "authority.pem", &json!({"token": "another"}));
    assert_eq!(wrong_token, format!("{begin}Unauthorized{end}"));

    let door = Recorder::start(&server.url, Some(BTreeSet::new()), Mischief::None);
    let forbidden = refused(tls("server.pem", false, &door.url), "authority.pem", &json!({}));
    let sentence = "pool-status: not allowed to list resourceslices: ";
    assert!(forbidden.starts_with(sentence), "{forbidden}");
}
