//! The settings that only a restart changes, and their keys.

use super::*;
use crate::config::{Fixed, Listener, ListenerLimits};

/// The key of each fixed setting, and lines that change only that setting.
fn changes() -> Vec<(&'static str, String)> {
    let listener = |line: &str| {
        LEAST.replace(
            "key: ../certs/server.key",
            &format!("key: ../certs/server.key, {line}"),
        )
    };
    let more = |line: &str| format!("{LEAST}{line}\n");
    vec![
        ("system", more("system: another")),
        ("listener.address", LEAST.replace(":8443", ":8444")),
        ("listener.client_auth", listener("client_auth: optional")),
        ("listener.threads", listener("threads: 1023")),
        (
            "listener.trusted_proxies",
            listener("trusted_proxies: [10.1.0.0/16]"),
        ),
        ("listener.max_connections", listener("max_connections: 7")),
        (
            "listener.max_connections_per_address",
            listener("max_connections_per_address: 7"),
        ),
        (
            "listener.handshake_timeout",
            listener("handshake_timeout: 7s"),
        ),
        (
            "listener.first_byte_timeout",
            listener("first_byte_timeout: 7s"),
        ),
        ("listener.preface_timeout", listener("preface_timeout: 7s")),
        ("listener.head_timeout", listener("head_timeout: 7s")),
        ("listener.write_timeout", listener("write_timeout: 7s")),
        ("listener.answer_timeout", listener("answer_timeout: 7s")),
        ("listener.read_ahead", listener("read_ahead: off")),
        ("listener.min_body_rate", listener("min_body_rate: off")),
        ("listener.max_head_size", listener("max_head_size: 9KiB")),
        ("listener.max_head_fields", listener("max_head_fields: 77")),
        ("listener.overload_delay", listener("overload_delay: 7ms")),
        ("listener.body_timeout", listener("body_timeout: 7s")),
        ("listener.hsts", listener("hsts: off")),
        ("listener.description", listener("description: on")),
        (
            "listener.documentation",
            listener("documentation: 'https://bank.example/errors'"),
        ),
        ("listener.keepalive", listener("keepalive: 7s")),
        (
            "control.address",
            more("control: {address: '127.0.0.1:9101'}"),
        ),
        ("state", more("state: {psus_in_memory: 7}")),
        ("shutdown", more("shutdown: {lame_duck: 7s}")),
        ("log", more("log: {level: debug}")),
        (
            "traces",
            more("traces: {endpoint: 'http://127.0.0.1:4318/v1/traces'}"),
        ),
        ("audit", more("audit: {write: on}")),
        ("reload", more("reload: {watch: off}")),
    ]
}

//= CRT-8 accepted
#[test]
fn a_changed_fixed_setting_is_named_by_its_key() {
    let site = Site::new();
    let fixed = |text: &str| site.read(text).unwrap().fixed;
    let before = fixed(LEAST);
    assert_eq!(before, fixed(LEAST));
    for (key, text) in changes() {
        let after = fixed(&text);
        assert_ne!(before, after, "{key}");
        assert_eq!(before.changed_keys(&after), [key]);
        assert_eq!(after.changed_keys(&before), [key]);
    }
    // A reloadable change is not listed.
    let reloaded = fixed(&format!("{LEAST}body_limit: 16KiB\n"));
    assert_eq!(before, reloaded);
    assert!(before.changed_keys(&reloaded).is_empty());
}

/// A new field of [`Fixed`] does not compile here until [`changes`] has a line for it.
#[test]
fn every_fixed_setting_is_covered() {
    let Fixed {
        // A reload with another environment is refused.
        environment: _,
        listener,
        system: _,
        control: _,
        state: _,
        log: _,
        traces: _,
        shutdown: _,
        audit: _,
        watch: _,
    } = Site::new().read(LEAST).unwrap().fixed;
    let Listener {
        address: _,
        client_auth: _,
        threads: _,
        proxies: _,
        hsts: _,
        description: _,
        documentation: _,
        limits,
        body_timeout: _,
        keepalive: _,
    } = listener;
    let ListenerLimits {
        connections: _,
        connections_per_address: _,
        handshake_timeout: _,
        first_byte_timeout: _,
        preface_timeout: _,
        head_timeout: _,
        write_timeout: _,
        answer_timeout: _,
        read_ahead: _,
        body_rate: _,
        head_size: _,
        head_fields: _,
        overload_delay: _,
    } = limits;
    // `client_address` needs `trusted_proxies`, and has a test of its own.
    assert_eq!(changes().len(), 7 + 10 + 13);
}
