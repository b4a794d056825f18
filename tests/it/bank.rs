//! The simulated bank as a process behind a gateway: its SCA page, and what it shares with the gateway.

/// The end of an access, by its PSU.
mod accesses;
/// kill -9 between the bank and the gateway.
mod crash;
/// A TPP's own latest requests.
mod tail;

use crate::harness::{
    Answer, Call, Gate, GateBuilder, Program, Protocol, Wire, eventually, free_address,
};
use std::{
    io::Write,
    net::{SocketAddr, TcpStream},
    path::Path,
    process::{Command, Stdio},
};

/// The header of a submitted form.
const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";

/// More pages than an SCA has.
const PAGES: usize = 10;

/// The session that the TPP names.
const SESSION: &str = "S";

/// The bank's process.
pub(crate) struct Bank {
    /// Its listener.
    pub(crate) address: SocketAddr,
    program: Program,
}

impl Bank {
    /// A gateway and its bank, with the ledger in the gateway's folder.
    pub(crate) fn behind_a_gate() -> (Gate, Self) {
        Self::behind(Gate::builder())
    }

    /// The same with these settings of the gateway.
    pub(crate) fn behind(builder: GateBuilder) -> (Gate, Self) {
        let address = free_address();
        let gate = builder
            .strangers()
            .core(address)
            .line("assertion: {key: state/assertion.key}")
            .start();
        let bank = Self::start(address, gate.control_address(), gate.folder());
        (gate, bank)
    }

    /// Starts it with the ledger in a folder; `control` is the address of the gateway's control listener.
    pub(crate) fn start(address: SocketAddr, control: SocketAddr, folder: &Path) -> Self {
        Self::start_with(address, control, folder, &[])
    }

    /// The same with further options.
    pub(crate) fn start_with(
        address: SocketAddr,
        control: SocketAddr,
        folder: &Path,
        options: &[&str],
    ) -> Self {
        let program = Command::new(env!("CARGO_BIN_EXE_portvakt-sandbox"))
            .args(["core", "--listen", &address.to_string()])
            .args(["--control", &format!("http://{control}"), "--ledger"])
            .arg(folder.join("bank.db"))
            .args(options)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut program = Program(program);
        eventually("the bank listens", || {
            assert!(program.0.try_wait().unwrap().is_none(), "it has ended");
            TcpStream::connect(address)
        });
        Self { address, program }
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.program.end();
    }

    /// Calls it past the gateway, as a browser or a program on its machine does.
    pub(crate) fn ask(&self, method: &str, target: &str, headers: &str, body: &str) -> Answer {
        let mut wire = Wire::new(TcpStream::connect(self.address).unwrap());
        write!(
            wire.reader.stream,
            "{method} {target} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )
        .unwrap();
        wire.answer(method).unwrap()
    }

    /// Follows the link with this token to the last page; gives the body that approves, with every account ticked.
    pub(crate) fn last_page(&self, request: &str, identity: &str) -> String {
        let mut shown = self.ask("GET", &format!("/sca?request={request}"), "", "");
        for _ in 0..PAGES {
            let html = String::from_utf8(shown.body).unwrap();
            assert_eq!(shown.status, 200, "{html}");
            let body = format!("{}&identity={identity}", next(request, &html));
            if !html.contains("name=\"identity\"") {
                return body;
            }
            shown = self.ask("POST", "/sca", FORM, &body);
        }
        panic!("there is no last page")
    }

    /// Presses "I do not have the app on this device" on the page with this body; gives the body that approves on the next page.
    pub(crate) fn without_app(&self, request: &str, body: &str) -> String {
        let body = body.replace("step=next", "step=without-app");
        let shown = self.ask("POST", "/sca", FORM, &body);
        next(request, &String::from_utf8(shown.body).unwrap())
    }

    /// Approves on the last page; gives the redirect.
    pub(crate) fn submit(&self, body: &str) -> String {
        let answer = self.ask("POST", "/sca", FORM, body);
        answer.header("location").unwrap_or_default().to_owned()
    }
}

/// The body that goes on from a page, with every account ticked.
fn next(request: &str, html: &str) -> String {
    let accounts = html.split("name=\"account\" value=\"").skip(1);
    let accounts = accounts.map(|rest| rest.split('"').next().unwrap());
    let accounts: String = accounts.map(|id| format!("&account={id}")).collect();
    let form = value(html, "form");
    format!("request={request}&form={form}&step=next{accounts}")
}

/// The value of a hidden field.
fn value<'a>(html: &'a str, name: &str) -> &'a str {
    let (_, rest) = html
        .split_once(&format!("name=\"{name}\" value=\""))
        .unwrap_or_else(|| panic!("{html}"));
    rest.split('"').next().unwrap()
}

/// A parameter of a redirect.
pub(crate) fn parameter(uri: &str, name: &str) -> String {
    let query = uri.split_once('?').unwrap_or(("", "")).1;
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let found = pairs.find(|(known, _)| *known == name);
    found
        .unwrap_or_else(|| panic!("no {name} in {uri}"))
        .1
        .to_owned()
}

/// An operation by a TPP that knows no PSU yet.
pub(crate) fn unknown(method: &str, target: &str) -> Call {
    Call::bare(method, target)
        .with("TPP-Redirect-URI", "https://tpp.example/back")
        .with("TPP-Session-ID", SESSION)
        .present()
}

/// The token of the link in an answer.
pub(crate) fn request(gate: &Gate, call: &Call) -> String {
    let answer = gate.send(call, Protocol::Http1);
    let json = answer.json();
    let href = json["_links"]["scaRedirect"]["href"]
        .as_str()
        .unwrap_or_else(|| panic!("{} {json}", answer.status));
    href.split_once("request=").unwrap().1.to_owned()
}

/// The bank answers the gateway, and nobody who claims to be it.
#[test]
fn the_bank_answers_the_gateway_alone() {
    let (gate, bank) = Bank::behind_a_gate();
    let through = gate.send(&Call::plain(), Protocol::Http1);
    assert_ne!(through.status, 403, "{}", through.json());
    let claims = "Gateway-Tpp-Id: PSDNO-FSA-123456\r\nGateway-Operation: tpp-contact-read\r\n";
    let past = bank.ask("GET", "/v1/tpp/contact", claims, "");
    assert_eq!(past.status, 403, "{}", past.json());
}
