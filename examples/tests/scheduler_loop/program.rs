use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, SystemTime};

use dra_alloc::fit::{Allocatable, PodNeeds};
use dra_alloc::pods::{
    ApiResponse, Binding, BindingCall, BindingMemory, BindingRequest, BindingStep, ClaimTracker, ClaimWrite,
    FitQuestion, GangSearch, PodOptions,
};
use dra_alloc::{Allocator, Classes, Inventory, Profile};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use k8s_openapi::jiff::Timestamp;
use nnn::PodKey;
use nnn::memory::{PodMemory, PodUsage};
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value, json};

const DEVICES: &str = "/apis/resource.k8s.io/v1";
const PODS: &str = "/api/v1/namespaces/default/pods";
const CLAIMS: &str = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";

/// Way to the API server. Each call has a connection of its own, so that any thread can make it.
#[derive(Clone)]
struct Api(String);

impl Api {
    fn send(&self, method: &str, path: &str, body: &Value) -> io::Result<(u16, Value)> {
        let kind = if method == "PATCH" { "strategic-merge-patch+json" } else { "json" };
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let mut connection = TcpStream::connect(self.0.trim_start_matches("http://"))?;
        let head = format!("Content-Type: application/{kind}\r\nContent-Length: {}", text.len());
        write!(connection, "{method} {path} HTTP/1.0\r\nHost: api\r\n{head}\r\n\r\n{text}")?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
        let code = head.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
        Ok((code, serde_json::from_str(body)?))
    }

    /// Sends a request until the server has done it.
    fn insist(&self, method: &str, path: &str, body: &Value) -> Value {
        loop {
            match self.send(method, path, body) {
                Ok((200..=299, answer)) => return answer,
                Ok((409, answer)) if answer["reason"] == "AlreadyExists" => return answer,
                _ => {}
            }
        }
    }

    fn list<T: DeserializeOwned>(&self, path: &str) -> Result<Vec<T>, serde_json::Error> {
        from_value(self.insist("GET", path, &Value::Null)["items"].take())
    }

    /// Makes a call of a binding, once, and returns the answer in the words of the libraries.
    fn make(&self, call: &BindingCall) -> Result<ApiResponse, serde_json::Error> {
        let pod = format!("{PODS}/{}", call.pod.name);
        let (method, path, body) = match &call.request {
            BindingRequest::Status(command) => ("PATCH", format!("{pod}/status"), json!(command.patch(now()))),
            BindingRequest::ReadPod => ("GET", pod, Value::Null),
            BindingRequest::Bind { node } => {
                let metadata = json!({"name": call.pod.name, "uid": call.pod.uid});
                (
                    "POST",
                    format!("{pod}/binding"),
                    json!({"apiVersion": "v1", "kind": "Binding", "metadata": metadata,
                    "target": {"apiVersion": "v1", "kind": "Node", "name": node}}),
                )
            }
            BindingRequest::Claim(write) => match write {
                ClaimWrite::Update { claim } => ("PUT", claim_path(claim), json!(claim)),
                ClaimWrite::UpdateStatus { claim } => ("PUT", claim_path(claim) + "/status", json!(claim)),
                ClaimWrite::PatchReservation { name, .. } => {
                    ("PATCH", format!("{CLAIMS}/{name}/status"), json!(write.patch()))
                }
                ClaimWrite::PatchPodStatus { .. } => ("PATCH", format!("{pod}/status"), json!(write.patch())),
                ClaimWrite::Create { claim } => ("POST", CLAIMS.to_owned(), json!(claim)),
                ClaimWrite::Delete { name, uid, .. } => {
                    ("DELETE", format!("{CLAIMS}/{name}"), json!({"preconditions": {"uid": uid}}))
                }
                ClaimWrite::Get { name, .. } => ("GET", format!("{CLAIMS}/{name}"), Value::Null),
                other => return Ok(ApiResponse::Failed(format!("unknown call: {other:?}"))),
            },
            other => return Ok(ApiResponse::Failed(format!("unknown call: {other:?}"))),
        };
        Ok(match self.send(method, &path, &body) {
            Err(error) => ApiResponse::Lost(error.to_string()),
            Ok((200..=299, pod)) if pod["kind"] == "Pod" => ApiResponse::Pod(from_value(pod)?),
            Ok((200..=299, claim)) if claim["kind"] == "ResourceClaim" => ApiResponse::Object(from_value(claim)?),
            Ok((200..=299, _)) => ApiResponse::Done,
            Ok((404, _)) if method == "GET" => ApiResponse::Done,
            Ok((409, status)) => ApiResponse::Conflict(status["message"].to_string()),
            Ok((429 | 500..=599, status)) => ApiResponse::Unavailable(status["message"].to_string()),
            Ok((_, status)) => ApiResponse::Failed(status["message"].to_string()),
        })
    }
}

/// Call of a binding with its answer.
type Answer = (BindingCall, ApiResponse);

/// Memories of the scheduler, and the bindings that are open.
struct Scheduler {
    api: Api,
    options: PodOptions,
    nodes: Vec<Node>,
    inventory: Inventory,
    classes: Classes,
    pods: PodMemory,
    claims: ClaimTracker,
    bindings: BTreeMap<String, Binding>,
    answered: (Sender<Answer>, Receiver<Answer>),
    refused: BTreeMap<String, String>,
}

