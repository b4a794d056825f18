//! Reads an IP address with a port, and says what is wrong with a text that is none.

use super::value::Value;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

impl Value<'_> {
    /// An IP address and a port. `expected` completes "expected …".
    pub(super) fn socket_address(&self, expected: &str) -> Option<SocketAddr> {
        let text = self.as_str()?;
        text.parse()
            .ok()
            .or_else(|| self.refuse(&format!("{expected} ({})", fault_of(text))))
    }
}

/// The fault of a text that is no socket address.
pub(super) fn fault_of(text: &str) -> &'static str {
    if text.contains("://") {
        return "leave out the scheme and the path";
    }
    if text.parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv4()) {
        return "the port is missing";
    }
    let is_ipv6 = |text: &str| text.parse::<Ipv6Addr>().is_ok();
    let before_port = text.rsplit_once(':').is_some_and(|(ip, _)| is_ipv6(ip));
    if is_ipv6(text) || before_port {
        return "an IPv6 address with a port needs brackets, as in \"[::1]:8443\"";
    }
    let inside = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    if inside.is_some_and(is_ipv6) {
        return "the port is missing";
    }
    match text.rsplit_once(':') {
        Some((ip, port)) if port.parse::<u16>().is_err() && ip.parse::<IpAddr>().is_ok() => {
            "the port is a number from 0 to 65535"
        }
        None if text.parse::<u16>().is_ok() => "the IP address is missing",
        None => "a host name is not looked up, and the port is missing",
        Some((host, _)) if host.parse::<IpAddr>().is_err() && !host.starts_with('[') => {
            "a host name is not looked up"
        }
        _ => "invalid socket address syntax",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fault_is_named() {
        for (text, expected) in [
            ("https://core.bank.internal", "leave out the scheme"),
            ("http://10.0.0.7:80/", "leave out the scheme"),
            ("10.0.0.7", "the port is missing"),
            ("[::1]", "the port is missing"),
            ("::1", "needs brackets"),
            ("::1:8443", "needs brackets"),
            ("2001:db8::7:8443", "needs brackets"),
            ("10.0.0.7:http", "the port is a number"),
            ("10.0.0.7:65536", "the port is a number"),
            ("localhost:8443", "a host name is not looked up"),
            ("[::1:8443", "invalid"),
            ("8443", "the IP address is missing"),
            ("localhost", "a host name is not looked up"),
        ] {
            assert!(text.parse::<SocketAddr>().is_err());
            assert!(
                fault_of(text).contains(expected),
                "{text}: {}",
                fault_of(text)
            );
        }
    }
}
