//! Addresses of the listener, the control listener and the core.

use super::*;
use crate::config::ClientAddress;

#[test]
fn addresses_must_differ() {
    let site = Site::new();
    let cases = [
        (
            "0.0.0.0:9100",
            "10.0.0.7:8080",
            "1:1: control: 127.0.0.1:9100 is the address of the listener (0.0.0.0:9100)",
        ),
        (
            "127.0.0.1:9100",
            "10.0.0.7:8080",
            "1:1: control: 127.0.0.1:9100 is the address of the listener (127.0.0.1:9100)",
        ),
        (
            "0.0.0.0:8443",
            "127.0.0.1:8443",
            "3:21: upstream.address: 127.0.0.1:8443 is the gateway's own",
        ),
        (
            "0.0.0.0:8443",
            "127.0.0.1:9100",
            "3:21: upstream.address: 127.0.0.1:9100 is the gateway's own",
        ),
        (
            "0.0.0.0:8443",
            "0.0.0.0:80",
            "3:21: upstream.address: 0.0.0.0 may not be an endpoint: link-local, metadata and unspecified addresses, and those outside networks, are refused",
        ),
        (
            "0.0.0.0:8443",
            "127.0.0.1:0",
            "3:21: upstream.address: found \"127.0.0.1:0\"; expected a host and a port, such as 127.0.0.1:8080 or core.bank.internal:8080",
        ),
    ];
    for (listener, upstream, expected) in cases {
        let text = LEAST
            .replace("0.0.0.0:8443", listener)
            .replace("10.0.0.7:8080", upstream);
        assert_eq!(
            site.read(&text).unwrap_err(),
            [format!("gateway.yaml:{expected}")]
        );
    }
    let text = LEAST.replace("10.0.0.7:8080", "10.0.0.7:8443");
    assert!(
        site.read(&text).is_ok(),
        "another machine's port is its own"
    );
}

#[test]
fn a_control_listener_reachable_from_other_machines_requires_a_credential() {
    let site = Site::new();
    site.write("config/token", "0123456789abcdef0123456789abcdef\n");
    site.write("config/short", "hunter2");
    site.write("config/phrase", "correct horse battery staple, twice over");
    let (ca, _) = certificate("callers");
    site.write("config/ca.pem", ca);
    let tls = "certificate: ../certs/server.pem, key: ../certs/server.key";
    let good = [
        "token_file: token".to_owned(),
        "socket: control.sock".to_owned(),
        "socket: control.sock, token_file: token".to_owned(),
        "address: '0.0.0.0:9100', token_file: token".to_owned(),
        format!("address: '0.0.0.0:9100', {tls}, client_ca: ca.pem"),
        format!("address: '0.0.0.0:9100', {tls}, token_file: token"),
        tls.to_owned(),
    ];
    for keys in good {
        let settings = site.read(&format!("{LEAST}control: {{{keys}}}\n")).unwrap();
        let shown = format!("{settings:?}");
        assert!(!shown.contains("0123456789abcdef"), "{shown}");
    }
    let no_token = |file: &str| {
        format!(
            "token_file: {file} holds no bearer token; expected one line of at least 32 letters, digits and -._~+/, as \"openssl rand -hex 32\" gives it"
        )
    };
    let open = "address: 0.0.0.0:9100 can be reached from other machines without a credential; use 127.0.0.1 or [::1], or set token_file, or certificate, key and client_ca".to_owned();
    let bad = [
        (format!("address: '0.0.0.0:9100', {tls}"), open.clone()),
        (
            "address: '[::]:9100'".to_owned(),
            open.replace("0.0.0.0", "[::]"),
        ),
        ("token_file: short".to_owned(), no_token("short")),
        ("token_file: phrase".to_owned(), no_token("phrase")),
        (
            "token_file: nowhere".to_owned(),
            "token_file: nowhere cannot be read: No such file or directory (os error 2)".to_owned(),
        ),
        (
            "socket: c.sock, address: '127.0.0.1:9100'".to_owned(),
            "socket: address and socket exclude each other; leave one of them out".to_owned(),
        ),
        (
            format!("socket: c.sock, {tls}"),
            "certificate: a Unix socket has no TLS; leave out certificate, key and client_ca"
                .to_owned(),
        ),
        (
            "client_ca: ca.pem, certificate: ../certs/server.pem".to_owned(),
            "key: missing key".to_owned(),
        ),
        (
            format!("{tls}, client_ca: token"),
            "client_ca: token contains no certificate; expected PEM, -----BEGIN CERTIFICATE-----"
                .to_owned(),
        ),
    ];
    for (keys, expected) in bad {
        let faults = site
            .read(&format!("{LEAST}control: {{{keys}}}\n"))
            .unwrap_err();
        assert_eq!(faults.len(), 1, "{keys}: {faults:?}");
        assert!(
            faults[0].ends_with(&format!(": control.{expected}")),
            "{keys}: {faults:?}"
        );
    }
}

