//! Runs of the program `driver` on all captures and on directories.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use dra_attrs::{FieldErrors, StandardAttribute, check_device_attributes};
use examples::machine::Machine;
use k8s_openapi::api::resource::v1::{Device, DeviceAttribute, ResourceSlice};

fn driver(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_driver")).args(args).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn slice(args: &[&str]) -> (ResourceSlice, String) {
    let output = driver(args);
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    let text = str::from_utf8(&output.stdout).unwrap();
    assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{args:?}");
    let slice = if args.contains(&"json") {
        serde_json::from_str(text).unwrap()
    } else {
        serde_saphyr::from_str(text).unwrap()
    };
    (slice, stderr(&output))
}

fn capture(name: &str, more: &[&str]) -> (ResourceSlice, String) {
    slice(&[&["--capture", name], more].concat())
}

fn devices(slice: &ResourceSlice) -> &[Device] {
    slice.spec.devices.as_deref().unwrap()
}

fn attributes(device: &Device) -> &BTreeMap<String, DeviceAttribute> {
    device.attributes.as_ref().unwrap()
}

fn text<'a>(device: &'a Device, name: &str) -> Option<&'a str> {
    attributes(device).get(name).and_then(|attribute| attribute.string.as_deref())
}

/// Returns device names with their NUMA nodes.
fn nodes(slice: &ResourceSlice) -> Vec<(&str, Vec<i64>)> {
    devices(slice).iter().map(|device| (device.name.as_str(), nodes_of(device))).collect()
}

fn nodes_of(device: &Device) -> Vec<i64> {
    let attribute = attributes(device).get(StandardAttribute::NUMA_NODE);
    let list = attribute.and_then(|attribute| attribute.ints.clone());
    list.unwrap_or_else(|| attribute.and_then(|attribute| attribute.int).into_iter().collect())
}

fn is_dns_label(name: &str) -> bool {
    let is_inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    (1..=63).contains(&name.len()) && name.bytes().all(is_inner) && !name.starts_with('-') && !name.ends_with('-')
}

/// Returns an empty directory for one test; files of an earlier run are removed.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("driver").join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).unwrap();
    }
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn add_function(sysfs: &Path, path: &str, class: &str, node: i64) {
    let folder = sysfs.join("devices").join(path);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("class"), format!("{class}\n")).unwrap();
    fs::write(folder.join("numa_node"), format!("{node}\n")).unwrap();
    let bus = sysfs.join("bus/pci/devices");
    fs::create_dir_all(&bus).unwrap();
    symlink(format!("../../../devices/{path}"), bus.join(folder.file_name().unwrap())).unwrap();
}

fn check(machine: &Machine, slice: &ResourceSlice) {
    let name = &machine.name;
    assert_eq!(slice.metadata.name.as_deref(), Some("00000-pci.example.com-30da9bb791"), "{name}");
    assert_eq!(slice.spec.pool.name, "node-1", "{name}");
    let mut names = BTreeSet::new();
    for device in devices(slice) {
        let address = text(device, StandardAttribute::PCI_BUS_ID).unwrap();
        let captured = machine.devices.iter().find(|captured| captured.address == address).unwrap();
        assert!(is_dns_label(&device.name) && names.insert(&device.name), "{name}: {}", device.name);
        assert_eq!(check_device_attributes(attributes(device), 0), Ok(()), "{name}: {address}");
        assert_eq!(text(device, StandardAttribute::PCIE_ROOT), captured.path.split('/').next(), "{name}: {address}");
        let kind = text(device, "kind").unwrap();
        assert!(device.name.starts_with(kind), "{name}: {address}");
        let node = captured.numa_node.filter(|node| *node >= 0);
        assert_eq!(nodes_of(device).first().copied(), node, "{name}: {address}");
        assert!(nodes_of(device).iter().all(|node| *node >= 0), "{name}: {address}");
    }
}

fn is_published(class: &str) -> bool {
    ["0x02", "0x03", "0x12", "0x0108"].iter().any(|prefix| class.starts_with(prefix))
}

