//! `cidrcontains`, `cidrhost`, `cidrnetmask`, `cidrsubnet` and `cidrsubnets`

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bigdecimal::ToPrimitive;

use super::prelude::*;

pub(super) const HOST: Function = Function {
    name: "cidrhost",
    doc: "The address of a numbered host in a network; negative numbers count from its end.",
    parameters: &[Parameter::string("prefix"), Parameter::number("hostnum")],
    body: Some(|a| {
        let network = network(a)?;
        let number = integer(a, 1)?;
        let hosts = network.bits - network.length;
        let most = ones(hosts);
        let host = if number >= 0 { number.unsigned_abs() } else { most.wrapping_sub(number.unsigned_abs()).wrapping_add(1) };
        let fits = if number >= 0 { host <= most } else { number.unsigned_abs() - 1 <= most };
        if !fits {
            return Err(FunctionError::at(1, format!("a network with a prefix of {} has no host {}", network.length, a.quote(1))));
        }
        Ok(string(network.show(network.address | host)))
    }),
    #[cfg(test)]
    rows: &[
        ("cidrhost(\"10.0.0.0/24\",5)", "\"10.0.0.5\""),
        ("cidrhost(\"10.0.0.0/24\",-1)", "\"10.0.0.255\""),
        ("cidrhost(\"10.0.0.0/24\",-256)", "\"10.0.0.0\""),
        ("cidrhost(\"10.0.0.0/24\",256)", "ERROR a network with a prefix of 24 has no host 256"),
        ("cidrhost(\"10.0.0.0/24\",-257)", "ERROR has no host -257"),
        ("cidrhost(\"10.0.0.7/32\",0)", "\"10.0.0.7\""),
        ("cidrhost(\"fd00::/64\",5)", "\"fd00::5\""),
        ("cidrhost(\"::/0\",-1)", "\"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff\""),
        ("cidrhost(\"10.0.0.0\",1)", "ERROR \"10.0.0.0\" is no network"),
        ("cidrhost(\"10.0.0.0/33\",1)", "ERROR is no network"),
        ("cidrhost(\"10.00.0.0/8\",1)", "ERROR is no network"),
        ("cidrhost(\"10.0.0.0/8\",1.5)", "ERROR a whole number is required"),
    ],
    ..Function::BASE
};

pub(super) const NETMASK: Function = Function {
    name: "cidrnetmask",
    doc: "The mask of an IPv4 network, as an address.",
    parameters: &[Parameter::string("prefix")],
    body: Some(|a| {
        let network = network(a)?;
        if network.bits == 128 {
            return Err(FunctionError::at(0, "is an IPv6 network, and those have no netmask"));
        }
        Ok(string(network.show(ones(32) & !ones(32 - network.length))))
    }),
    #[cfg(test)]
    rows: &[
        ("cidrnetmask(\"10.1.0.0/20\")", "\"255.255.240.0\""),
        ("cidrnetmask(\"0.0.0.0/0\")", "\"0.0.0.0\""),
        ("cidrnetmask(\"fd00::/64\")", "ERROR have no netmask"),
    ],
    ..Function::BASE
};