/// CRT-9: production requires a credential, even on loopback.
#[test]
fn production_requires_a_credential_of_the_control_listener() {
    let site = Site::new();
    site.write("config/token", "0123456789abcdef0123456789abcdef");
    site.write("config/ca.pem", certificate("callers").0);
    let production = LEAST.replace("sandbox", "production");
    let faults = |section: &str| {
        let faults = site.read(&format!("{production}{section}"));
        let faults = faults.err().unwrap_or_default().into_iter();
        let faults = faults.filter(|fault| fault.contains("control"));
        faults.collect::<Vec<_>>()
    };
    let open = "can be reached by every program and browser of this machine, and production requires a credential; set token_file, or certificate, key and client_ca, or socket in place of address";
    let tls = "certificate: ../certs/server.pem, key: ../certs/server.key";
    for (section, expected) in [
        (
            "",
            format!("gateway.yaml:1:1: control: 127.0.0.1:9100 {open}"),
        ),
        (
            "control: {address: '[::1]:9200'}\n",
            format!("gateway.yaml:6:11: control.address: [::1]:9200 {open}"),
        ),
        (
            &format!("control: {{{tls}}}\n"),
            format!("gateway.yaml:6:1: control.address: 127.0.0.1:9100 {open}"),
        ),
    ] {
        assert_eq!(faults(section), [expected]);
    }
    for keys in [
        "token_file: token".to_owned(),
        "socket: control.sock".to_owned(),
        format!("{tls}, client_ca: ca.pem"),
    ] {
        assert_eq!(faults(&format!("control: {{{keys}}}\n")), [""; 0], "{keys}");
    }
}

#[test]
fn hosts_and_the_token_of_metrics() {
    let site = Site::new();
    site.write("config/token", "0123456789abcdef0123456789abcdef\n");
    site.write("config/other", "fedcba9876543210fedcba9876543210\n");
    site.write("config/short", "hunter2");
    for keys in [
        "token_file: token, metrics_token_file: other",
        "metrics_token_file: other",
        "hosts: [gateway.internal, '10.0.0.7:9100', '[::1]']",
    ] {
        let settings = site.read(&format!("{LEAST}control: {{{keys}}}\n")).unwrap();
        let shown = format!("{settings:?}");
        assert!(!shown.contains("fedcba9876543210"), "{shown}");
    }
    for (keys, expected) in [
        (
            "metrics_token_file: short",
            "metrics_token_file: short holds no bearer token; expected one line of at least 32 letters, digits and -._~+/, as \"openssl rand -hex 32\" gives it",
        ),
        (
            "token_file: token, metrics_token_file: token",
            "metrics_token_file: it is the token of another key, with other rights; use another token, or leave the key out",
        ),
        (
            "clients: {calls: [sca.bank]}",
            "clients: roles are those of client certificates; set client_ca too",
        ),
        (
            "certificate: ../certs/server.pem, key: ../certs/server.key, client_ca: ../certs/server.pem, clients: {calls: ['10.0.0.7']}",
            "clients.calls[0]: found \"10.0.0.7\"; expected a DNS name in a client certificate, such as sca.bank.internal",
        ),
        (
            "certificate: ../certs/server.pem, key: ../certs/server.key, client_ca: ../certs/server.pem, clients: {metrics: []}",
            "clients.calls: missing key",
        ),
        (
            "hosts: []",
            "hosts: expected at least one host; leave the key out to accept the listener's own address and localhost",
        ),
        (
            "hosts: ['http://gateway.internal']",
            "hosts[0]: found \"http://gateway.internal\"; expected a host with or without a port, such as gateway.internal or 10.0.0.7:9100",
        ),
    ] {
        let faults = site.read(&format!("{LEAST}control: {{{keys}}}\n"));
        let faults = faults.unwrap_err();
        assert_eq!(faults.len(), 1, "{keys}: {faults:?}");
        assert!(
            faults[0].ends_with(&format!(": control.{expected}")),
            "{keys}: {faults:?}"
        );
    }
}

/// Reads a configuration with these keys of the listener.
fn with_listener(site: &Site, keys: &str) -> Result<Settings, Vec<String>> {
    let key = "key: ../certs/server.key";
    site.read(&LEAST.replace(key, &format!("{key}, {keys}")))
}

