//! The operations `driver.metadata`, `driver.health` and `driver.h2`: files for containers, and talks with the kubelet.

use dra_alloc::driver::{
    AuthorityRewriter, CdiError, CdiSpec, DeviceHealth, DeviceMetadata, HealthReporter, HealthStatus, MetadataFile,
    MetadataOwner, MetadataPathError, MetadataReadError, MetadataRequest, MetadataVersion,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

use super::refused;
use crate::operation::Operation;
use crate::refusal::Refusal;

#[derive(Deserialize)]
struct NamedClaim {
    namespace: String,
    name: String,
    uid: String,
}

#[derive(Deserialize)]
struct Server {
    minor: u32,
}

/// Question about metadata, by the function that answers it.
#[derive(Deserialize)]
#[serde(tag = "fn", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum MetadataInput {
    Paths {
        driver: String,
        plugin_dir: String,
        claim: NamedClaim,
        pod_claim_name: Option<String>,
        request: String,
    },
    Generation {
        previous_generation: Option<i64>,
    },
    Read {
        stream: String,
        #[serde(default)]
        known: Vec<String>,
    },
    Versions {
        server: Server,
        #[serde(default)]
        asked: Vec<String>,
    },
    Files {
        driver: String,
        plugin_dir: String,
        claim: NamedClaim,
        #[serde(default)]
        requests: Vec<MetadataRequest>,
    },
}

pub(crate) fn metadata(input: Value) -> Result<Operation, Refusal> {
    super::operation(input, |question: &MetadataInput| Ok(answer(question)))
}

fn answer(question: &MetadataInput) -> Value {
    match question {
        MetadataInput::Paths { driver, plugin_dir, claim, pod_claim_name, request } => {
            match owner(driver, plugin_dir, claim, pod_claim_name.as_deref()).file(request) {
                Ok(file) => paths(&file, request),
                Err(error) => bad_path(&error),
            }
        }
        MetadataInput::Generation { previous_generation } => {
            json!({"generation": DeviceMetadata::next_generation(*previous_generation)})
        }
        MetadataInput::Read { stream, known } => {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            match DeviceMetadata::from_stream(stream, &known) {
                Ok((index, _)) => json!({"index": usize::from(index)}),
                Err(MetadataReadError::Decode { index, .. }) => refused("Decode", json!({"index": usize::from(index)})),
                Err(MetadataReadError::NoKnownVersion { seen }) => refused("NoKnownVersion", json!({"seen": seen})),
                Err(error) => refused("Other", json!({"message": error.to_string()})),
            }
        }
        MetadataInput::Versions { server, asked } => {
            let version = |asked: &String| MetadataVersion::ALL.into_iter().find(|known| known.api_version() == asked);
            let asked: Vec<_> = asked.iter().filter_map(version).collect();
            match MetadataVersion::written(server.minor, &asked) {
                Ok(versions) => {
                    let names: Vec<_> = versions.into_iter().map(MetadataVersion::api_version).collect();
                    json!({"apiVersions": names})
                }
                Err(_) => refused("V1beta1Required", json!({})),
            }
        }
        MetadataInput::Files { driver, plugin_dir, claim, requests } => {
            match owner(driver, plugin_dir, claim, None).files(requests) {
                Ok(files) => json!({
                    "files": files.iter().map(|file| &file.host_path).collect::<Vec<_>>(),
                    "cdiDevices": files.iter().map(|file| &file.cdi_device).collect::<Vec<_>>(),
                }),
                Err(error) => bad_path(&error),
            }
        }
    }
}

fn owner<'a>(
    driver: &'a str,
    plugin_dir: &'a str,
    claim: &'a NamedClaim,
    pod_claim_name: Option<&'a str>,
) -> MetadataOwner<'a> {
    let NamedClaim { namespace, name, uid } = claim;
    MetadataOwner { driver, plugin_dir, cdi_dir: CdiSpec::DIRECTORY, namespace, claim: name, uid, pod_claim_name }
}

fn paths(file: &MetadataFile, request: &str) -> Value {
    json!({
        "hostPath": file.host_path,
        "containerPath": file.container_path,
        "cdiKind": file.cdi_kind.to_string(),
        "cdiDevice": file.cdi_device,
        "cdiId": file.cdi_id,
        "cdiFile": file.cdi_file,
        "requestInDocument": request,
    })
}

