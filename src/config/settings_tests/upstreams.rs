//! Groups of endpoints, their operations, and their health, networks and TLS.

use super::*;
use crate::config::{ActiveCheck, Ejection};
use std::time::Duration;

/// The least configuration with these groups in place of the core.
fn with(groups: &str) -> String {
    LEAST.replace(
        "upstream: {address: '10.0.0.7:8080'}",
        &format!("upstreams: {groups}"),
    )
}

/// The texts of faults, without their places.
fn faults(groups: &str) -> Vec<String> {
    let faults = Site::new().read(&with(groups)).unwrap_err();
    let text = |fault: &String| {
        let at = fault.find("upstreams").unwrap();
        fault[at..].to_owned()
    };
    faults.iter().map(text).collect()
}

#[test]
fn operations_are_routed_to_groups() {
    let groups = "{accounts: {endpoints: [{address: 'a.internal:80'}]}, \
                  payments: {endpoints: [{address: '10.0.0.8:80', weight: 3}, {address: '[fd00::8]:80'}], operations: [payments, account-list]}, \
                  status: {endpoints: [{address: '10.0.0.9:80'}], operations: [payment-status]}}";
    let settings = Site::new().read(&with(groups)).unwrap().reloadable;
    let upstreams = &settings.upstreams;
    let of = |operation: &str| {
        let operation = settings.snapshot.catalogue.named(operation).unwrap();
        upstreams.groups()[upstreams.index_of(operation)]
            .name
            .as_str()
    };
    assert_eq!(of("balance-list"), "accounts");
    assert_eq!(of("account-list"), "payments", "a single operation");
    assert_eq!(of("payment-create"), "payments");
    assert_eq!(of("payment-status"), "status", "more than its group");
    let [_, payments, _] = upstreams.groups() else {
        panic!("three groups");
    };
    let endpoints = payments.endpoints.iter();
    let endpoints: Vec<_> = endpoints.map(|one| (one.to_string(), one.weight)).collect();
    let expected = [("10.0.0.8:80", 3), ("[fd00::8]:80", 1)];
    assert_eq!(
        endpoints,
        expected.map(|(one, weight)| (one.to_owned(), weight))
    );
    assert_eq!(payments.host, "10.0.0.8:80");
    assert_eq!(payments.inner_names(), ["10.0.0.8", "fd00::8", "10.0.0.8"]);
    assert_eq!(
        upstreams.groups()[0].inner_names(),
        ["a.internal", "a.internal"]
    );
}

#[test]
fn health_and_ejection() {
    let read = |keys: &str| {
        let groups = format!("{{core: {{endpoints: [{{address: '10.0.0.8:80'}}], {keys}}}}}");
        let settings = Site::new().read(&with(&groups)).unwrap();
        settings.reloadable.upstreams.groups()[0].as_ref().clone()
    };
    let group = read("health: {path: /h}, ejection: off, needed: false");
    let health = ActiveCheck {
        path: "/h".to_owned(),
        status: 200,
        interval: Duration::from_secs(1),
        timeout: Duration::from_millis(500),
        healthy_after: 2,
        unhealthy_after: 2,
    };
    assert_eq!(
        (group.health, group.ejection, group.needed),
        (Some(health), None, false)
    );
    let group = read("ejection: {failures: 2, time: 1s, recovery: 2s}, retry_percent: 0");
    let ejection = Ejection {
        failures: 2,
        time: Duration::from_secs(1),
        recovery: Duration::from_secs(2),
    };
    assert_eq!((group.ejection, group.retry_percent), (Some(ejection), 0));
}

#[test]
fn a_faulty_group() {
    for (groups, expected) in [
        ("{}", "upstreams: expected 1 to 16 groups"),
        (
            "{Core: {endpoints: [{address: '10.0.0.8:80'}]}}",
            "upstreams.Core: found \"Core\"; expected a name of at most 32 lower-case letters, digits and dashes",
        ),
        (
            "{a: {endpoints: []}}",
            "upstreams.a.endpoints: a group has at least one endpoint",
        ),
        (
            "{a: {endpoints: [{address: '10.0.0.8:80', wait: 3}]}}",
            "upstreams.a.endpoints[0].wait: unknown key",
        ),
        (
            "{a: {endpoints: [{address: '10.0.0.8:80', weight: 0}]}}",
            "upstreams.a.endpoints[0].weight: found 0; expected a whole number from 1 to 100",
        ),
        (
            "{a: {endpoints: [{address: '10.0.0.8:80'}, {address: '10.0.0.8:80'}]}}",
            "upstreams.a.endpoints[1].address: the group has this endpoint already",
        ),
        (
            "{a: {endpoints: [{address: '127.0.0.1:8443'}]}}",
            "upstreams.a.endpoints[0].address: 127.0.0.1:8443 is the gateway's own",
        ),
        (
            "{a: {endpoints: [{address: '169.254.169.254:80'}]}}",
            "upstreams.a.endpoints[0].address: 169.254.169.254 may not be an endpoint: link-local, metadata and unspecified addresses, and those outside networks, are refused",
        ),
        (
            "{a: {endpoints: [{address: '10.0.0.8:80'}], networks: [192.0.2.0/24]}}",
            "upstreams.a.endpoints[0].address: 10.0.0.8 may not be an endpoint: link-local, metadata and unspecified addresses, and those outside networks, are refused",
        ),
        (
            "{a: {endpoints: [{address: '10.0.0.8:80'}], health: {}}}",
            "upstreams.a.health.path: missing key",
        ),
        (
            "{a: {endpoints: [{address: '10.0.0.8:80'}], health: {path: x}}}",
            "upstreams.a.health.path: found \"x\"; expected a path such as /health",
        ),
        (
            "{a: {endpoints: [{address: '10.0.0.8:80'}], tls: {}}}",
            "upstreams.a.tls.ca: missing key",
        ),
        (
            "{a: {endpoints: [{address: '10.0.0.8:80'}], tls: {ca: ../certs/server.pem, certificate: ../certs/server.pem}}}",
            "upstreams.a.tls.key: missing key",
        ),
        (
            "{a: {endpoints: [{address: '10.0.0.8:80'}], tls: {ca: ../certs/server.pem, name: 'a b'}}}",
            "upstreams.a.tls.name: found \"a b\"; expected a host name such as core.bank.internal",
        ),
    ] {
        assert_eq!(faults(groups), [expected], "{groups}");
    }
}