#[test]
fn proxies_in_front_of_the_listener() {
    let site = Site::new();
    let fixed = |keys: &str| with_listener(&site, keys).unwrap().fixed;
    let listed = "trusted_proxies: [10.1.0.0/16, 192.0.2.7, '2001:db8::/32']";
    let proxies = fixed(listed).listener.proxies;
    assert_eq!(proxies.client_address(), ClientAddress::Connection);
    for (address, is_trusted) in [
        ("10.1.255.255", true),
        ("::ffff:10.1.0.1", true),
        ("10.2.0.0", false),
        ("192.0.2.7", true),
        ("192.0.2.8", false),
        ("2001:db8:1::1", true),
        ("2001:db9::1", false),
    ] {
        assert_eq!(
            proxies.trusts(address.parse().unwrap()),
            is_trusted,
            "{address}"
        );
    }
    let named = fixed(&format!("{listed}, client_address: forwarded"));
    assert_eq!(
        named.changed_keys(&fixed(listed)),
        ["listener.client_address"]
    );
}

#[test]
fn no_proxies_and_no_hosts() {
    let site = Site::new();
    for (keys, expected) in [
        (
            "trusted_proxies: [0.0.0.0/0]",
            "trusted_proxies[0]: clients would be trusted proxies; expected a network of at most /8, or /7 of IPv6",
        ),
        (
            "trusted_proxies: [10.0.0.0/8, 128.0.0.0/1]",
            "trusted_proxies[1]: clients would be trusted proxies; expected a network of at most /8, or /7 of IPv6",
        ),
        (
            "trusted_proxies: ['fc00::/7', '2000::/3']",
            "trusted_proxies[1]: clients would be trusted proxies; expected a network of at most /8, or /7 of IPv6",
        ),
        (
            "trusted_proxies: ['::ffff:0:0/96']",
            "trusted_proxies[0]: found \"::ffff:0:0/96\"; expected an IP address or a network such as 10.1.0.0/16 (an IPv4 network in the form of IPv6: write it as IPv4)",
        ),
        (
            "trusted_proxies: [10.1.2.3/16]",
            "trusted_proxies[0]: found \"10.1.2.3/16\"; expected an IP address or a network such as 10.1.0.0/16 (the address has bits behind the prefix; the network is 10.1.0.0/16)",
        ),
        (
            "hosts: ['']",
            "hosts[0]: found \"\"; expected a host with or without a port, such as api.bank.example or 10.0.0.7:8080",
        ),
        (
            "trusted_proxies: [lb.example]",
            "trusted_proxies[0]: found \"lb.example\"; expected an IP address or a network such as 10.1.0.0/16 (no IP address with the length of a prefix)",
        ),
        (
            "client_address: proxy-protocol",
            "client_address: only a trusted proxy names a client; list the proxies in trusted_proxies",
        ),
        (
            "trusted_proxies: [10.1.0.0/16], client_address: forward",
            "client_address: found \"forward\"; expected one of \"connection\", \"proxy-protocol\", \"forwarded\", \"x-forwarded-for\"; did you mean \"forwarded\"?",
        ),
    ] {
        let faults = with_listener(&site, keys).unwrap_err();
        assert_eq!(faults.len(), 1, "{keys}: {faults:?}");
        assert!(
            faults[0].ends_with(&format!(": listener.{expected}")),
            "{keys}: {faults:?}"
        );
    }
}

/// FWD-7.
#[test]
fn headers_of_answers() {
    let site = Site::new();
    let read = |keys: &str| {
        let address = "'10.0.0.7:8080'";
        site.read(&LEAST.replace(address, &format!("{address}, {keys}")))
    };
    let settings = read("answer_headers: [X-Bank-Notice, x-other]").unwrap();
    let names = &settings.reloadable.upstreams.groups()[0].answer_headers;
    assert_eq!(*names, ["x-bank-notice", "x-other"]);
    let never = "of the core never reaches a TPP: the gateway writes it itself, or it is about the connection to the core; leave it out";
    for (keys, expected) in [
        (
            "answer_headers: [Set-Cookie]",
            format!("answer_headers[0]: set-cookie {never}"),
        ),
        (
            "answer_headers: [X-A, Gateway-Sca]",
            format!("answer_headers[1]: gateway-sca {never}"),
        ),
        (
            "answer_headers: ['a b']",
            "answer_headers[0]: found \"a b\"; expected the name of a header, such as X-Bank-Notice (invalid HTTP header name)".to_owned(),
        ),
    ] {
        let faults = read(keys).unwrap_err();
        assert_eq!(faults.len(), 1, "{keys}: {faults:?}");
        assert!(
            faults[0].ends_with(&format!(": upstream.{expected}")),
            "{keys}: {faults:?}"
        );
    }
}