fn bad_path(error: &MetadataPathError) -> Value {
    match error {
        MetadataPathError::CdiName(CdiError::Vendor { vendor }) => refused("CdiVendor", json!({"vendor": vendor})),
        other => refused("Name", json!({"message": other.to_string()})),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HealthOfDevice {
    pool: String,
    device: String,
    health: Health,
    timeout_seconds: Option<i64>,
    #[serde(default)]
    message: String,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Health {
    Healthy,
    Unhealthy,
    Unknown,
}

#[derive(Deserialize, PartialEq, Eq)]
struct Changed {
    pool: String,
    device: String,
}

/// Event of a health stream.
#[derive(Deserialize)]
#[serde(tag = "event", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum HealthEvent {
    Opened,
    Changed { changed: Changed },
    Tick { now: Time, last_sent: Option<Time> },
}

#[derive(Deserialize)]
struct HealthInput {
    #[serde(default)]
    devices: Vec<HealthOfDevice>,
    #[serde(flatten)]
    event: HealthEvent,
}

impl From<&HealthOfDevice> for DeviceHealth {
    fn from(device: &HealthOfDevice) -> Self {
        Self {
            pool: device.pool.clone(),
            device: device.device.clone(),
            health: match device.health {
                Health::Healthy => HealthStatus::Healthy,
                Health::Unhealthy => HealthStatus::Unhealthy,
                Health::Unknown => HealthStatus::Unknown,
            },
            timeout: device.timeout_seconds.map(SignedDuration::from_secs),
            message: device.message.clone(),
        }
    }
}

pub(crate) fn health(input: Value) -> Result<Operation, Refusal> {
    super::operation(input, |HealthInput { devices, event }: &HealthInput| {
        let devices: Vec<DeviceHealth> = devices.iter().map(DeviceHealth::from).collect();
        Ok(report(devices, event))
    })
}

fn report(devices: Vec<DeviceHealth>, event: &HealthEvent) -> Value {
    // Events without a time need none: the list is due at once.
    let untimed = Timestamp::UNIX_EPOCH;
    match event {
        HealthEvent::Opened => json!({"send": list(HealthReporter::new(devices).poll(untimed))}),
        HealthEvent::Changed { changed } => {
            let mut reporter = HealthReporter::new(before(&devices, changed));
            reporter.poll(untimed);
            reporter.set_devices(devices);
            json!({"send": list(reporter.poll(untimed))})
        }
        HealthEvent::Tick { now, last_sent } => {
            let mut reporter = HealthReporter::new(devices);
            if let Some(last_sent) = last_sent {
                reporter.poll(last_sent.0);
            }
            let send = list(reporter.poll(now.0));
            json!({"send": send, "next": reporter.next_due().map(|next| next.to_string())})
        }
    }
}

/// Returns a list that the change of a device makes to `devices`.
fn before(devices: &[DeviceHealth], changed: &Changed) -> Vec<DeviceHealth> {
    let is_changed = |device: &DeviceHealth| device.pool == changed.pool && device.device == changed.device;
    let mut before: Vec<_> = devices.iter().filter(|device| !is_changed(device)).cloned().collect();
    if before.len() == devices.len() {
        let gone =
            DeviceHealth { pool: changed.pool.clone(), device: changed.device.clone(), ..DeviceHealth::default() };
        before.push(gone);
    }
    before
}

fn list(devices: Option<&[DeviceHealth]>) -> Option<Vec<Value>> {
    let device = |device: &DeviceHealth| {
        let health = match device.health {
            HealthStatus::Healthy => "HEALTHY",
            HealthStatus::Unhealthy => "UNHEALTHY",
            HealthStatus::Unknown => "UNKNOWN",
        };
        json!({"pool": device.pool, "device": device.device, "health": health, "message": device.message})
    };
    devices.map(|devices| devices.iter().map(device).collect())
}

#[derive(Deserialize)]
struct H2Input {
    frame: String,
}

pub(crate) fn h2(input: Value) -> Result<Operation, Refusal> {
    super::operation(input, |H2Input { frame }: &H2Input| {
        let bytes = from_hex(frame).ok_or_else(|| Refusal::field("frame", "not hexadecimal"))?;
        let mut out = Vec::new();
        AuthorityRewriter::after_preface().feed(&bytes, &mut out);
        Ok(json!({"frame": to_hex(&out)}))
    })
}

fn to_hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    digits.filter_map(|digit| char::from_digit(u32::from(digit), 16)).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let byte = |[high, low]: &[u8; 2]| Some(digit(*high)? << 4 | digit(*low)?);
    rest.is_empty().then(|| pairs.iter().map(byte).collect())?
}