pub(super) const SUBNET: Function = Function {
    name: "cidrsubnet",
    doc: "A numbered part of a network, whose prefix is longer by some bits.",
    parameters: &[Parameter::string("prefix"), Parameter::number("newbits"), Parameter::number("netnum")],
    body: Some(|a| {
        let network = network(a)?;
        let length = longer(&network, a, 1)?;
        let number = integer(a, 2)?;
        let number = u128::try_from(number).ok().filter(|n| *n <= ones(length - network.length));
        let number = number
            .ok_or_else(|| FunctionError::at(2, format!("{} more bits can't hold the number {}", length - network.length, a.quote(2))))?;
        let place = number.checked_shl(network.bits - length).unwrap_or(0);
        Ok(string(format!("{}/{length}", network.show(network.address | place))))
    }),
    #[cfg(test)]
    rows: &[
        ("cidrsubnet(\"10.0.0.0/16\",8,2)", "\"10.0.2.0/24\""),
        ("cidrsubnet(\"10.0.0.5/16\",8,2)", "\"10.0.2.0/24\""),
        ("cidrsubnet(\"fd00:fd12:3456:7890::/56\",16,162)", "\"fd00:fd12:3456:7800:a200::/72\""),
        ("cidrsubnet(\"10.0.0.0/16\",0,0)", "\"10.0.0.0/16\""),
        ("cidrsubnet(\"10.0.0.0/16\",17,0)", "ERROR a prefix of 16 can't be made longer by 17"),
        ("cidrsubnet(\"10.0.0.0/16\",2,4)", "ERROR 2 more bits can't hold the number 4"),
        ("cidrsubnet(\"10.0.0.0/16\",2,-1)", "ERROR can't hold the number -1"),
    ],
    ..Function::BASE
};

pub(super) const SUBNETS: Function = Function {
    name: "cidrsubnets",
    doc: "Parts of a network one behind the other, each with a prefix longer by some bits.",
    parameters: &[Parameter::string("prefix")],
    rest: Some(Parameter::number("newbits")),
    gives: Gives::Is(Shape::STRINGS),
    body: Some(|a| {
        let network = network(a)?;
        let last = network.address | ones(network.bits - network.length);
        let mut next = Some(network.address);
        let mut subnets = Vec::new();
        for i in 1..a.len() {
            let length = longer(&network, a, i)?;
            if length == network.length {
                return Err(FunctionError::at(i, "at least 1 more bit is needed"));
            }
            if length - network.length > 32 {
                return Err(FunctionError::at(i, "no more than 32 bits can be added"));
            }
            let size = ones(network.bits - length);
            // Every network begins at a multiple of its size.
            let begin = next.and_then(|n| n.checked_add(size)).map(|n| n & !size).filter(|b| *b <= last);
            let begin = begin.ok_or_else(|| FunctionError::at(i, "the networks before it leave no room for this one"))?;
            subnets.push(format!("{}/{length}", network.show(begin)));
            next = (begin | size).checked_add(1);
        }
        Ok(strings(subnets))
    }),
    #[cfg(test)]
    rows: &[
        ("cidrsubnets(\"10.0.0.0/16\",4,4,8)", "tolist([\"10.0.0.0/20\", \"10.0.16.0/20\", \"10.0.32.0/24\"])"),
        ("cidrsubnets(\"10.0.0.0/16\",8,4)", "tolist([\"10.0.0.0/24\", \"10.0.16.0/20\"])"),
        ("cidrsubnets(\"255.255.0.0/16\",1,1)", "tolist([\"255.255.0.0/17\", \"255.255.128.0/17\"])"),
        ("cidrsubnets(\"10.0.0.0/16\",1,1,1)", "ERROR leave no room"),
        ("cidrsubnets(\"10.0.0.0/16\")", "tolist([])"),
        ("cidrsubnets(\"fd00::/48\",32)", "tolist([\"fd00::/80\"])"),
        ("cidrsubnets(\"fd00::/48\",33)", "ERROR no more than 32 bits"),
        ("cidrsubnets(\"10.0.0.0/16\",0)", "ERROR at least 1 more bit"),
    ],
    ..Function::BASE
};

