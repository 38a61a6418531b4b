//! A file for `kubectl dra plan` and `check`: nodes with 8 devices each, a class, a claim template, and a Deployment.
//!
//! `cargo run -p benches --example plan_file -- 5000 1000 > large.yaml` writes 5,000 nodes and a Deployment of 1,000.

use std::io::{self, BufWriter, Write};

fn main() -> io::Result<()> {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse().unwrap_or(1_u32));
    let (nodes, replicas) = (numbers.next().unwrap_or(5000), numbers.next().unwrap_or(1000));
    let mut file = BufWriter::new(io::stdout().lock());
    writeln!(
        file,
        "apiVersion: apps/v1
kind: Deployment
metadata:
  name: train
spec:
  replicas: {replicas}
  selector:
    matchLabels: {{app: train}}
  template:
    metadata:
      labels: {{app: train}}
    spec:
      containers:
      - name: main
        image: train:1
        resources:
          claims:
          - name: gpus
      resourceClaims:
      - name: gpus
        resourceClaimTemplateName: two
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata:
  name: two
spec:
  spec:
    devices:
      requests:
      - name: gpus
        exactly:
          deviceClassName: gpu
          count: 2
          selectors:
          - cel:
              expression: device.attributes[\"gpu.example.com\"].memory >= 40
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata:
  name: gpu
spec:
  selectors:
  - cel:
      expression: device.driver == \"gpu.example.com\""
    )?;
    for node in 0..nodes {
        write_node(&mut file, node)?;
    }
    file.flush()
}

fn write_node(file: &mut impl Write, node: u32) -> io::Result<()> {
    writeln!(
        file,
        "---
apiVersion: v1
kind: Node
metadata:
  name: node-{node}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata:
  name: node-{node}-gpu
spec:
  driver: gpu.example.com
  nodeName: node-{node}
  pool:
    name: node-{node}
    generation: 1
    resourceSliceCount: 1
  devices:"
    )?;
    for device in 0..8 {
        writeln!(
            file,
            "  - name: gpu-{device}
    attributes:
      memory: {{int: {}}}
      numaNode: {{int: {}}}",
            if device % 2 == 0 { 80 } else { 40 },
            device / 4
        )?;
    }
    Ok(())
}
