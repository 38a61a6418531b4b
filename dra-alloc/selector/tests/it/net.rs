//! Tests of Kubernetes' CEL libraries for IP addresses and networks.

use k8s_openapi::api::resource::v1::Device;

use super::matching::{evaluate, gpu, text};

fn nic() -> Device {
    let attributes = [("ip", "10.1.2.3"), ("network", "10.1.2.3/24"), ("mac", "00:00:5e:00:53:01")];
    let attributes = attributes.map(|(name, value)| (name.to_owned(), text(value)));
    Device { name: "eth1".to_owned(), attributes: Some(attributes.into()), ..Device::default() }
}

#[test]
fn addresses() {
    let holds = [
        "ip('127.0.0.1').family() == 4 && ip('::1').family() == 6",
        "isIP('10.0.0.1') && isIP('2001:db8::abcd') && isIP('::1.2.3.4')",
        "!isIP('10.0.0') && !isIP('10.0.0.256') && !isIP('010.0.0.1') && !isIP('') && !isIP(' ::1')",
        "!isIP('fe80::1%eth0') && !isIP('::ffff:1.2.3.4') && !isIP('::ffff:0102:0304') && !isIP('1:2:3:4:5:6:7::8')",
        "ip.isCanonical('2001:db8::abcd') && !ip.isCanonical('2001:DB8:0::abcd') && ip.isCanonical('10.0.0.1')",
        "ip('0.0.0.0').isUnspecified() && ip('::').isUnspecified() && !ip('::1').isUnspecified()",
        "ip('127.9.9.9').isLoopback() && ip('::1').isLoopback() && !ip('2001:db8::abcd').isLoopback()",
        "ip('224.0.0.1').isLinkLocalMulticast() && !ip('224.0.1.1').isLinkLocalMulticast()",
        "ip('ff02::1').isLinkLocalMulticast() && ip('ff12::1').isLinkLocalMulticast()",
        "!ip('ff05::1').isLinkLocalMulticast() && !ip('fd00::1').isLinkLocalMulticast()",
        "ip('169.254.169.254').isLinkLocalUnicast() && ip('fe80::1').isLinkLocalUnicast()",
        "!ip('192.168.0.1').isLinkLocalUnicast() && !ip('fd80::1').isLinkLocalUnicast()",
        "ip('192.168.0.1').isGlobalUnicast() && ip('2001:db8::abcd').isGlobalUnicast()",
        "!ip('255.255.255.255').isGlobalUnicast() && !ip('ff00::1').isGlobalUnicast()",
        "!ip('224.0.0.1').isGlobalUnicast() && !ip('169.254.0.1').isGlobalUnicast() && !ip('::').isGlobalUnicast()",
        "ip('2001:DB8::1') == ip('2001:db8:0:0:0:0:0:1') && ip('10.0.0.1') != ip('10.0.0.2')",
        "string(ip('2001:DB8:0:0:1:0:0:1')) == '2001:db8::1:0:0:1' && ip('::1') != null",
        "ip(device.attributes['gpu.example'].ip).isGlobalUnicast() && !isIP(device.attributes['gpu.example'].mac)",
        "type(ip('::1')) == type(ip('10.0.0.1')) && [ip('::1')].size() == 1",
    ];
    for expression in holds {
        assert_eq!(evaluate(expression, &nic()), Ok(true), "{expression}");
    }
}

