//! Networks: an address and the length of its prefix.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::address;
use crate::fault::quoted;

/// Network: an address, and how many of its bits all addresses of the network have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Network {
    pub(crate) address: IpAddr,
    /// At most the number of bits of the address.
    pub(crate) length: u8,
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl Network {
    /// Parses a network; the error is that of Go's parser.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let whole = quoted(text);
        let failed = "network address parse error during conversion from string";
        let unread = |reason: &str| format!("{failed}: {failed}: netip.ParsePrefix({whole}): {reason}");
        let (address, length) = text.rsplit_once('/').ok_or_else(|| unread("no '/'"))?;
        let (plain, zone) = address.split_once('%').map_or((address, None), |(plain, zone)| (plain, Some(zone)));
        let address: IpAddr = match (plain.parse(), zone) {
            (Ok(IpAddr::V6(_)), Some(zone)) if !zone.is_empty() => {
                return Err(unread("IPv6 zones cannot be present in a prefix"));
            }
            (Ok(address), None) => address,
            _ => return Err(unread(&address::unreadable(address))),
        };
        let is_number = length.bytes().all(|byte| byte.is_ascii_digit()) && (length == "0" || !length.starts_with('0'));
        let number = length.parse::<i64>().ok().filter(|_| is_number);
        let number = number.ok_or_else(|| unread(&format!("bad bits after slash: {}", quoted(length))))?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let length = u8::try_from(number).ok().filter(|length| *length <= most);
        let length = length.ok_or_else(|| unread("prefix length out of range"))?;
        match address {
            IpAddr::V6(mapped) if mapped.to_ipv4_mapped().is_some() => {
                Err(format!("{failed}: IPv4-mapped IPv6 address {whole} is not allowed"))
            }
            _ => Ok(Self { address, length }),
        }
    }

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

    pub(crate) fn contains(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4() && self.prefix_of(self.address) == self.prefix_of(address)
    }

    pub(crate) fn covers(self, other: Self) -> bool {
        self.length <= other.length && self.contains(other.address)
    }

    /// Returns the network with the bits of its address after the prefix cleared.
    pub(crate) fn masked(self) -> Self {
        let bits = self.prefix_of(self.address).checked_shl(self.host_length()).unwrap_or(0);
        let address = match self.address {
            IpAddr::V4(_) => u32::try_from(bits).map_or(self.address, |bits| Ipv4Addr::from_bits(bits).into()),
            IpAddr::V6(_) => Ipv6Addr::from_bits(bits).into(),
        };
        Self { address, ..self }
    }
}