pub(super) const CONTAINS: Function = Function {
    name: "cidrcontains",
    doc: "True if an address, or all addresses of a second network, are in a network.",
    parameters: &[Parameter::string("containing_prefix"), Parameter::string("contained_ip_or_prefix")],
    gives: Gives::Is(Shape::Bool),
    body: Some(|a| {
        let outer = network(a)?;
        let inner = parse(a.text(1)).or_else(|| {
            let bits = if a.text(1).contains(':') { 128 } else { 32 };
            parse(&format!("{}/{bits}", a.text(1)))
        });
        let inner = inner.ok_or_else(|| FunctionError::at(1, format!("{} is neither an address nor a network", a.quote(1))))?;
        if outer.bits != inner.bits {
            return Err(FunctionError::at(1, "is IPv4 and the network IPv6, or the other way round"));
        }
        Ok((inner.length >= outer.length && inner.address & !ones(outer.bits - outer.length) == outer.address).into())
    }),
    #[cfg(test)]
    rows: &[
        ("cidrcontains(\"192.168.2.0/20\",\"192.168.2.1\")", "true"),
        ("cidrcontains(\"192.168.2.0/20\",\"192.168.16.1\")", "false"),
        ("cidrcontains(\"192.168.2.0/20\",\"192.168.2.0/22\")", "true"),
        ("cidrcontains(\"192.168.2.0/20\",\"192.168.0.0/19\")", "false"),
        ("cidrcontains(\"192.168.2.0/20\",\"192.168.2.0/20\")", "true"),
        ("cidrcontains(\"0.0.0.0/0\",\"255.255.255.255\")", "true"),
        ("cidrcontains(\"fe80::/48\",\"fe80::1\")", "true"),
        ("cidrcontains(\"fe80::/48\",\"fe81::1/64\")", "false"),
        ("cidrcontains(\"192.168.2.0/20\",\"fe80::1\")", "ERROR is IPv4 and the network IPv6"),
        ("cidrcontains(\"192.168.2.0\",\"192.168.2.1\")", "ERROR \"192.168.2.0\" is no network"),
        ("cidrcontains(\"192.168.2.0/20\",\"host\")", "ERROR \"host\" is neither an address nor a network"),
        ("cidrcontains(\"192.168.2.0/20\",u.id)", "UNKNOWN bool"),
    ],
    ..Function::BASE
};

struct Network {
    address: u128,
    length: u32,
    /// 32 or 128.
    bits: u32,
}

impl Network {
    fn show(&self, address: u128) -> String {
        if self.bits == 32 {
            Ipv4Addr::from(u32::try_from(address & ones(32)).unwrap_or(0)).to_string()
        } else {
            Ipv6Addr::from(address).to_string()
        }
    }
}

/// So many ones at the end.
fn ones(count: u32) -> u128 {
    u128::MAX.checked_shr(128 - count).unwrap_or(0)
}

fn network(a: &Arguments<'_>) -> Result<Network, FunctionError> {
    parse(a.text(0)).ok_or_else(|| FunctionError::at(0, format!("{} is no network; write it as 10.0.0.0/16 or fd00::/64", a.quote(0))))
}

fn parse(text: &str) -> Option<Network> {
    let (address, length) = text.split_once('/')?;
    let (address, bits) = match address.parse().ok()? {
        IpAddr::V4(v4) => (u128::from(u32::from(v4)), 32),
        IpAddr::V6(v6) => (u128::from(v6), 128),
    };
    let length: u32 = length.bytes().all(|b| b.is_ascii_digit()).then(|| length.parse().ok())?.filter(|l| *l <= bits)?;
    Some(Network { address: address & !ones(bits - length), length, bits })
}

fn integer(a: &Arguments<'_>, index: usize) -> Result<i128, FunctionError> {
    let number = a.number(index);
    let whole = number.decimal().filter(|_| number.is_whole()).and_then(|d| d.to_i128());
    whole.ok_or_else(|| FunctionError::at(index, "a whole number is required"))
}

/// The length of the prefix with the bits of this argument added.
fn longer(network: &Network, a: &Arguments<'_>, index: usize) -> Result<u32, FunctionError> {
    let bits = u32::try_from(a.count(index)?).ok();
    let length = bits.and_then(|b| b.checked_add(network.length)).filter(|l| *l <= network.bits);
    length.ok_or_else(|| FunctionError::at(index, format!("a prefix of {} can't be made longer by {}", network.length, a.quote(index))))
}
