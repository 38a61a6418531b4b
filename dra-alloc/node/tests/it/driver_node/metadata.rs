//! Device metadata: paths, versions, and the stream of documents.

use dra_node::driver::{
    DeviceMetadata, MetadataFile, MetadataOwner, MetadataPathError, MetadataReadError, MetadataRequest, MetadataVersion,
};
use serde_json::{Value, from_value, json};

const ALPHA: &str = "metadata.resource.k8s.io/v1alpha1";
const BETA: &str = "metadata.resource.k8s.io/v1beta1";

const OWNER: MetadataOwner<'_> = MetadataOwner {
    driver: "gpu.example.com",
    plugin_dir: "/plugins/gpu.example.com",
    cdi_dir: "/var/run/cdi",
    namespace: "ns",
    claim: "c",
    uid: "u1",
    pod_claim_name: None,
};

#[test]
fn one_directory_for_each_claim() {
    let old = OWNER.file("gpu").unwrap();
    let new = MetadataOwner { uid: "u2", ..OWNER }.file("gpu").unwrap();
    assert_ne!(old.host_path, new.host_path, "a late unprepare removes nothing of the successor");
    assert_eq!(old.container_path, new.container_path);
    assert_eq!(old.host_path, "/plugins/gpu.example.com/dra-device-metadata/ns_c_u1/gpu/metadata.json");
    let named = MetadataOwner { pod_claim_name: Some("train"), ..OWNER }.file("gpu").unwrap();
    assert!(named.container_path.ends_with("/resourceclaimtemplates/train/gpu/gpu.example.com-metadata.json"));
}

#[test]
fn names_that_lead_elsewhere() {
    for (field, owner, request) in [
        ("namespace", MetadataOwner { namespace: "../../etc", ..OWNER }, "gpu"),
        ("claim", MetadataOwner { claim: "a/b", ..OWNER }, "gpu"),
        ("uid", MetadataOwner { uid: "", ..OWNER }, "gpu"),
        ("pod_claim_name", MetadataOwner { pod_claim_name: Some(".."), ..OWNER }, "gpu"),
        ("request", OWNER, "../x"),
        ("request", OWNER, ""),
    ] {
        match owner.file(request) {
            Err(MetadataPathError::Name { field: found, .. }) => assert_eq!(found, field),
            other => panic!("{field}: {other:?}"),
        }
    }
    let digit = MetadataOwner { driver: "9gpu.example.com", ..OWNER }.file("gpu").unwrap_err();
    assert!(matches!(digit, MetadataPathError::CdiName(_)));
}

#[test]
fn a_file_for_each_request_with_devices_of_the_driver() {
    let requests: Vec<MetadataRequest> = from_value(json!([
        {"name": "gpu/large", "devices": [{"driver": "gpu.example.com", "pool": "p", "name": "a"}]},
        {"name": "empty", "devices": []},
        {"name": "nic", "devices": [{"driver": "nic.example.com", "pool": "p", "name": "n"}]},
        {"name": "more", "devices": [{"driver": "gpu.example.com", "pool": "p", "name": "b"}]},
    ]))
    .unwrap();
    let files = OWNER.files(&requests).unwrap();
    assert_eq!(files.iter().map(|file| file.cdi_device.as_str()).collect::<Vec<_>>(), ["u1_gpu", "u1_more"]);
    let spec = serde_json::to_value(files[0].cdi_spec().unwrap()).unwrap();
    let mount =
        json!({"hostPath": files[0].host_path, "containerPath": files[0].container_path, "options": ["ro", "bind"]});
    assert_eq!(
        spec,
        json!({"cdiVersion": "0.5.0", "kind": "gpu.example.com/metadata",
            "devices": [{"name": "u1_gpu", "containerEdits": {"mounts": [mount]}}]})
    );
}

#[test]
fn requests_of_results() {
    let result = |request, device| json!({"request": request, "driver": "d", "pool": "p", "device": device});
    let results: Vec<_> = from_value(json!([result("b/x", "1"), result("a", "2"), result("b/x", "3")])).unwrap();
    let requests = MetadataRequest::from_results(&results);
    let names: Vec<_> = requests.iter().map(|request| (request.name.as_str(), request.devices.len())).collect();
    assert_eq!(names, [("b/x", 2), ("a", 1)]);
}

#[test]
fn generations() {
    assert_eq!([None, Some(1), Some(i64::MAX)].map(DeviceMetadata::next_generation), [1, 2, i64::MAX]);
}

#[test]
fn versions_by_server() {
    use MetadataVersion::{V1alpha1, V1beta1};
    assert_eq!(MetadataVersion::written(37, &[V1beta1]).unwrap(), [V1beta1]);
    assert_eq!(MetadataVersion::written(38, &[V1alpha1, V1beta1, V1alpha1]).unwrap(), [V1alpha1, V1beta1]);
    assert!(MetadataVersion::written(37, &[]).is_err());
    assert_eq!(MetadataVersion::written(36, &[V1beta1]).unwrap(), [V1alpha1]);
}

