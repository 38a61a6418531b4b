//! Networks: an address and the length of its prefix.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use dra_attrs::Quoted;

use super::{Function, function, ip};
use crate::selector::fault::Fault;
use crate::selector::value::{Answer, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    function("cidr", |_, arguments| match arguments {
        [Value::String(text)] => {
            parse(text).map(|network| Value::Cidr(network.address, network.length)).map_err(Fault::text)
        }
        _ => Err(Fault::no_overload()),
    }),
    function("isCIDR", |_, arguments| match arguments {
        [Value::String(text)] => Ok(Value::Bool(parse(text).is_ok())),
        _ => Err(Fault::no_overload()),
    }),
    function("containsIP", contains_ip),
    function("containsCIDR", contains_cidr),
    function("prefixLength", |_, arguments| match arguments {
        [Value::Cidr(_, length)] => Ok(Value::Int(i64::from(*length))),
        _ => Err(Fault::no_overload()),
    }),
    function("masked", |_, arguments| match arguments {
        [Value::Cidr(address, length)] => {
            let masked = Network { address: *address, length: *length }.masked();
            Ok(Value::Cidr(masked, *length))
        }
        _ => Err(Fault::no_overload()),
    }),
];

#[derive(Clone, Copy)]
struct Network {
    address: IpAddr,
    /// At most the number of bits of the address.
    length: u8,
}

impl Network {
    /// Returns the number of address bits after the prefix.
    fn host_length(self) -> u32 {
        let bits: u8 = if self.address.is_ipv4() { 32 } else { 128 };
        bits.saturating_sub(self.length).into()
    }

    /// Returns the prefix bits of an address.
    fn prefix_of(self, address: IpAddr) -> u128 {
        let bits = match address {
            IpAddr::V4(address) => address.to_bits().into(),
            IpAddr::V6(address) => address.to_bits(),
        };
        bits.checked_shr(self.host_length()).unwrap_or(0)
    }

    fn contains(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4() && self.prefix_of(self.address) == self.prefix_of(address)
    }

    /// Returns the address with the bits after the prefix cleared.
    fn masked(self) -> IpAddr {
        let bits = self.prefix_of(self.address).checked_shl(self.host_length()).unwrap_or(0);
        match self.address {
            IpAddr::V4(_) => u32::try_from(bits).map_or(self.address, |bits| Ipv4Addr::from_bits(bits).into()),
            IpAddr::V6(_) => Ipv6Addr::from_bits(bits).into(),
        }
    }
}

fn parse(text: &str) -> Result<Network, String> {
    let quoted = Quoted(text);
    let failed = "network address parse error during conversion from string";
    let unread = |reason: &str| format!("{failed}: {failed}: netip.ParsePrefix({quoted}): {reason}");
    let (address, length) = text.rsplit_once('/').ok_or_else(|| unread("no '/'"))?;
    let (plain, zone) = address.split_once('%').map_or((address, None), |(plain, zone)| (plain, Some(zone)));
    let address: IpAddr = match (plain.parse(), zone) {
        (Ok(IpAddr::V6(_)), Some(zone)) if !zone.is_empty() => {
            return Err(unread("IPv6 zones cannot be present in a prefix"));
        }
        (Ok(address), None) => address,
        _ => return Err(unread(&ip::unreadable(address))),
    };
    let is_number = length.bytes().all(|byte| byte.is_ascii_digit()) && (length == "0" || !length.starts_with('0'));
    let number = length.parse::<i64>().ok().filter(|_| is_number);
    let number = number.ok_or_else(|| unread(&format!("bad bits after slash: {}", Quoted(length))))?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let length = u8::try_from(number).ok().filter(|length| *length <= most);
    let length = length.ok_or_else(|| unread("prefix length out of range"))?;
    match address {
        IpAddr::V6(mapped) if mapped.to_ipv4_mapped().is_some() => {
            Err(format!("{failed}: IPv4-mapped IPv6 address {quoted} is not allowed"))
        }
        _ => Ok(Network { address, length }),
    }
}

fn contains_ip<'v>(_: &mut crate::selector::meter::Meter<'_>, arguments: &[Value<'v>]) -> Answer<'v> {
    let (network, address) = match arguments {
        [Value::Cidr(address, length), Value::Ip(other)] => (Network { address: *address, length: *length }, *other),
        [Value::Cidr(address, length), Value::String(text)] => {
            // A text that is no address is told as one of a wrong type.
            let other = ip::parse(text).map_err(|_| Fault::text("no such overload"))?;
            (Network { address: *address, length: *length }, other)
        }
        _ => return Err(Fault::no_overload()),
    };
    Ok(Value::Bool(network.contains(address)))
}

fn contains_cidr<'v>(_: &mut crate::selector::meter::Meter<'_>, arguments: &[Value<'v>]) -> Answer<'v> {
    let (network, other) = match arguments {
        [Value::Cidr(address, length), Value::Cidr(other, other_length)] => {
            (Network { address: *address, length: *length }, Network { address: *other, length: *other_length })
        }
        [Value::Cidr(address, length), Value::String(text)] => {
            (Network { address: *address, length: *length }, parse(text).map_err(Fault::text)?)
        }
        _ => return Err(Fault::no_overload()),
    };
    Ok(Value::Bool(network.length <= other.length && network.contains(other.address)))
}