#[test]
fn every_capture_gives_a_valid_slice_in_every_form() {
    let machines = Machine::all().unwrap();
    assert!(machines.len() >= 10);
    for machine in machines {
        let published = machine.devices.iter().filter(|device| is_published(&device.class)).count();
        for form in [&[][..], &["--list"]] {
            let (yaml, _) = capture(&machine.name, form);
            let (json, _) = capture(&machine.name, &[form, &["-o", "json"]].concat());
            assert_eq!(yaml, json, "{}", machine.name);
            assert_eq!(devices(&yaml).len(), published, "{}", machine.name);
            check(&machine, &yaml);
        }
    }
}

#[test]
fn lists_are_lists_and_scalars_scalars() {
    for machine in Machine::all().unwrap() {
        let (scalar, _) = capture(&machine.name, &[]);
        let (list, _) = capture(&machine.name, &["--list"]);
        for (scalar, list) in devices(&scalar).iter().zip(devices(&list)) {
            let value = |device| attributes(device).get(StandardAttribute::NUMA_NODE).cloned().unwrap_or_default();
            assert_eq!(value(scalar).ints, None);
            assert_eq!(value(list).int, None);
            assert_eq!(value(scalar).int, value(list).ints.and_then(|nodes| nodes.first().copied()));
        }
    }
}

#[test]
fn power9_has_holes_between_its_nodes_and_no_local_neighbour() {
    let expected = [
        ("gpu-0004-05-00-0", vec![0]),
        ("gpu-0004-06-00-0", vec![0]),
        ("gpu-0006-00-00-0", vec![0]),
        ("gpu-0007-00-00-0", vec![8]),
        ("gpu-0035-04-00-0", vec![8]),
        ("gpu-0035-05-00-0", vec![8]),
    ];
    assert_eq!(nodes(&capture("power9-ac922", &[]).0), expected);
    // The nearest node of 0 is 8, on the other socket: the list is the physical node alone.
    assert_eq!(nodes(&capture("power9-ac922", &["--list"]).0), expected);
}

#[test]
fn epyc_lists_the_quadrants_of_a_socket() {
    let scalar = [
        ("nvme-0000-01-00-0", vec![0]),
        ("gpu-0000-a1-00-0", vec![5]),
        ("gpu-0000-a2-00-0", vec![5]),
        ("nic-0000-c1-00-0", vec![6]),
        ("nic-0000-c1-00-2", vec![6]),
        ("nic-0000-c1-00-3", vec![6]),
    ];
    let list = [
        ("nvme-0000-01-00-0", vec![0, 1, 2, 3]),
        ("gpu-0000-a1-00-0", vec![5, 4, 6, 7]),
        ("gpu-0000-a2-00-0", vec![5, 4, 6, 7]),
        ("nic-0000-c1-00-0", vec![6, 4, 5, 7]),
        ("nic-0000-c1-00-2", vec![6, 4, 5, 7]),
        ("nic-0000-c1-00-3", vec![6, 4, 5, 7]),
    ];
    assert_eq!(nodes(&capture("epyc-9825-nps4", &[]).0), scalar);
    assert_eq!(nodes(&capture("epyc-9825-nps4", &["--list"]).0), list);
    let (_, stderr) = capture("epyc-9825-nps4", &["--list"]);
    assert_eq!(stderr, "");
}

#[test]
fn no_affinity_is_left_out_and_said() {
    let (slice, stderr) = capture("vm-vmd", &[]);
    assert_eq!(nodes(&slice), [("gpu-0000-00-02-0", vec![]), ("nic-0000-00-03-0", vec![])]);
    let lines: Vec<&str> = stderr.lines().collect();
    assert_eq!(
        lines,
        [
            "driver: 0000:00:02.0: no numaNode: the device has no NUMA affinity (node -1)",
            "driver: 0000:00:03.0: no numaNode: the device has no NUMA affinity (node -1)",
            "driver: PCI functions of other classes: 1",
        ]
    );
}

