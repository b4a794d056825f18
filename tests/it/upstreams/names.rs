//! Names of endpoints: followed when their TTL ends, and never into networks that are not allowed.

use super::{get, state};
use crate::harness::{Gate, Reply, Upstream, check_error, eventually};
use simple_dns::{
    CLASS, Packet, QTYPE, Question, ResourceRecord, TYPE,
    rdata::{A, AAAA, RData},
};
use std::{
    net::{IpAddr, SocketAddr, UdpSocket},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// A DNS server with one address for every name, or none; the TTL is a second.
struct Dns {
    address: SocketAddr,
    answer: Arc<Mutex<Option<IpAddr>>>,
    asked: Arc<AtomicUsize>,
}

impl Dns {
    fn start(address: &str) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let answer = Arc::new(Mutex::new(address.parse().ok()));
        let (own, answers) = (socket.local_addr().unwrap(), Arc::clone(&answer));
        let asked = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&asked);
        thread::spawn(move || {
            let mut bytes = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut bytes) {
                let answer = *answers.lock().unwrap();
                let reply = reply(&bytes[..length], answer);
                let _ = socket.send_to(&reply, from);
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        Self {
            address: own,
            answer,
            asked,
        }
    }

    /// The number of questions so far.
    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    fn set(&self, address: Option<&str>) {
        *self.answer.lock().unwrap() = address.map(|address| address.parse().unwrap());
    }
}

fn reply(query: &[u8], answer: Option<IpAddr>) -> Vec<u8> {
    let query = Packet::parse(query).unwrap();
    let mut reply = Packet::new_reply(query.id());
    let question = query.questions[0].clone();
    match answer {
        None => *reply.rcode_mut() = simple_dns::RCODE::ServerFailure,
        Some(IpAddr::V4(address)) if question.qtype == QTYPE::TYPE(TYPE::A) => {
            let address = RData::A(A {
                address: address.to_bits(),
            });
            reply.answers.push(record(&question, address));
        }
        Some(IpAddr::V6(address)) if question.qtype == QTYPE::TYPE(TYPE::AAAA) => {
            let address = RData::AAAA(AAAA {
                address: address.to_bits(),
            });
            reply.answers.push(record(&question, address));
        }
        Some(_) => {}
    }
    reply.questions.push(question);
    reply.build_bytes_vec().unwrap()
}

/// An answer that holds for a second.
fn record<'a>(question: &Question<'a>, data: RData<'a>) -> ResourceRecord<'a> {
    ResourceRecord::new(question.qname.clone(), CLASS::IN, 1, data)
}

fn gate(dns: &Dns, port: u16, keys: &str) -> Gate {
    Gate::builder()
        .groups(&format!(
            "{{core: {{endpoints: [{{address: 'core.bank.internal:{port}'}}], name_servers: ['{}'], {keys}}}}}",
            dns.address
        ))
        .start()
}

//= FWD-3 accepted
#[test]
fn a_name_is_followed_and_its_last_answer_kept() {
    let first = Upstream::start();
    let port = first.address().port();
    let second = Upstream::start_at(SocketAddr::from(([127, 0, 0, 2], port)));
    let dns = Dns::start("127.0.0.1");
    let gate = gate(&dns, port, "reuse: on");
    assert_eq!(get(&gate).status, 200);
    assert_eq!(
        first.take()[0].header("host"),
        Some(&*format!("core.bank.internal:{port}"))
    );
    dns.set(Some("127.0.0.2"));
    eventually("the new address", || {
        assert_eq!(get(&gate).status, 200);
        !second.take().is_empty()
    });
    first.take();
    dns.set(None);
    // The TTL is over: the gateway has asked again, for both kinds of addresses, and got no answer twice.
    let before = dns.asked();
    eventually("the name is asked for in vain", || {
        assert_eq!(get(&gate).status, 200);
        dns.asked() >= before + 4
    });
    second.take();
    assert_eq!(get(&gate).status, 200);
    assert_eq!((first.take().len(), second.take().len()), (0, 1));
}

//= FWD-3 refused
#[test]
fn a_name_leads_to_no_address_that_is_not_allowed() {
    let upstream = Upstream::start();
    let port = upstream.address().port();
    for (address, keys) in [
        ("169.254.169.254", "reuse: on"),
        ("192.0.0.192", "reuse: on"),
        ("fd20:ce::254", "reuse: on"),
        ("64:ff9b::169.254.169.254", "reuse: on"),
        ("64:ff9b:1::169.254.169.254", "reuse: on"),
        ("2002:a9fe:a9fe::1", "reuse: on"),
        ("::ffff:169.254.169.254", "reuse: on"),
        ("0.0.0.0", "reuse: on"),
        ("127.0.0.1", "networks: [127.0.0.2/32]"),
    ] {
        let dns = Dns::start(address);
        let gate = gate(&dns, port, keys);
        assert_eq!(state(&gate, 0)["addresses"], 0, "{address}");
        assert_eq!(gate.control("/readyz").status, 503);
        let answer = get(&gate);
        check_error(
            address,
            &answer,
            502,
            "SYSTEM_ERROR",
            "upstream-unreachable",
        );
        dns.set(Some("127.0.0.2"));
    }
    assert!(upstream.saw_nothing());
}

/// The addresses of names, and the hosts of other groups, are the bank's own business too.
//= FWD-7 accepted
//= FWD-7 refused
#[test]
fn answers_name_no_host_of_any_group() {
    let upstream = Upstream::start();
    let dns = Dns::start("127.0.0.1");
    let gate = Gate::builder()
        .groups(&format!(
            "{{core: {{endpoints: [{{address: 'core.bank.internal:{}'}}], name_servers: ['{}'], answer_headers: [X-Served-By]}}, \
             pay: {{endpoints: [{{address: '127.0.0.9:80'}}], host: pay.bank.example, operations: [payments]}}}}",
            upstream.address().port(),
            dns.address
        ))
        .start();
    for (name, stays) in [
        ("core.bank.internal", false),
        ("node at 127.0.0.1", false),
        ("127.0.0.9:80", false),
        ("pay.bank.example", false),
        ("127.0.0.8", false),
        ("www.bank.example", true),
    ] {
        let place = format!("https://{name}/v1/accounts");
        let answer = Reply::json(200, "{}").with("X-Served-By", name);
        upstream.reply(answer.with("Location", &place));
        let answer = get(&gate);
        assert_eq!(answer.header("x-served-by").is_some(), stays, "{name}");
        let is_kept = answer.header("location") == Some(&place);
        assert_eq!(is_kept, name == "www.bank.example", "{name}");
    }
}
