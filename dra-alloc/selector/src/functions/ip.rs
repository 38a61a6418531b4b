//! IP addresses.

use std::net::{IpAddr, Ipv4Addr};

use super::function::functions;
use crate::fault::{Fault, LONGEST_TEXT};
use crate::meter::Meter;
use crate::scalar::address::parse;
use crate::value::Value;

/// Work of quoting a byte of a text in an error.
const QUOTED: usize = 6;

functions! { meter;
    "ip" {
        "(string) -> IP" Parse: [Value::String(text)] => read(meter, text, parse)?.map(Value::Ip).map_err(Fault::text);
        "CIDR.() -> IP" One: [Value::Cidr(network)] => Ok(Value::Ip(network.address));
    }
    "isIP" { "(string) -> bool" Parse: [Value::String(text)] => Ok(Value::Bool(read(meter, text, parse)?.is_ok())); }
    "ip.isCanonical" {
        "(string) -> bool" Canonical: [Value::String(text)] =>
            read(meter, text, parse)?.map(|address| Value::Bool(address.to_string() == **text)).map_err(Fault::text);
    }
    "family" {
        "IP.() -> int" One: [Value::Ip(address)] => Ok(Value::Int(if address.is_ipv4() { 4 } else { 6 }));
    }
    "isUnspecified" { "IP.() -> bool" One: [Value::Ip(address)] => Ok(Value::Bool(address.is_unspecified())); }
    "isLoopback" { "IP.() -> bool" One: [Value::Ip(address)] => Ok(Value::Bool(address.is_loopback())); }
    "isLinkLocalMulticast" {
        "IP.() -> bool" One: [Value::Ip(address)] => Ok(Value::Bool(is_link_local_multicast(address)));
    }
    "isLinkLocalUnicast" {
        "IP.() -> bool" One: [Value::Ip(address)] => Ok(Value::Bool(is_link_local_unicast(address)));
    }
    "isGlobalUnicast" { "IP.() -> bool" One: [Value::Ip(address)] => Ok(Value::Bool(is_global_unicast(address))); }
}

fn is_link_local_multicast(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets().starts_with(&[224, 0, 0]),
        IpAddr::V6(address) => address.segments().first().is_some_and(|first| first & 0xff0f == 0xff02),
    }
}

const fn is_link_local_unicast(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

fn is_global_unicast(address: &IpAddr) -> bool {
    *address != Ipv4Addr::BROADCAST
        && !address.is_unspecified()
        && !address.is_loopback()
        && !address.is_multicast()
        && !is_link_local_unicast(address)
}

/// Reads a text. That of an error has it three times.
pub(super) fn read<T>(
    meter: &mut Meter<'_>,
    text: &str,
    parse: fn(&str) -> Result<T, String>,
) -> Result<Result<T, String>, Box<Fault>> {
    let found = parse(text);
    meter.work(if found.is_ok() { 0 } else { QUOTED * text.len().min(LONGEST_TEXT) })?;
    Ok(found)
}