#[test]
fn names_are_taken_over_and_checked() {
    let (slice, _) = capture("xeon-cxl", &["--node-name", "worker.a", "--driver", "dra.net"]);
    assert_eq!(slice.metadata.name.as_deref(), Some("00000-dra.net-274c255f96"));
    assert_eq!(slice.spec.driver, "dra.net");
    assert_eq!(slice.spec.node_name.as_deref(), Some("worker.a"));
    for wrong in [["--driver", "GPU.com"], ["--driver", ""], ["--node-name", "a..b"], ["--node-name", "-a"]] {
        let output = driver(&wrong);
        assert!(!output.status.success() && output.stdout.is_empty(), "{wrong:?}");
    }
}

/// Checks that addresses are quoted: YAML 1.1 readers take a plain `0000:01:00.0` for a number of base 60.
#[test]
fn addresses_are_quoted_in_yaml() {
    let output = driver(&["--capture", "epyc-9825-nps4"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let is_quoted = |line: &str| line.contains("\"0000:01:00.0\"") || line.contains("'0000:01:00.0'");
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("0000:01:00.0")).collect();
    assert!(!lines.is_empty() && lines.iter().all(|line| is_quoted(line)), "{lines:?}");
}

#[test]
fn an_empty_bus_gives_an_empty_slice() {
    let root = folder("empty");
    fs::create_dir_all(root.join("bus/pci/devices")).unwrap();
    for form in [&[][..], &["--list"], &["-o", "json"]] {
        let (slice, stderr) = slice(&[&["--sysfs", root.to_str().unwrap()], form].concat());
        assert!(devices(&slice).is_empty());
        assert_eq!(stderr, "driver: no device to publish: the slice is empty\n");
    }
}

#[test]
fn a_bus_that_can_not_be_read_withdraws_nothing() {
    let root = folder("wrong");
    fs::create_dir_all(root.join("bus/pci/devices")).unwrap();
    fs::write(root.join("file"), "").unwrap();
    for wrong in [root.join("nosuch"), root.join("file"), root.join("bus")] {
        let output = driver(&["--sysfs", wrong.to_str().unwrap()]);
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), &b""[..]), "{}", wrong.display());
        let beginning = format!("driver: no PCI bus: {}/bus/pci/devices: ", wrong.display());
        assert!(stderr(&output).starts_with(&beginning), "{}", stderr(&output));
    }
}

#[test]
fn an_unknown_capture_is_an_error_that_names_the_known_ones() {
    for name in ["nothing", "../machines/xeon-cxl", ""] {
        let output = driver(&["--capture", name]);
        assert!(!output.status.success() && output.stdout.is_empty(), "{name:?}");
        let stderr = stderr(&output);
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert!(stderr.contains("epyc-9825-nps4, ") && stderr.contains("xeon-cxl"), "{stderr}");
    }
    assert!(!driver(&["--capture", "xeon-cxl", "--sysfs", "/sys"]).status.success());
}

#[test]
fn a_directory_is_read_like_sysfs() {
    let root = folder("odd");
    add_function(&root, "pci0000:d7/0000:d7:05.5/pci10000:00/10000:00:02.0/10000:01:00.0", "0x010802", 1);
    add_function(&root, "pci0000:00/0000:00:1f.0", "0x060100", 0);
    add_function(&root, "pci0000:00/0000:00:02.0", "0x030000", 5000);
    add_function(&root, "platform/soc/0001:01:00.0", "0x020000", 0);
    add_function(&root, "pci0000:00/0000:00:03.0", "graphics", 0);
    add_function(&root, "pci0000:00/0000:0A:03.0", "0x030000", 0);
    add_function(&root, "pci0000:00/not\na:device", "0x030000", 0);
    let (slice, stderr) = slice(&["--sysfs", root.to_str().unwrap()]);

    let expected = [("gpu-0000-00-02-0", vec![]), ("nic-0001-01-00-0", vec![0]), ("nvme-10000-01-00-0", vec![1])];
    assert_eq!(nodes(&slice), expected);
    assert_eq!(
        devices(&slice).iter().map(|device| text(device, StandardAttribute::PCIE_ROOT)).collect::<Vec<_>>(),
        [Some("pci0000:00"), None, Some("pci0000:d7")]
    );
    let starts = [
        "driver: 0000:00:02.0: no numaNode: ",
        "driver: \"0000:00:03.0\" left out: ",
        "driver: \"0000:0A:03.0\" left out: ",
        "driver: 0001:01:00.0: no pcieRoot: ",
        "driver: \"not\\na:device\" left out: ",
        "driver: PCI functions of other classes: 1",
    ];
    assert_eq!(stderr.lines().count(), starts.len(), "{stderr}");
    for (line, start) in stderr.lines().zip(starts) {
        assert!(line.starts_with(start), "{line}");
    }
}

