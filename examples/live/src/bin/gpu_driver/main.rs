//! A DRA driver. Its hardware is simulated: see `hardware.rs`.
//!
//! `gpu_driver NODE FOLDER SERVER` runs it for a trial, with all directories in one and an API server that asks nobody who they
//! are; `gpu_driver NODE` on a node of a real cluster.

mod hardware;

use std::error::Error;
use std::fs;
use std::path::Path;

use dra_live::connect::{Cluster, ClusterPlace};
use dra_live::driver::{DriverSettings, run};
use dra_live::plugin::{Plugin, PluginError, Pool};
use dra_live::prepared_claims::MetadataSettings;
use dra_node::driver::{CdiEdits, DeviceConfig, DeviceHealth, HealthStatus, HeldDevice, MetadataVersion};
use hardware::{BROKEN, Machine, card_of, memory_of};

const DRIVER: &str = "gpu.example.com";

/// The answers about the hardware.
struct GpuDriver {
    node: String,
    machine: Machine,
}

impl Plugin for GpuDriver {
    /// Two pools: the GPUs, and the network cards, for which nothing has to be done on the node.
    fn pools(&self) -> Result<Vec<Pool>, PluginError> {
        let (devices, counter_sets) = self.machine.gpus();
        let gpus = Pool { name: self.node.clone(), devices, counter_sets, ..Pool::default() };
        let nics = Pool {
            name: format!("{}/nics", self.node),
            devices: self.machine.nics(),
            skip_node_operations: Some(vec!["*".to_owned()]),
            ..Pool::default()
        };
        Ok(vec![gpus, nics])
    }

    fn set_up(&self, device: &HeldDevice, claim_uid: &str, _: &[DeviceConfig<'_>]) -> Result<(), PluginError> {
        // Nothing is to be done for a device that says so, also when another one of the claim needs the call.
        if device.admin_access || device.skips_prepare {
            return Ok(());
        }
        if self.machine.is_broken(card_of(&device.device)) {
            return Err(format!("{} is broken", device.device).into());
        }
        let file = self.machine.in_use(&device.device, device.share_id.as_deref());
        match fs::read_to_string(&file) {
            Ok(holder) if holder != claim_uid => Err(format!("{} is set up for {holder}", device.device).into()),
            _ => Ok(fs::write(file, claim_uid)?),
        }
    }

    fn take_down(&self, device: &HeldDevice, claim_uid: &str) -> Result<(), PluginError> {
        let file = self.machine.in_use(&device.device, device.share_id.as_deref());
        // A set-up that was interrupted may have written a part of the UID.
        match fs::read_to_string(&file) {
            Ok(holder) if claim_uid.starts_with(&holder) => Ok(fs::remove_file(file)?),
            _ => Ok(()),
        }
    }

    fn reset(&self) -> Result<(), PluginError> {
        let mut files = fs::read_dir(self.machine.0.join("in-use"))?;
        Ok(files.try_for_each(|file| fs::remove_file(file?.path()))?)
    }

    fn edits(&self, device: &HeldDevice, _: &str) -> CdiEdits {
        let name = device.device.replace('-', "_").to_uppercase();
        let mut edits = CdiEdits::default();
        edits.env = vec![format!("{name}={}Gi", memory_of(&device.device))];
        edits
    }

    /// Parts of one GPU overlap if it has not enough memory for both.
    fn overlaps(&self, one: &HeldDevice, other: &HeldDevice) -> bool {
        let is_one_card = one.pool == other.pool && card_of(&one.device) == card_of(&other.device);
        is_one_card && memory_of(&one.device) + memory_of(&other.device) > 80
    }

    fn health(&self) -> Vec<DeviceHealth> {
        let pools = self.pools().unwrap_or_default();
        let devices = pools.iter().flat_map(|pool| pool.devices.iter().map(move |device| (&pool.name, device)));
        let broken = devices.filter(|(_, device)| device.taints.iter().flatten().any(|taint| taint.key == BROKEN));
        let health = |(pool, device): (&String, &k8s_openapi::api::resource::v1::Device)| DeviceHealth {
            pool: pool.clone(),
            device: device.name.clone(),
            health: HealthStatus::Unhealthy,
            message: "the card is broken".to_owned(),
            timeout: None,
        };
        broken.map(health).collect()
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (mut settings, place, node) = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [node, folder, server] => {
            let settings = DriverSettings::within(Path::new(folder), DRIVER, node);
            (settings, ClusterPlace::Server(server.to_owned()), node)
        }
        [node] => (DriverSettings::new(DRIVER, node), ClusterPlace::Found, node),
        _ => return Err("gpu_driver NODE [FOLDER SERVER]".into()),
    };
    // With the UID of its pod, two instances run beside each other while a DaemonSet is updated.
    settings = settings.with_pod_uid(std::env::var("POD_UID").ok());
    settings.boot_id = std::env::var("BOOT_ID").ok();
    settings.metadata = Some(MetadataSettings {
        plugin_dir: settings.sockets.plugin_dir.clone(),
        versions: MetadataVersion::ALL.to_vec(),
    });
    let machine = Machine(settings.state.with_file_name("machine"));
    machine.build()?;
    let cluster = Cluster::connect("gpu-driver/1.0", &place).await?;
    let driver = GpuDriver { node: node.to_owned(), machine };
    Box::pin(run(driver, &settings, &cluster, |happening| println!("{happening}"))).await?;
    Ok(())
}