#[test]
fn networks() {
    let holds = [
        "isCIDR('192.168.0.0/16') && isCIDR('::1/128') && isCIDR('0.0.0.0/0') && isCIDR('192.168.0.1/24')",
        "!isCIDR('192.168.0.0/33') && !isCIDR('::1/129') && !isCIDR('192.168.0.0') && !isCIDR('10.0.0.0/-1')",
        "!isCIDR('10.0.0.0/+8') && !isCIDR('10.0.0.0/08') && !isCIDR('10.0.0.0/') && !isCIDR('10.0.0.0/8/8')",
        "!isCIDR('fe80::1%eth0/64') && !isCIDR('::ffff:1.2.3.4/96')",
        "cidr('192.168.0.0/24').containsIP('192.168.0.1') && !cidr('192.168.0.0/24').containsIP('192.168.1.1')",
        "cidr('192.168.0.77/24').containsIP(ip('192.168.0.1')) && !cidr('0.0.0.0/0').containsIP(ip('::1'))",
        "cidr('0.0.0.0/0').containsIP('255.255.255.255') && cidr('::/0').containsIP('ffff::')",
        "cidr('10.0.0.1/32').containsIP('10.0.0.1') && !cidr('10.0.0.1/32').containsIP('10.0.0.0')",
        "cidr('::1/128').containsIP('::1') && !cidr('::1/128').containsIP('::')",
        "cidr('192.168.0.0/16').containsCIDR(cidr('192.168.10.0/24'))",
        "cidr('192.168.0.0/16').containsCIDR('192.168.0.0/16')",
        "!cidr('192.168.1.0/24').containsCIDR('192.168.2.0/24') && !cidr('10.1.0.0/16').containsCIDR('10.0.0.0/8')",
        "!cidr('0.0.0.0/0').containsCIDR('::/0')",
        "cidr('192.168.0.1/24').ip() == ip('192.168.0.1') && cidr('::1/128').ip().family() == 6",
        "cidr('192.168.0.1/24').masked() == cidr('192.168.0.0/24') && cidr('192.168.0.1/24') != cidr('192.168.0.0/24')",
        "cidr('2001:db8::1/0').masked() == cidr('::/0') && cidr('1.2.3.4/0').masked() == cidr('0.0.0.0/0')",
        "cidr('192.168.0.0/16').prefixLength() == 16 && cidr('::1/128').prefixLength() == 128",
        "string(cidr('2001:DB8::/32')) == '2001:db8::/32' && string(cidr('10.0.0.1/8').masked()) == '10.0.0.0/8'",
        "cidr('10.0.0.0/8').containsIP(cidr(device.attributes['gpu.example'].network).ip())",
        "cidr('10.0.0.0/8').containsCIDR(device.attributes['gpu.example'].network)",
        "cidr('10.0.0.0/8').containsIP(device.attributes['gpu.example'].ip)",
    ];
    for expression in holds {
        assert_eq!(evaluate(expression, &nic()), Ok(true), "{expression}");
    }
}

#[test]
fn what_is_no_address_or_network_is_an_error() {
    let rows = [
        (
            "ip('nope').family() == 4",
            "IP Address \"nope\" parse error during conversion from string: ParseAddr(\"nope\"): unable to parse IP",
        ),
        ("ip('fe80::1%eth0').family() == 6", "IP address \"fe80::1%eth0\" with zone value is not allowed"),
        ("ip('::ffff:1.2.3.4').family() == 6", "IPv4-mapped IPv6 address \"::ffff:1.2.3.4\" is not allowed"),
        ("cidr('10.0.0.0').prefixLength() == 8", "netip.ParsePrefix(\"10.0.0.0\"): no '/'"),
        ("cidr('10.0.0.0/x').prefixLength() == 8", "bad bits after slash: \"x\""),
        ("cidr('10.0.0.0/33').prefixLength() == 8", "prefix length out of range"),
        ("cidr('10.0.0.0/8').containsIP('x')", "no such overload"),
        ("cidr('10.0.0.0/8').containsCIDR('x')", "netip.ParsePrefix(\"x\"): no '/'"),
        ("ip.isCanonical('x')", "unable to parse IP"),
        ("ip(device.attributes['gpu.example'].index).family() == 4", "no such overload"),
        ("ip('::1') == dyn('::1')", "no such overload"),
    ];
    for (expression, message) in rows {
        let error = evaluate(expression, &gpu()).unwrap_err();
        assert!(error.contains(message), "{expression}: {error}");
    }
    let rows = [
        ("ip(1).family() == 4", "found no matching overload for 'ip' applied to '(int)'"),
        ("ip('::1') == '::1'", "'_==_' applied to '(net.IP, string)'"),
        ("cidr('::/0') == ip('::')", "'_==_' applied to '(net.CIDR, net.IP)'"),
        ("'::1'.isLoopback()", "'isLoopback' applied to 'string.()'"),
        ("ip('::1') < ip('::2')", "'_<_' applied to '(net.IP, net.IP)'"),
        ("cidr('::/0')", "must evaluate to bool"),
    ];
    for (expression, message) in rows {
        let error =
            dra_selector::Selector::compile(expression, &dra_selector::Options::stored()).unwrap_err().to_string();
        assert!(error.contains(message), "{expression}: {error}");
    }
}
