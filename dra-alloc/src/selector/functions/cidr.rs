//! Kubernetes' CIDR library: an address with the length of a prefix. Address bits after the prefix are not cleared.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use cel::ExecutionError;
use cel::common::types::CelInt;
use cel::common::value::CowVal;
use dra_attrs::Quoted;

use super::Parameter::{Cidr, Ip, String as Text};
use super::ip::{self, IpValue};
use super::{Function, failed, fuel, global, member, mismatch, own, read, text, truth};
use crate::selector::opaque::opaque;
use crate::selector::types::{Plain, Ty};

const RESULT: Ty = Ty::One(Plain::Cidr);

/// Network as a CEL value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::selector) struct CidrValue {
    address: IpAddr,
    /// Length of the prefix, at most the number of bits of the address.
    prefix_length: u8,
}

impl CidrValue {
    /// Returns the number of address bits after the prefix.
    fn host_length(self) -> u32 {
        let bits: u8 = if self.address.is_ipv4() { 32 } else { 128 };
        bits.saturating_sub(self.prefix_length).into()
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

    fn contains_network(self, other: Self) -> bool {
        self.prefix_length <= other.prefix_length && self.contains(other.address)
    }

    /// Returns the network with the bits after the prefix cleared.
    fn masked(self) -> Self {
        let bits = self.prefix_of(self.address).checked_shl(self.host_length()).unwrap_or(0);
        let address = match self.address {
            IpAddr::V4(_) => u32::try_from(bits).map_or(self.address, |bits| Ipv4Addr::from_bits(bits).into()),
            IpAddr::V6(_) => Ipv6Addr::from_bits(bits).into(),
        };
        Self { address, ..self }
    }
}

impl fmt::Display for CidrValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.address, self.prefix_length)
    }
}

opaque!(CidrValue, "net.CIDR", |one, other| one == other);

pub(super) const FUNCTIONS: &[Function] = &[
    global("cidr", &[Text], RESULT, |args| read(&args, parse)?.map(CowVal::owned).map_err(failed)),
    global("isCIDR", &[Text], Ty::BOOL, |args| Ok(truth(read(&args, parse)?.is_ok()))),
    member("containsIP", &[Cidr, Text], Ty::BOOL, |args| {
        // What is no address is no argument.
        let address = ip::parse(argument_text(&args)?).map_err(|_| mismatch())?;
        receiver(&args).map(|network| truth(network.contains(address)))
    }),
    member("containsIP", &[Cidr, Ip], Ty::BOOL, |args| {
        let address = own::<IpValue>(argument(&args)?)?.0;
        receiver(&args).map(|network| truth(network.contains(address)))
    }),
    member("containsCIDR", &[Cidr, Text], Ty::BOOL, |args| {
        let other = parse(argument_text(&args)?).map_err(failed)?;
        receiver(&args).map(|network| truth(network.contains_network(other)))
    }),
    member("containsCIDR", &[Cidr, Cidr], Ty::BOOL, |args| {
        let other = *own::<CidrValue>(argument(&args)?)?;
        receiver(&args).map(|network| truth(network.contains_network(other)))
    }),
    member("ip", &[Cidr], Ty::One(Plain::Ip), |args| receiver(&args).map(|it| CowVal::owned(IpValue(it.address)))),
    member("masked", &[Cidr], RESULT, |args| receiver(&args).map(CidrValue::masked).map(CowVal::owned)),
    member("prefixLength", &[Cidr], Ty::INT, |args| {
        receiver(&args).map(|network| CowVal::owned(CelInt::from(i64::from(network.prefix_length))))
    }),
];

fn parse(source: &str) -> Result<CidrValue, String> {
    let quoted = Quoted(source);
    let failed = "network address parse error during conversion from string";
    let unread = |reason: &str| format!("{failed}: {failed}: netip.ParsePrefix({quoted}): {reason}");
    let (address, length) = source.rsplit_once('/').ok_or_else(|| unread("no '/'"))?;
    if address.contains('%') {
        return Err(unread("IPv6 zones cannot be present in a prefix"));
    }
    let address: IpAddr =
        address.parse().map_err(|_| unread(&format!("ParseAddr({}): unable to parse IP", Quoted(address))))?;
    let is_number = length.bytes().all(|byte| byte.is_ascii_digit()) && (length == "0" || !length.starts_with('0'));
    let number = length.parse::<i64>().ok().filter(|_| is_number);
    let number = number.ok_or_else(|| unread(&format!("bad bits after slash: {}", Quoted(length))))?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let prefix_length = u8::try_from(number).ok().filter(|length| *length <= most);
    let prefix_length = prefix_length.ok_or_else(|| unread("prefix length out of range"))?;
    match address {
        IpAddr::V6(mapped) if mapped.to_ipv4_mapped().is_some() => {
            Err(format!("{failed}: IPv4-mapped IPv6 address {quoted} is not allowed"))
        }
        _ => Ok(CidrValue { address, prefix_length }),
    }
}

fn argument<'a, 'b, 'v>(args: &'a [CowVal<'b, 'v>]) -> Result<&'a CowVal<'b, 'v>, ExecutionError> {
    args.get(1).ok_or_else(mismatch)
}

fn argument_text<'a>(args: &'a [CowVal<'_, '_>]) -> Result<&'a str, ExecutionError> {
    let [_, source, budget] = args else { return Err(mismatch()) };
    let source = text(source)?;
    fuel(budget)?.spend_bytes(source.len())?;
    Ok(source)
}

/// Charges one unit to the budget of the evaluation, and returns the network on which the function was called.
fn receiver(args: &[CowVal<'_, '_>]) -> Result<CidrValue, ExecutionError> {
    let [target, .., budget] = args else { return Err(mismatch()) };
    fuel(budget)?.spend(1)?;
    own::<CidrValue>(target).copied()
}
