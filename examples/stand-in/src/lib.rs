//! A stand-in for a Kubernetes API server: some kinds in memory, to test and try programs without a cluster. It is no Kubernetes.
//!
//! Objects pass the door of `dra_alloc::validate`: an object about devices that is stored here is one that a real API server of
//! the release stores. Left out: authentication, webhooks, protobuf, classes and expressions that select
//! devices of a `v1alpha3` taint rule (dropped with a warning), kinds that a gate hides, and everything that is not in the table
//! of kinds. Nothing is kept when it ends.
//!
//! ```
//! use std::io::{Read, Write};
//! use std::net::TcpStream;
//!
//! let server = stand_in::Server::start()?;
//! let mut connection = TcpStream::connect(server.url().trim_start_matches("http://"))?;
//! write!(connection, "GET /readyz HTTP/1.1\r\nHost: stand-in\r\nConnection: close\r\n\r\n")?;
//! let mut answer = String::new();
//! connection.read_to_string(&mut answer)?;
//! assert!(answer.ends_with("ok"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod admission;
mod answers;
mod api;
mod binding;
mod bodies;
mod chunk;
mod connections;
mod controllers;
mod defaults;
mod deleting;
mod discovery;
mod door;
mod evictions;
mod gate_metrics;
mod go_values;
mod kinds;
mod media;
mod metadata;
mod misbehave;
mod options;
mod plain_rules;
mod pod_rules;
mod program;
mod random;
mod refusal;
mod request;
mod rights;
mod running;
mod scale;
mod selector;
mod served;
mod service;
mod shown;
mod store;
mod table;
mod verbs;
mod watching;
mod workloads;

pub use program::{StartError, run};
pub use running::Server;