#[test]
fn sizes_of_answers_by_group() {
    let site = Site::new();
    let read = |sizes: &str| {
        let address = "'10.0.0.7:8080'";
        site.read(&LEAST.replace(address, &format!("{address}, {sizes}")))
    };
    let settings = read("max_answer_size_by_group: {accounts: 32MiB}").unwrap();
    let sizes = &settings.reloadable.upstreams.groups()[0].answer_sizes;
    assert_eq!(sizes.of("accounts"), 32 << 20);
    assert_eq!(sizes.of("payments"), 16 << 20);
    for (keys, expected) in [
        (
            "max_answer_size_by_group: {acounts: 1MiB}",
            "upstream.max_answer_size_by_group.acounts: no operation has the group \"acounts\"",
        ),
        (
            "max_answer_size: 100",
            "upstream.max_answer_size: found 100; expected a size in bytes, KiB, MiB or GiB, from 1KiB to 1GiB",
        ),
    ] {
        let faults = read(keys).unwrap_err();
        assert_eq!(faults.len(), 1, "{keys}: {faults:?}");
        assert!(faults[0].ends_with(expected), "{keys}: {faults:?}");
    }
}

//= ERR-10 accepted
#[test]
fn the_base_of_the_documentation() {
    let site = Site::new();
    let read = |base: &str| {
        let key = "key: ../certs/server.key";
        site.read(&LEAST.replace(key, &format!("{key}, documentation: '{base}'")))
    };
    for (base, with) in [
        ("https://bank.example", "https://bank.example/"),
        (
            "https://bank.example/errors",
            "https://bank.example/errors/",
        ),
        (
            "https://bank.example/errors/",
            "https://bank.example/errors/",
        ),
        (
            "HTTPS://[2001:db8::1]:8443/e.html#",
            "HTTPS://[2001:db8::1]:8443/e.html#",
        ),
    ] {
        let settings = read(base).unwrap();
        let documentation = settings.fixed.listener.documentation;
        assert_eq!(documentation.as_deref(), Some(with));
    }
    assert_eq!(site.read(LEAST).unwrap().fixed.listener.documentation, None);
    for (base, expected) in [
        ("http://bank.example/", "that starts with https://"),
        ("http://localhost/", "that starts with https://"),
        ("/errors/", "that starts with https://"),
        ("https://user@bank.example/", "may not name a user"),
        ("https://bank.example/?reason=", "it has a query"),
        ("https://bank.example/#reason-", "may not have a fragment"),
        ("https://bank.example/##", "may not have a fragment"),
        ("https://bank.example:99999/", "its port must be"),
        ("https:///errors/", "must name a host"),
        ("https://bank.example/a b/", "character 23"),
    ] {
        let faults = read(base).unwrap_err();
        assert_eq!(faults.len(), 1, "{base}: {faults:?}");
        let fault = &faults[0];
        // What may be a secret is not repeated.
        let shown = base.replace("user@", "…@").replace("?reason=", "?…");
        let begin = format!(
            "listener.documentation: found \"{shown}\"; expected an https URL without a query"
        );
        assert!(
            fault.contains(&begin) && fault.contains(expected),
            "{fault}"
        );
    }
}

/// Every key that takes a word in place of a number, a duration, a size or a section.
//= ERR-10 refused
#[test]
fn off_is_named_where_it_may_stand() {
    let site = Site::new();
    let listener = |line: &str| {
        let key = "key: ../certs/server.key";
        LEAST.replace(key, &format!("{key}, {line}"))
    };
    let upstream = |line: &str| {
        let address = "'10.0.0.7:8080'";
        LEAST.replace(address, &format!("{address}, {line}"))
    };
    let more = |line: &str| format!("{LEAST}{line}\n");
    let off = r#", or "off""#;
    let all = [
        more("rates: {per_address: false}"),
        more("rates: {per_tpp: no}"),
        more("rates: {unsafe_per_tpp: 0}"),
        more("rates: {chains_per_address: none}"),
        more("rates: {chains: -1}"),
        listener("max_connections_per_address: false"),
        listener("min_body_rate: false"),
        listener("read_ahead: false"),
        listener("overload_delay: false"),
        listener("hsts: false"),
        more("reload: {watch: false}"),
        upstream("ejection: false"),
    ];
    for text in all {
        let faults = site.read(&text).unwrap_err();
        assert!(
            faults.iter().any(|fault| fault.ends_with(off)),
            "{faults:?}"
        );
    }
    let faults = site.read(&listener("threads: many")).unwrap_err();
    assert!(faults[0].ends_with(r#", or "auto""#), "{faults:?}");
}
