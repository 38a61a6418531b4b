//! Kubernetes' library of IP addresses. Rejects addresses with a zone, and IPv4 addresses written as IPv6.

use std::net::{IpAddr, Ipv4Addr};

use cel::ExecutionError;
use cel::common::types::CelInt;
use cel::common::value::CowVal;
use dra_attrs::Quoted;

use super::Parameter::{Ip, String as Text};
use super::{Function, failed, fuel, global, member, mismatch, own, read, text, truth};
use crate::selector::opaque::opaque;
use crate::selector::types::{Plain, Ty};

/// IP address as a CEL value.
#[derive(Clone, Debug)]
pub(in crate::selector) struct IpValue(pub(super) IpAddr);

opaque!(IpValue, "net.IP", |one, other| one.0 == other.0);

pub(super) const FUNCTIONS: &[Function] = &[
    global("ip", &[Text], Ty::One(Plain::Ip), |args| {
        read(&args, parse)?.map(IpValue).map(CowVal::owned).map_err(failed)
    }),
    global("isIP", &[Text], Ty::BOOL, |args| Ok(truth(read(&args, parse)?.is_ok()))),
    global("ip.isCanonical", &[Text], Ty::BOOL, |args| is_canonical(&args).map(truth)),
    member("family", &[Ip], Ty::INT, |args| is(&args, IpAddr::is_ipv4).map(family)),
    member("isUnspecified", &[Ip], Ty::BOOL, |args| is(&args, IpAddr::is_unspecified).map(truth)),
    member("isLoopback", &[Ip], Ty::BOOL, |args| is(&args, IpAddr::is_loopback).map(truth)),
    member("isLinkLocalMulticast", &[Ip], Ty::BOOL, |args| is(&args, is_link_local_multicast).map(truth)),
    member("isLinkLocalUnicast", &[Ip], Ty::BOOL, |args| is(&args, is_link_local_unicast).map(truth)),
    member("isGlobalUnicast", &[Ip], Ty::BOOL, |args| is(&args, is_global_unicast).map(truth)),
];

fn family<'b, 'v>(is_ipv4: bool) -> CowVal<'b, 'v> {
    CowVal::owned(CelInt::from(if is_ipv4 { 4 } else { 6 }))
}

pub(super) fn parse(source: &str) -> Result<IpAddr, String> {
    let quoted = Quoted(source);
    match source.split_once('%') {
        Some((address, zone)) if !zone.is_empty() && address.parse().is_ok_and(|address: IpAddr| address.is_ipv6()) => {
            Err(format!("IP address {quoted} with zone value is not allowed"))
        }
        _ => match source.parse() {
            Ok(IpAddr::V6(address)) if address.to_ipv4_mapped().is_some() => {
                Err(format!("IPv4-mapped IPv6 address {quoted} is not allowed"))
            }
            Ok(address) => Ok(address),
            Err(_) => Err(format!(
                "IP Address {quoted} parse error during conversion from string: ParseAddr({quoted}): unable to parse IP"
            )),
        },
    }
}

fn is_canonical(args: &[CowVal<'_, '_>]) -> Result<bool, ExecutionError> {
    let address = read(args, parse)?.map_err(failed)?;
    let source = args.first().ok_or_else(mismatch)?;
    Ok(address.to_string() == text(source)?)
}

fn is(args: &[CowVal<'_, '_>], property: fn(&IpAddr) -> bool) -> Result<bool, ExecutionError> {
    let [address, budget] = args else { return Err(mismatch()) };
    fuel(budget)?.spend(1)?;
    own::<IpValue>(address).map(|address| property(&address.0))
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

/// Returns true for global unicast addresses, like Go's `netip`: private addresses are included.
fn is_global_unicast(address: &IpAddr) -> bool {
    *address != Ipv4Addr::BROADCAST
        && !address.is_unspecified()
        && !address.is_loopback()
        && !address.is_multicast()
        && !is_link_local_unicast(address)
}
