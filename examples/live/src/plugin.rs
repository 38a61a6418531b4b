//! Answers of a driver's author about the hardware. Everything else of a driver is in this package.

use std::error::Error;

use dra_node::driver::{CdiEdits, DeviceConfig, DeviceHealth, HeldDevice, NodeChoice, PoolSpec};
use k8s_openapi::api::resource::v1::{CounterSet, Device};

/// Reason that the hardware did not do what it should. Its text is for people: the kubelet shows it in an event of the pod.
pub type PluginError = Box<dyn Error + Send + Sync>;

/// Devices of one pool, as they are now.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "made by the author of a driver")]
pub struct Pool {
    /// Name of the pool. Pools of one driver have different names on all nodes: a node's name is one.
    pub name: String,
    /// Devices, in an order that does not change from run to run.
    pub devices: Vec<Device>,
    /// Counter sets that the devices consume from.
    pub counter_sets: Vec<CounterSet>,
    /// Attribute with the type of a partition.
    pub partition_type_attribute: Option<String>,
    /// Node operations that the devices of the pool do without (`skipNodeOperations`).
    pub skip_node_operations: Option<Vec<String>>,
}

impl Pool {
    /// Returns the pool as the planner of slices takes it.
    ///
    /// ```
    /// use dra_live::plugin::Pool;
    /// use dra_node::driver::{SliceLimits, split_into_slices};
    /// use k8s_openapi::api::resource::v1::Device;
    ///
    /// let gpu = Device { name: "gpu-0".to_owned(), ..Device::default() };
    /// let pool = Pool { name: "node-1".to_owned(), devices: vec![gpu], ..Pool::default() };
    /// let plan = split_into_slices(&pool.spec("gpu.example.com", "node-1"), &SliceLimits::unknown(), None)?;
    /// assert_eq!(plan.slices.len(), 1);
    /// # Ok::<(), dra_node::driver::PlanError>(())
    /// ```
    #[must_use]
    pub fn spec<'a>(&'a self, driver: &'a str, node: &'a str) -> PoolSpec<'a> {
        PoolSpec::new(driver, &self.name, NodeChoice::Node(node))
            .with_devices(&self.devices)
            .with_counter_sets(&self.counter_sets)
            .with_partition_type_attribute(self.partition_type_attribute.as_deref())
            .with_skip_node_operations(self.skip_node_operations.as_deref())
    }
}

/// Hardware of a driver.
///
/// Calls may come from several threads; those that change a device come one at a time, also beside a second instance of the
/// driver, and may take as long as they need.
pub trait Plugin: Send + Sync + 'static {
    /// Returns the pools with the devices that are there now. It is asked each second: a device that has gone is published no
    /// longer, and one that has come is. A device that is not well stays, with a taint.
    ///
    /// # Errors
    /// The hardware can't be read. What is published stays as it is.
    fn pools(&self) -> Result<Vec<Pool>, PluginError>;

    /// Sets a device up for a claim. `configs` are those that apply to it, the lowest precedence first.
    ///
    /// # Errors
    /// The device can't be set up, or a configuration is wrong. The kubelet calls again, and [`Plugin::take_down`] comes before.
    fn set_up(&self, device: &HeldDevice, claim_uid: &str, configs: &[DeviceConfig<'_>]) -> Result<(), PluginError>;

    /// Takes back what [`Plugin::set_up`] did, of which some or all may be missing. The device itself may be gone.
    ///
    /// # Errors
    /// The device can't be taken down. The kubelet calls again.
    fn take_down(&self, device: &HeldDevice, claim_uid: &str) -> Result<(), PluginError>;

    /// Takes back what a device keeps over a boot, of a claim that was set up before the last one.
    ///
    /// # Errors
    /// As for [`Plugin::take_down`].
    fn take_down_settings(&self, device: &HeldDevice, claim_uid: &str) -> Result<(), PluginError> {
        let _ = (device, claim_uid);
        Ok(())
    }

    /// Resets all devices: a person says that nothing on the node is in use, and which claims they were set up for is lost.
    ///
    /// # Errors
    /// A device can't be reset.
    fn reset(&self) -> Result<(), PluginError> {
        Ok(())
    }

    /// Returns how a container changes that gets the device: device nodes, variables, mounts. The answer is the same each
    /// time, since a file that is lost is written anew.
    fn edits(&self, device: &HeldDevice, claim_uid: &str) -> CdiEdits;

    /// Returns true if two different devices can't be in use together, such as a card and its partitions.
    fn overlaps(&self, one: &HeldDevice, other: &HeldDevice) -> bool {
        let _ = (one, other);
        false
    }

    /// Returns the health of devices of which more is known than that they are there. The others count as healthy; one that is
    /// in use and gone, as unhealthy.
    fn health(&self) -> Vec<DeviceHealth> {
        Vec::new()
    }
}
