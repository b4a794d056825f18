//! Tests of the programs in examples/.

#[allow(
    dead_code,
    reason = "a program: its main reads the command line, which a test does not have"
)]
#[path = "../../examples/bank_core/main.rs"]
mod bank_core;
#[allow(
    dead_code,
    reason = "a program: its main reads the command line, which a test does not have"
)]
#[path = "../../examples/sca_page.rs"]
mod sca_page;

use crate::harness::{Answer, Call, Gate, Protocol, Wire, accepted, needs_sca};
use std::{
    io::Write,
    net::{SocketAddr, TcpStream},
    process::Command,
};
use tokio::{net::TcpListener, runtime::Runtime};

/// A listener on a free port.
fn listener(runtime: &Runtime) -> (TcpListener, SocketAddr) {
    let bound = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = bound.local_addr().unwrap();
    (bound, address)
}

/// Sends a request over plain HTTP/1.1, as a browser does, or a caller that bypasses the gateway.
fn send(address: SocketAddr, method: &str, target: &str, headers: &str, body: &str) -> Answer {
    let mut wire = Wire::new(TcpStream::connect(address).unwrap());
    write!(
        wire.reader.stream,
        "{method} {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    wire.answer(method).unwrap()
}

#[test]
fn the_core_answers_what_the_gateway_signed_and_nothing_else() {
    let runtime = Runtime::new().unwrap();
    let (listener, address) = listener(&runtime);
    let gate = Gate::builder()
        .core(address)
        .line("assertion: {key: state/assertion.key}")
        .start();
    let keys = format!("http://{}/.well-known/jwks.json", gate.control_address());
    runtime.spawn(bank_core::serve(listener, keys));

    let call = Call::accounts().present();
    for protocol in Protocol::ALL {
        let answer = gate.send(&call, protocol);
        assert_eq!(answer.status, 200, "{}", answer.json());
        let owner = &answer.json()["accounts"][0]["ownerPsuId"];
        let psu = gate
            .seal(&call)
            .request
            .header("psu-id")
            .unwrap()
            .to_owned();
        assert_eq!(owner.as_str(), Some(&*psu), "{protocol:?}");
    }
    let other = gate.send(&Call::balances().present(), Protocol::Http1);
    assert_eq!(other.status, 404, "the core has no such operation");

    // A request that bypasses the gateway: without an assertion, and with the headers that only the gateway may write.
    let forged = "Gateway-Tpp-Id: PSDNO-FSA-123456\r\nGateway-Operation: account-list\r\n";
    for headers in ["", forged, "Gateway-Assertion: e30.e30.e30\r\n"] {
        let answer = send(address, "GET", "/v1/accounts", headers, "");
        assert_eq!(answer.status, 403, "{headers}");
    }
}

/// The core that teams copy has nothing to mend.
#[test]
fn the_probe_finds_nothing_in_the_core() {
    let runtime = Runtime::new().unwrap();
    let (listener, address) = listener(&runtime);
    let gate = Gate::builder()
        .line("assertion: {key: state/assertion.key}")
        .start();
    let keys = format!("http://{}/.well-known/jwks.json", gate.control_address());
    runtime.spawn(bank_core::serve(listener, keys));
    let output = Command::new(env!("CARGO_BIN_EXE_portvakt-sandbox"))
        .args(["probe", "--core", &format!("http://{address}"), "--key"])
        .arg(gate.folder().join("state/assertion.key"))
        .output()
        .unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{report}");
}

/// The path and query of the link in an answer.
fn link(answer: &Answer) -> String {
    let json = answer.json();
    let href = json["_links"]["scaRedirect"]["href"].as_str().unwrap();
    href.strip_prefix("https://bank.example")
        .unwrap()
        .to_owned()
}

#[test]
fn the_sca_page_leads_from_the_link_to_a_session() {
    const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";
    let runtime = Runtime::new().unwrap();
    let (listener, page) = listener(&runtime);
    let gate = Gate::builder().strangers().start();
    let control = format!("http://{}", gate.control_address());
    runtime.spawn(sca_page::serve(listener, control));
    let call = Call::accounts()
        .without("PSU-ID")
        .with("TPP-Redirect-URI", "https://tpp.example/back")
        .with("TPP-Session-ID", "S")
        .present()
        .only(Protocol::Http1);

    let target = link(&needs_sca(&gate, &call));
    let shown = send(page, "GET", &target, "", "");
    let text = String::from_utf8_lossy(&shown.body).into_owned();
    assert_eq!(shown.status, 200, "{text}");
    assert!(
        text.contains("Eksempel Betaling AS asks for account-list"),
        "{text}"
    );
    assert_eq!(shown.header("cache-control"), Some("no-store"));
    assert_eq!(shown.header("referrer-policy"), Some("no-referrer"));

    // The PSU refuses: the TPP gets the refusal, and the PSU stays unknown.
    let refused = send(page, "POST", &target, FORM, "customer=");
    let back = refused.header("location").unwrap();
    assert_eq!(refused.status, 303);
    assert!(
        back.starts_with("https://tpp.example/back?") && back.contains("status=403"),
        "{back}"
    );

    // The PSU approves: afterwards the TPP reads accounts with its new PSU-ID.
    let target = link(&needs_sca(&gate, &call));
    let approved = send(page, "POST", &target, FORM, "customer=4711");
    assert_eq!(approved.status, 303);
    let back = approved.header("location").unwrap();
    let (_, psu) = back.split_once("psu-id=").unwrap();
    let psu = psu.split('&').next().unwrap();
    let seen = accepted(&gate, &call.with("PSU-ID", psu)).remove(0).seen;
    assert_eq!(seen.header("gateway-sca"), Some("session"));

    // A token that the gateway did not make is refused.
    let unknown = send(page, "GET", "/sca?request=AAAA", "", "");
    let text = String::from_utf8_lossy(&unknown.body).into_owned();
    assert_eq!(text, "<h1>This link is not valid</h1>");
}
