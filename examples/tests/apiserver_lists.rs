//! Lists, collections and nominations of the program `apiserver`, as a real API server has them.
#![cfg(feature = "live")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod stand_in;

use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Error};
use serde_json::{Value, from_value, json};

use stand_in::StandIn;
use stand_in::background::get;

const NOW: PostParams = PostParams { dry_run: false, field_manager: None };

fn pod(name: &str) -> Pod {
    from_value(json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "main", "image": "i"}]}})).unwrap()
}

fn code<T: std::fmt::Debug>(outcome: Result<T, Error>) -> u16 {
    match outcome.unwrap_err() {
        Error::Api(status) => status.code,
        error => panic!("{error}"),
    }
}

async fn pods(server: &StandIn, names: &[&str]) -> Api<Pod> {
    let pods: Api<Pod> = Api::default_namespaced(server.client());
    for name in names {
        pods.create(&NOW, &pod(name)).await.unwrap();
    }
    pods
}

#[tokio::test]
async fn a_list_comes_in_chunks_of_one_version() {
    let server = StandIn::start(&[]);
    let pods = pods(&server, &["a", "b", "c", "d", "e"]).await;
    let (mut names, mut versions, mut left) = (Vec::new(), Vec::new(), Vec::new());
    let mut params = ListParams::default().limit(2);
    loop {
        let chunk = pods.list(&params).await.unwrap();
        names.extend(chunk.items.into_iter().map(|pod| pod.metadata.name.unwrap()));
        versions.extend(chunk.metadata.resource_version);
        left.push(chunk.metadata.remaining_item_count);
        // A pod of a later chunk that comes meanwhile does no harm: the watch from the version of the list shows it again.
        match chunk.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
        let _ = pods.create(&NOW, &pod("f")).await;
    }
    assert_eq!(names, ["a", "b", "c", "d", "e", "f"]);
    assert_eq!(left, [Some(3), Some(2), None]);
    versions.dedup();
    assert_eq!(versions.len(), 1);
    let selected = pods.list(&ListParams::default().limit(1).fields("status.phase=Pending")).await.unwrap();
    assert!(selected.metadata.continue_.is_some() && selected.metadata.remaining_item_count.is_none());
    assert_eq!(code(pods.list(&ListParams::default().continue_token("nonsense")).await), 400);
    // A client tries a timeout again.
    let address = server.url.trim_start_matches("http://").to_owned();
    let ahead = get(&address, "/api/v1/namespaces/default/pods?resourceVersion=99999999");
    assert!(ahead.starts_with("HTTP/1.1 504"), "{ahead}");
}

#[tokio::test]
async fn a_collection_is_deleted_by_its_selector() {
    let server = StandIn::start(&[]);
    let pods = pods(&server, &["a", "b", "c"]).await;
    let gone = pods.delete_collection(&DeleteParams::default(), &ListParams::default().fields("metadata.name=b")).await;
    let gone = gone.unwrap().left().unwrap();
    assert_eq!(gone.items.len(), 1);
    let left: Vec<String> = pods
        .list(&ListParams::default())
        .await
        .unwrap()
        .items
        .into_iter()
        .filter_map(|pod| pod.metadata.name)
        .collect();
    assert_eq!(left, ["a", "c"]);
    let one = pods.delete("a", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert_eq!(one.metadata.name.as_deref(), Some("a"), "the answer is the object");
}

#[tokio::test]
async fn a_binding_clears_the_nomination_and_no_bound_pod_gets_one() {
    let server = StandIn::start(&[]);
    let pods = pods(&server, &["a"]).await;
    let nominate = |node: &str| Patch::Merge(json!({"status": {"nominatedNodeName": node}}));
    let stored = pods.patch_status("a", &PatchParams::default(), &nominate("n1")).await.unwrap();
    let status = stored.status.unwrap();
    assert_eq!((status.nominated_node_name.as_deref(), status.qos_class.as_deref()), (Some("n1"), Some("BestEffort")));
    let binding = json!({"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}});
    let bind = || pods.create_subresource::<Value, Value>("binding", "a", &NOW, &binding);
    bind().await.unwrap();
    let bound = pods.get("a").await.unwrap();
    assert_eq!(bound.status.unwrap().nominated_node_name, None);
    assert_eq!(code(pods.patch_status("a", &PatchParams::default(), &nominate("n2")).await), 422);
    assert_eq!(code(bind().await), 409);
}

#[tokio::test]
async fn an_event_is_in_the_namespace_of_its_object() {
    let server = StandIn::start(&[]);
    let events: Api<Event> = Api::default_namespaced(server.client());
    let event = |namespace: &str| -> Event {
        from_value(
            json!({"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "name": "a", "namespace": namespace}}),
        )
        .unwrap()
    };
    assert_eq!(code(events.create(&NOW, &event("other")).await), 422);
    events.create(&NOW, &event("default")).await.unwrap();
}