/// A payment never changes its core because its product gets a shape.
#[test]
fn the_operation_of_a_product_is_routed_with_the_one_that_it_comes_from() {
    let site = Site::new();
    let file = "operations:
- {name: alt-pay, method: POST, path: '/v1/alt/{payment-product}', role: PSP_PI, schema: payment}
payment_products:
- {name: plain}
- {name: sepa, members: [{name: note, kind: boolean}]}
- {name: swift, schema: cross-border-payment}
";
    site.write("config/own.yaml", file);
    let core = |name: &str, operations: &str| {
        format!("{name}: {{endpoints: [{{address: '10.0.0.8:80'}}]{operations}}}")
    };
    let groups = [
        core("rest", ""),
        core(
            "pay",
            ", operations: [payment-create, payment-status, alt-pay]",
        ),
        core("swift", ", operations: [payment-create-swift]"),
    ];
    let text = with(&format!("{{{}}}", groups.join(", ")));
    let settings = site.read(&format!("{text}operations: own.yaml\n")).unwrap();
    let settings = settings.reloadable;
    for (operation, group) in [
        ("payment-create", "pay"),
        ("payment-create-sepa", "pay"),
        ("payment-create-swift", "swift"),
        ("alt-pay-sepa", "pay"),
        ("alt-pay-swift", "pay"),
        ("cross-border-payment-create", "rest"),
    ] {
        let operation = settings.snapshot.catalogue.named(operation).unwrap();
        let index = settings.upstreams.index_of(operation);
        assert_eq!(
            settings.upstreams.groups()[index].name,
            group,
            "{}",
            operation.name
        );
    }
}

#[test]
fn groups_that_do_not_fit_together() {
    let one = "endpoints: [{address: '10.0.0.8:80'}]";
    let two = format!("{{a: {{{one}}}, b: {{{one}}}}}");
    assert_eq!(
        faults(&two),
        ["upstreams: b: two groups have no operations; list those of one of them"]
    );
    let listed = format!(
        "{{a: {{{one}}}, b: {{{one}, operations: [payments, nothing]}}, c: {{{one}, operations: [payments]}}}}"
    );
    assert_eq!(
        faults(&listed),
        [
            "upstreams.b.operations[1]: no operation and no group of operations is called \"nothing\"",
            "upstreams.c.operations[0]: \"payments\" is listed twice",
        ]
    );
    let most = faults(&format!("{{b: {{{one}, operations: [payments]}}}}"));
    assert!(
        most.iter()
            .all(|fault| fault.starts_with("upstreams: no group answers ")),
        "{most:?}"
    );
    let both = format!("{}upstreams: {{a: {{{one}}}}}\n", LEAST);
    let both = Site::new().read(&both).unwrap_err();
    assert!(
        both[0].ends_with("upstream: is the short form of upstreams; use one of both"),
        "{both:?}"
    );
}

#[test]
fn the_longest_timeout_of_a_group_counts_for_the_end_of_the_process() {
    let groups = "{a: {endpoints: [{address: '10.0.0.8:80'}], connect_timeout: 2s, read_timeout: 9s, timeout: 50s}, \
                  b: {endpoints: [{address: '10.0.0.9:80'}], timeout: 40s, operations: [payments]}}";
    let settings = Site::new().read(&with(groups)).unwrap();
    let longest = settings.reloadable.upstreams.longest();
    let finish = (settings.fixed.shutdown).finish(&settings.fixed.listener, longest);
    // listener.body_timeout, listener.answer_timeout and 10 s beside it, as gateway.yaml says.
    assert_eq!(finish, Duration::from_secs(10 + 50 + 120 + 10));
}