fn document(version: &str, requests: Value) -> String {
    json!({"apiVersion": version, "kind": "DeviceMetadata", "requests": requests}).to_string()
}

#[test]
fn reading_takes_the_first_known_version() {
    let stream = document("v9", json!(7)) + &document(BETA, json!([])) + "\n\n" + &document(ALPHA, json!([]));
    let read = |known: &[&str]| DeviceMetadata::from_stream(&stream, known).map(|(index, _)| usize::from(index));
    assert_eq!(read(&[ALPHA]).unwrap(), 2);
    assert_eq!(read(&[ALPHA, BETA]).unwrap(), 1, "the writer's order counts");
    assert!(matches!(read(&["v9"]), Err(MetadataReadError::Decode { index, .. }) if usize::from(index) == 0));
    let seen = ["v9", BETA, ALPHA].map(str::to_owned).to_vec();
    let none = read(&[]).unwrap_err();
    assert_eq!(none, MetadataReadError::NoKnownVersion { seen });
    assert_eq!(none.to_string(), format!("device metadata: no known version among \"v9\", \"{BETA}\", \"{ALPHA}\""));
    let empty = DeviceMetadata::from_stream("", &[ALPHA]).unwrap_err();
    assert_eq!(empty.to_string(), "device metadata: no known version among none");
}

#[test]
fn reading_stops_at_what_is_no_json() {
    let cut = document("v9", json!([])) + "{\"apiVersion\":";
    let error = DeviceMetadata::from_stream(&cut, &[ALPHA]).unwrap_err();
    assert!(matches!(&error, MetadataReadError::Decode { index, .. } if usize::from(*index) == 1), "{error}");
    let known_before = document(ALPHA, json!([])) + "{\"apiVersion\":";
    assert!(DeviceMetadata::from_stream(&known_before, &[ALPHA]).is_ok(), "what follows is not read");
}

#[test]
fn null_is_absent_as_in_go() {
    let text = json!({
        "apiVersion": ALPHA, "kind": "DeviceMetadata", "metadata": null, "podClaimName": null, "future": 1,
        "requests": [{"name": null, "devices": [{"driver": "d", "attributes": null, "networkData": null}]}],
    });
    let (_, document) = DeviceMetadata::from_stream(&text.to_string(), &[ALPHA]).unwrap();
    assert_eq!(document.requests[0].devices[0].driver, "d");
    let again = document.to_stream(&[MetadataVersion::V1alpha1]);
    assert_eq!(DeviceMetadata::from_stream(&again, &[ALPHA]).unwrap().1, document);
}

#[test]
fn a_document_has_its_request_alone_and_a_directory_of_cdi() {
    let requests: Vec<MetadataRequest> = from_value(json!([
        {"name": "gpu/large", "devices": [
            {"driver": "gpu.example.com", "pool": "p", "name": "a"}, {"driver": "nic.example.com", "pool": "p", "name": "n"}]},
        {"name": "more", "devices": [{"driver": "gpu.example.com", "pool": "p", "name": "b"}]},
        {"name": "nic", "devices": [{"driver": "nic.example.com", "pool": "p", "name": "n"}]},
    ]))
    .unwrap();
    let owner = MetadataOwner { cdi_dir: "/run/cdi-of-a-test", pod_claim_name: Some("train"), ..OWNER };
    let documents = owner.documents(&requests).unwrap();
    let shown: Vec<Value> = documents.iter().map(|(_, document)| json!(document)).collect();
    let metadata = json!({"name": "c", "namespace": "ns", "uid": "u1", "generation": 1});
    let device = |name| json!([{"driver": "gpu.example.com", "pool": "p", "name": name}]);
    assert_eq!(
        shown,
        [("gpu/large", "a"), ("more", "b")]
            .map(|(request, name)| json!({"metadata": metadata, "podClaimName": "train",
            "requests": [{"name": request, "devices": device(name)}]}))
    );
    assert_eq!(documents[0].0.cdi_file, "/run/cdi-of-a-test/gpu.example.com_metadata_u1_gpu.json");
    for (file, _) in &documents {
        let folder = file.host_path.split('/').nth_back(2).unwrap();
        assert_eq!(MetadataFile::claim_of_folder(folder), Some("u1"));
        let name = file.cdi_file.rsplit('/').next().unwrap();
        assert_eq!(MetadataFile::claim_of_cdi_file("gpu.example.com", name), Some("u1"));
        assert_eq!(MetadataFile::claim_of_cdi_file("gpu.example", name), None);
    }
}
