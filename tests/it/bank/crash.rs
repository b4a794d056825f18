//! An SCA ends in two systems. The bank is killed when the PSU has approved, just before the gateway is told, or just after.

use super::{Bank, parameter, request, unknown};
use crate::harness::{Gate, LIMIT, Protocol, Wire, eventually, received};
use serde_json::json;
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::mpsc::{Receiver, channel},
    thread,
};

const IDENTITY: &str = "01010112345";

/// When the bank's call to end the SCA gets lost.
#[derive(Clone, Copy, Debug)]
enum Lost {
    /// Before the gateway has it.
    Call,
    /// After the gateway has it.
    Answer,
}

/// A way to the control listener on which `/sca/complete` gets lost, and a message when it did. The connection stays open: the
/// bank waits for the answer until it is killed.
fn lossy(control: SocketAddr, lost: Lost) -> (SocketAddr, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (says, told) = channel();
    thread::spawn(move || {
        let mut held = Vec::new();
        for caller in listener.incoming() {
            let mut caller = Wire::new(caller.unwrap());
            let Ok(Some(head)) = caller.head() else {
                continue;
            };
            let head = String::from_utf8(head).unwrap();
            let is_end = head.starts_with("POST /sca/complete");
            if is_end && matches!(lost, Lost::Call) {
                held.push(caller);
                let _ = says.send(());
                continue;
            }
            let answer = pass_on(&mut caller, &head, control);
            if is_end {
                held.push(caller);
                let _ = says.send(());
            } else {
                let _ = caller.reader.stream.write_all(&answer);
            }
        }
    });
    (address, told)
}

/// Passes a request on under the control listener's own name; gives the answer.
fn pass_on(caller: &mut Wire<TcpStream>, head: &str, control: SocketAddr) -> Vec<u8> {
    let lower = head.to_ascii_lowercase();
    let length = lower.split("content-length: ").nth(1);
    let length = length.map_or(0, |rest| {
        rest.split("\r\n").next().unwrap().parse().unwrap()
    });
    let body = caller.exactly(length).unwrap();
    let lines = head.trim_end().split("\r\n");
    let lines = lines.filter(|line| !line.to_ascii_lowercase().starts_with("host:"));
    let head = lines.collect::<Vec<_>>().join("\r\n");
    let mut stream = TcpStream::connect(control).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    write!(
        stream,
        "{head}\r\nHost: {control}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    stream.write_all(&body).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer
}

/// Kills the bank when the PSU has pressed the last button, and starts it again with the way to the gateway repaired.
fn killed_in_between(gate: &Gate, bank: &mut Bank, lost: Lost, body: &str) {
    let address = bank.address;
    thread::scope(|scope| {
        let (way, told) = lossy(gate.control_address(), lost);
        // The bank that the PSU talks to is the one behind the lossy way.
        bank.kill();
        *bank = Bank::start(address, way, gate.folder());
        let page = bank.last_page(body, IDENTITY);
        let pressed = scope.spawn(move || {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(2 * LIMIT)).unwrap();
            let sent = write!(
                stream,
                "POST /sca HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{page}",
                page.len()
            );
            sent.unwrap();
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
            answer
        });
        received("the bank's call gets lost", &told);
        bank.kill();
        assert_eq!(
            pressed.join().unwrap(),
            b"",
            "{lost:?}: the PSU got no answer"
        );
    });
    *bank = Bank::start(address, gate.control_address(), gate.folder());
}

//= SBX-15 accepted
#[test]
fn an_approval_survives_kill_9_between_bank_and_gateway() {
    for lost in [Lost::Call, Lost::Answer] {
        let (gate, mut bank) = Bank::behind_a_gate();
        let ask = unknown("GET", "/v1/accounts");
        let token = request(&gate, &ask);
        killed_in_between(&gate, &mut bank, lost, &token);
        // The PSU opens the link again: the bank has ended the SCA, and sends the browser to the TPP.
        let back = eventually("the browser is sent to the TPP", || {
            let shown = bank.ask("GET", &format!("/sca?request={token}"), "", "");
            let location = shown.header("location").map(str::to_owned);
            location.ok_or(shown.status)
        });
        let psu = parameter(&back, "psu-id");
        let answer = gate.send(&ask.clone().with("PSU-ID", &psu), Protocol::Http1);
        assert_eq!(answer.status, 200, "{lost:?}: {}", answer.json());
        let accounts = answer.json()["accounts"].as_array().unwrap().len();
        assert_eq!(accounts, 3, "{lost:?}");
    }
}

//= SBX-15 accepted
#[test]
fn a_signature_survives_kill_9_between_bank_and_gateway_without_a_browser() {
    for lost in [Lost::Call, Lost::Answer] {
        let (gate, mut bank) = Bank::behind_a_gate();
        let users = request(&gate, &unknown("GET", "/v1/users"));
        let back = bank.submit(&bank.last_page(&users, IDENTITY));
        let psu = parameter(&back, "psu-id");
        let seen = bank.ask("GET", "/console", "", "");
        let html = String::from_utf8(seen.body).unwrap();
        let own = html.split("data-identity=\"01010112345\"").nth(1).unwrap();
        let bban = own.split("data-bban=\"").nth(1).unwrap();
        let body = json!({
            "instructedAmount": {"amount": "12.00", "currency": "NOK"}, "creditorName": "Bakeriet",
            "creditorAccount": {"bban": "86011117947", "currency": "NOK"},
            "debtorAccount": {"bban": bban.split('"').next().unwrap(), "currency": "NOK"}});
        let product = "/v1/payments/norwegian-domestic-credit-transfers";
        let create = unknown("POST", product)
            .with("PSU-ID", &psu)
            .json(&body.to_string());
        let created = gate.send(&create, Protocol::Http1);
        assert_eq!(created.status, 201, "{}", created.json());
        let id = created.json()["paymentId"].as_str().unwrap().to_owned();
        let path = format!("{product}/{id}");
        let token = request(&gate, &unknown("POST", &format!("{path}/authorisations")));
        killed_in_between(&gate, &mut bank, lost, &token);
        // Nobody opens the page again: the bank ends the SCA by itself.
        let status = unknown("GET", &format!("{path}/status"));
        eventually(&format!("{lost:?}: the payment is signed"), || {
            let answer = gate.send(&status, Protocol::Http1);
            let is_signed = answer.status == 200 && answer.json()["transactionStatus"] == "ACTC";
            is_signed.then_some(()).ok_or(answer)
        });
    }
}