/// Reads all slices that a run prints.
fn slices(args: &[&str]) -> (Vec<ResourceSlice>, Vec<String>) {
    let output = driver(&[args, &["-o", "json"]].concat());
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let documents = text.split("---\n").filter(|document| !document.trim().is_empty());
    let lines = stderr(&output).lines().map(str::to_owned).collect();
    (documents.map(|document| serde_json::from_str(document).unwrap()).collect(), lines)
}

/// Writes slices to a file as a server stores them.
fn store(path: &Path, slices: &[ResourceSlice]) {
    let stored = slices.iter().enumerate().map(|(number, slice)| {
        let mut slice = slice.clone();
        slice.metadata.uid.get_or_insert_with(|| format!("uid-{number}"));
        slice.metadata.resource_version = Some("1".to_owned());
        serde_json::to_string(&slice).unwrap() + "\n---\n"
    });
    fs::write(path, stored.collect::<String>()).unwrap();
}

#[test]
fn many_devices_are_split_and_stay_in_their_slices() {
    let root = folder("full");
    let place = |number: i32| format!("pci0000:00/0000:{number:02x}:00.0");
    (0..130).for_each(|number| add_function(&root, &place(number), "0x020000", 0));
    let sysfs = ["--sysfs", root.to_str().unwrap()];
    let (first, lines) = slices(&sysfs);
    assert_eq!(first.iter().map(|slice| devices(slice).len()).collect::<Vec<_>>(), [64, 64, 2]);
    assert!(lines.is_empty(), "{lines:?}");
    let file = root.join("stored.yaml");
    store(&file, &first);
    let again = [&sysfs[..], &["--stored", file.to_str().unwrap()]].concat();
    let (second, lines) = slices(&again);
    assert_eq!((second.len(), lines), (0, vec!["driver: nothing to write".to_owned()]));

    // A device is plugged in, at the beginning of the bus: all slices get the next generation, one another device.
    add_function(&root, "pci0000:00/0000:00:01.0", "0x020000", 0);
    let (third, lines) = slices(&again);
    let name = |slice: &ResourceSlice| slice.metadata.name.clone().unwrap();
    let updates: Vec<String> =
        first.iter().map(|slice| format!("driver: update {} (generation 2)", name(slice))).collect();
    assert_eq!(lines, updates);
    let changed: Vec<usize> = (0..3).filter(|number| devices(&third[*number]) != devices(&first[*number])).collect();
    assert_eq!((changed, devices(&third[2]).len()), (vec![2], 3));
}

