//! Validation of the IP addresses of network interfaces.

use std::net::IpAddr;

use dra_attrs::{FieldError, FieldPath, Quoted};

use super::context::ValidationContext;

const FORM: &str = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";

/// Checks that an interface address is in CIDR form (`address/prefix length`) and canonical.
pub(super) fn check_interface_address(address: &str, at: &FieldPath<'_>, context: &mut ValidationContext) {
    match canonical(address) {
        None => context.push(FieldError::invalid(at, address, FORM)),
        Some(canonical) if canonical != address => {
            let detail = format!("must be in canonical form ({})", Quoted(&canonical));
            context.push(FieldError::invalid(at, address, detail));
        }
        Some(_) => {}
    }
}

fn canonical(address: &str) -> Option<String> {
    let (ip, prefix) = address.split_once('/')?;
    let ip: IpAddr = without_leading_zeros(ip).parse().ok()?;
    let bits: u8 = if prefix.bytes().all(|c| c.is_ascii_digit()) { prefix.parse().ok()? } else { return None };
    match (ip, ip.to_canonical()) {
        (IpAddr::V4(_), ip) => (bits <= 32).then(|| format!("{ip}/{bits}")),
        // An IPv4-mapped IPv6 address is printed as IPv4.
        (IpAddr::V6(_), ip @ IpAddr::V4(_)) => {
            let length = if bits > 32 { bits.saturating_sub(96) } else { bits };
            (bits <= 128).then(|| format!("{ip}/{length}"))
        }
        (_, ip) => (bits <= 128).then(|| format!("{ip}/{bits}")),
    }
}

/// Removes leading zeros from an IPv4 address: Kubernetes reads `010.009.008.000` as decimal numbers.
fn without_leading_zeros(ip: &str) -> String {
    if ip.contains(':') {
        return ip.to_owned();
    }
    let parts = ip.split('.').map(|part| match part.trim_start_matches('0') {
        "" if !part.is_empty() => "0",
        trimmed => trimmed,
    });
    parts.collect::<Vec<_>>().join(".")
}