impl Scheduler {
    /// Begins as after a restart: nothing is known but what the server has.
    fn start(api: &Api) -> Result<Self, Box<dyn Error>> {
        let options = PodOptions::new(Profile::V1_37);
        Ok(Self {
            api: api.clone(),
            options,
            nodes: api.list("/api/v1/nodes")?,
            inventory: Inventory::new(api.list::<ResourceSlice>(&format!("{DEVICES}/resourceslices"))?),
            classes: Classes::new(api.list::<DeviceClass>(&format!("{DEVICES}/deviceclasses"))?),
            pods: PodMemory::default(),
            claims: ClaimTracker::new(options.scheduler()),
            bindings: BTreeMap::new(),
            answered: channel(),
            refused: BTreeMap::new(),
        })
    }

    /// Sees what has changed, decides about pods that wait, goes on with all bindings, and takes one answer.
    fn round(&mut self) -> Result<(), Box<dyn Error>> {
        let pods = self.api.insist("GET", PODS, &Value::Null);
        self.pods
            .replace(from_value::<Vec<Pod>>(pods["items"].clone())?, pods["metadata"]["resourceVersion"].as_str())?;
        let claims = self.api.insist("GET", CLAIMS, &Value::Null);
        let version = claims["metadata"]["resourceVersion"].as_str();
        self.claims.replace(from_value::<Vec<ResourceClaim>>(claims["items"].clone())?, version)?;

        let waiting = self.pods.pods().filter(|(_, stage)| stage.is_waiting()).map(|(pod, _)| Pod::clone(pod));
        let mut units: BTreeMap<_, Vec<Pod>> = BTreeMap::new();
        for pod in waiting {
            let gang = pod.metadata.labels.as_ref().and_then(|labels| labels.get("gang"));
            let name = gang.or(pod.metadata.name.as_ref()).cloned();
            units.entry((Reverse(pod.spec.as_ref().and_then(|spec| spec.priority)), name)).or_default().push(pod);
        }
        for unit in units.into_values() {
            if unit.iter().all(|pod| !self.bindings.contains_key(uid(pod))) {
                self.place(&unit)?;
            }
        }
        self.go_on();
        if let Ok((call, answer)) = self.answered.1.recv_timeout(Duration::from_millis(20)) {
            if let Some(binding) = self.bindings.get_mut(&call.pod.uid) {
                let mut memory = BindingMemory { pods: &mut self.pods, claims: &mut self.claims };
                binding.answer(&call, answer, &mut memory, now());
            }
            self.go_on();
        }
        Ok(())
    }

    /// Places the pods of a gang, or a pod alone, and begins their bindings.
    fn place(&mut self, unit: &[Pod]) -> Result<(), Box<dyn Error>> {
        // One check for CPU, taints, labels and ports, with the pods that are nominated, assumed or of the same gang.
        let fit = |question: &FitQuestion<'_>| {
            let (pod, node) = (question.pod(), question.node());
            let mut usage = self.pods.usage_for(pod, node.metadata.name.as_deref().unwrap_or_default()).into_owned();
            for placed in question.placed_here().filter_map(|placed| self.pods.pod(&placed.namespace, &placed.name)) {
                usage.add(&PodUsage::wanted_by(placed).map_err(|error| error.to_string())?);
            }
            let needs = PodNeeds::new(pod).map_err(|error| error.to_string())?;
            let has = Allocatable::new(node).map_err(|error| error.to_string())?;
            needs.misfits(node, &has, &usage, &self.classes).first().map_or(Ok(()), |misfit| Err(misfit.to_string()))
        };
        // The nominated node is tried first.
        let nominated = unit.iter().find_map(|pod| self.pods.nomination(uid(pod)));
        let mut nodes: Vec<&Node> = self.nodes.iter().collect();
        nodes.sort_by_key(|node| node.metadata.name.as_deref() != nominated);
        let allocator = Allocator::new(self.options.scheduler(), &self.inventory, &self.classes);
        let search = GangSearch::new(&allocator, nodes, self.options, now()).with_fit(&fit);
        let placed = match search.place(unit, None, &mut self.claims) {
            Ok(placed) => placed,
            Err(error) => {
                self.refused.insert(error.pod.name.clone(), error.to_string());
                return Ok(());
            }
        };
        for (pod, place) in unit.iter().zip(placed.pods) {
            let key = PodKey::new(&place.pod.namespace, &place.pod.name, &place.pod.uid);
            let mut memory = BindingMemory { pods: &mut self.pods, claims: &mut self.claims };
            let usage = PodUsage::wanted_by(pod)?;
            let binding = Binding::begin(&key, &place.node, usage, place.cycle, &mut memory)?;
            self.bindings.insert(key.uid, binding);
        }
        Ok(())
    }

    /// Lets each binding decide. Its call is made by another thread.
    fn go_on(&mut self) {
        let mut memory = BindingMemory { pods: &mut self.pods, claims: &mut self.claims };
        self.bindings.retain(|_, binding| match binding.next(&mut memory, now()) {
            BindingStep::Call(call) => {
                let (api, answers) = (self.api.clone(), self.answered.0.clone());
                thread::spawn(move || {
                    let answer = api.make(&call).unwrap_or_else(|error| ApiResponse::Lost(error.to_string()));
                    answers.send((call, answer)).is_ok()
                });
                true
            }
            BindingStep::Wait { .. } => true,
            _ => false, // bound, or everything is taken back: the pod is tried anew
        });
    }
}

fn now() -> Timestamp {
    SystemTime::now().try_into().unwrap_or(Timestamp::MAX)
}

fn uid(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
}

fn claim_path(claim: &ResourceClaim) -> String {
    format!("{CLAIMS}/{}", claim.metadata.name.as_deref().unwrap_or_default())
}