#[test]
fn slices_fit_the_version_of_the_server() {
    let of = |more: &[&str]| slices(&[&["--capture", "xeon-cxl", "--list", "--server"], more].concat()).0;
    assert_eq!(of(&["1.34"]).len(), 1);
    let lists = |slices: &[ResourceSlice]| {
        slices.iter().any(|slice| serde_json::to_string(slice).unwrap().contains(r#""ints""#))
    };
    assert!(!lists(&of(&["1.35"])), "1.35 does not know lists");
    assert!(!lists(&of(&["1.37"])), "the gate is off by default");
    assert!(lists(&of(&["1.37", "--feature-gates", "DRAListTypeAttributes=true"])));
    for wrong in ["34", "2.0", "1.x"] {
        assert!(!driver(&["--capture", "xeon-cxl", "--server", wrong]).status.success(), "{wrong}");
    }
}

#[test]
fn a_list_too_long_beside_the_other_attributes_is_left_out() {
    let root = folder("wide");
    add_function(&root, "pci0000:00/0000:01:00.0", "0x020000", 3);
    let nodes = root.join("devices/system/node");
    for node in 0..46 {
        let folder = nodes.join(format!("node{node}"));
        fs::create_dir_all(&folder).unwrap();
        let row: Vec<&str> = (0..46).map(|other| if other == node { "10" } else { "20" }).collect();
        fs::write(folder.join("distance"), row.join(" ")).unwrap();
        fs::write(folder.join("cpulist"), "\n").unwrap();
    }
    fs::write(nodes.join("online"), "0-45\n").unwrap();
    let (slice, stderr) = slice(&["--sysfs", root.to_str().unwrap(), "--list"]);
    assert_eq!(attributes(&devices(&slice)[0]).len(), 3);
    assert_eq!(stderr, "driver: 0000:01:00.0: no numaNode: attributes: 49 values, more than 48\n");
}

#[test]
fn a_file_beyond_the_limit_is_refused() {
    let root = folder("large");
    add_function(&root, "pci0000:00/0000:01:00.0", "0x020000", 0);
    fs::write(root.join("devices/pci0000:00/0000:01:00.0/numa_node"), vec![b' '; 70_000]).unwrap();
    let (slice, stderr) = slice(&["--sysfs", root.to_str().unwrap()]);
    assert_eq!(nodes(&slice), [("nic-0000-01-00-0", vec![])]);
    assert!(stderr.ends_with("more than 65536 bytes\n"), "{stderr}");
}

const LISTS: &str = "--feature-gates=DRAListTypeAttributes=true";

#[test]
fn what_is_published_of_every_capture_is_accepted() {
    for machine in Machine::all().unwrap() {
        for form in [&["--check"][..], &["--check", "--list", LISTS]] {
            let (checked, _) = capture(&machine.name, form);
            let unchecked: Vec<&str> = form.iter().copied().filter(|arg| *arg == "--list").collect();
            assert_eq!(checked, capture(&machine.name, &unchecked).0, "{}", machine.name);
            assert_eq!(dra_alloc::validate::validate_slice(&checked), FieldErrors::new(), "{}", machine.name);
        }
    }
}

#[test]
fn lists_that_the_api_server_drops_are_a_fatal_error_and_nothing_is_published() {
    // req: 6072-FORM-12
    let known = Machine::all().unwrap().iter().map(|machine| machine.name.clone()).collect::<Vec<_>>();
    let with_lists = known.iter().find(|name| {
        let (slice, _) = capture(name, &["--list"]);
        devices(&slice)
            .iter()
            .any(|device| attributes(device).get(StandardAttribute::NUMA_NODE).is_some_and(|node| node.ints.is_some()))
    });
    let args = ["--capture", with_lists.unwrap(), "--list", "--check"];
    for gates in [None, Some("--feature-gates=DRAListTypeAttributes=false")] {
        let output = driver(&args.into_iter().chain(gates).collect::<Vec<_>>());
        assert!(!output.status.success() && output.stdout.is_empty());
        let said = stderr(&output);
        assert!(
            said.lines().last().unwrap().starts_with("driver: fatal configuration error: list attributes"),
            "{said}"
        );
    }
}

#[test]
fn gates_are_those_of_the_api_server_that_checks() {
    let root = folder("gates");
    add_function(&root, "pci0000:00/0000:01:00.0", "0x020000", 0);
    let sysfs = ["--sysfs", root.to_str().unwrap()];
    let unknown = driver(&[&sysfs[..], &["--check", "--feature-gates=Nope=true"]].concat());
    assert!(!unknown.status.success() && stderr(&unknown).contains("--feature-gates: no feature gate \"Nope\""));
    let alone = driver(&[&sysfs[..], &[LISTS]].concat());
    assert!(!alone.status.success() && stderr(&alone).contains("--check"));
}

#[test]
fn the_readme_shows_what_is_printed() {
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md")).unwrap();
    let (_, transcript) = readme.split_once("$ driver --capture kunpeng920 --list | head -18\n").unwrap();
    let shown: Vec<&str> = transcript.lines().take_while(|line| *line != "```").collect();
    let printed = String::from_utf8(driver(&["--capture", "kunpeng920", "--list"]).stdout).unwrap();
    assert_eq!(shown, printed.lines().take(18).collect::<Vec<_>>());
}
