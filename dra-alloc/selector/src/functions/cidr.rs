//! Networks.

use super::function::functions;
use super::ip;
use crate::fault::Fault;
use crate::scalar::address;
use crate::scalar::network::Network;
use crate::value::Value;

functions! { meter;
    "cidr" { "(string) -> CIDR" Parse: [Value::String(text)] => ip::read(meter, text, Network::parse)?.map(Value::Cidr).map_err(Fault::text); }
    "isCIDR" { "(string) -> bool" Parse: [Value::String(text)] => Ok(Value::Bool(ip::read(meter, text, Network::parse)?.is_ok())); }
    "containsIP" {
        // A text that is no address is told as one of a wrong type.
        "CIDR.(string) -> bool" ContainsIpText: [Value::Cidr(network), Value::String(text)] =>
            Ok(Value::Bool(network.contains(ip::read(meter, text, address::parse)?.map_err(|_| "no such overload")?)));
        "CIDR.(IP) -> bool" ContainsIp:
            [Value::Cidr(network), Value::Ip(address)] => Ok(Value::Bool(network.contains(*address)));
    }
    "containsCIDR" {
        "CIDR.(string) -> bool" ContainsCidrText: [Value::Cidr(network), Value::String(text)] =>
            Ok(Value::Bool(network.covers(ip::read(meter, text, Network::parse)?.map_err(Fault::text)?)));
        "CIDR.(CIDR) -> bool" ContainsCidr:
            [Value::Cidr(network), Value::Cidr(other)] => Ok(Value::Bool(network.covers(*other)));
    }
    "prefixLength" { "CIDR.() -> int" One: [Value::Cidr(network)] => Ok(Value::Int(i64::from(network.length))); }
    "masked" { "CIDR.() -> CIDR" One: [Value::Cidr(network)] => Ok(Value::Cidr(network.masked())); }
}
