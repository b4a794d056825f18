//! Resolves a name with the TTL of the answer: by /etc/hosts, or by the DNS servers of the system or the configuration (RFC 1035).
//!
//! It is a stub resolver: a server must resolve recursively, and names are complete, without search domains. Invariant: an answer counts
//! only if it came from the server that was asked, with the id and the question of the query.

use simple_dns::{
    CLASS, Name, Packet, PacketFlag, QCLASS, QTYPE, Question, RCODE, TYPE, rdata::RData,
};
use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, UdpSocket},
    time::timeout,
};

/// The time limit of a query to one server.
const QUERY_WITHIN: Duration = Duration::from_secs(2);

/// The longest answer by UDP: a query without EDNS gets at most 512 bytes.
const DATAGRAM: usize = 4096;

/// The time for which an entry of /etc/hosts is used.
const HOSTS_TTL: Duration = Duration::from_secs(5);

/// The most servers of /etc/resolv.conf, as in resolv.conf(5).
const MOST_SERVERS: usize = 3;

/// The most CNAME records that are followed.
const MOST_ALIASES: usize = 8;

/// The reason why a name has no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum DnsFault {
    /// A server cannot be reached.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// No server answers in time.
    #[error("no answer in time")]
    Timeout,
    /// An answer, or the name, is malformed.
    #[error("{0}")]
    Malformed(#[from] simple_dns::SimpleDnsError),
    /// An answer belongs to another query.
    #[error("an answer to another question")]
    Foreign,
    /// The server refuses the query.
    #[error("the server answers {0:?}")]
    Code(RCODE),
    /// The name has no addresses.
    #[error("the name has no address")]
    Empty,
    /// There are no servers to ask.
    #[error("no DNS server is configured")]
    NoServer,
}

/// The addresses of a name, in order, and the time for which they hold.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) addresses: Vec<IpAddr>,
    pub(super) ttl: Duration,
}

/// Resolves a name.
///
/// # Errors
/// No server has an address for it.
pub(super) async fn resolve(name: &str, servers: &[SocketAddr]) -> Result<Answer, DnsFault> {
    let hosts = system_file("/etc/hosts");
    if let Some(answer) = in_hosts(&hosts, name) {
        return Ok(answer);
    }
    let system;
    let servers = if servers.is_empty() {
        system = system_servers(&system_file("/etc/resolv.conf"));
        &system
    } else {
        servers
    };
    let mut fault = DnsFault::NoServer;
    for server in servers {
        match ask_both(name, *server).await {
            Ok(answer) => return Ok(answer),
            Err(error) => fault = error,
        }
    }
    Err(fault)
}

/// A small file on a local disk; empty if it cannot be read.
fn system_file(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Asks a server for addresses of both versions. One of them is enough.
async fn ask_both(name: &str, server: SocketAddr) -> Result<Answer, DnsFault> {
    let (v4, v6) = tokio::join!(ask(name, TYPE::A, server), ask(name, TYPE::AAAA, server));
    let (mut answer, other) = match (v4, v6) {
        (Ok(v4), v6) => (v4, v6.ok()),
        (Err(_), Ok(v6)) if !v6.addresses.is_empty() => (v6, None),
        (Err(fault), _) => return Err(fault),
    };
    if let Some(other) = other.filter(|other| !other.addresses.is_empty()) {
        answer.ttl = if answer.addresses.is_empty() {
            other.ttl
        } else {
            answer.ttl.min(other.ttl)
        };
        answer.addresses.extend(other.addresses);
    }
    if answer.addresses.is_empty() {
        return Err(DnsFault::Empty);
    }
    answer.addresses.sort_unstable();
    answer.addresses.dedup();
    Ok(answer)
}

/// Asks a server for records of one type: by UDP, and by TCP if the answer is truncated.
async fn ask(name: &str, kind: TYPE, server: SocketAddr) -> Result<Answer, DnsFault> {
    let id = query_id();
    let query = query(name, kind, id)?;
    let bytes = timeout(QUERY_WITHIN, by_udp(&query, server)).await;
    let bytes = bytes.map_err(|_| DnsFault::Timeout)??;
    match read(&bytes, id, name, kind)? {
        Some(answer) => Ok(answer),
        None => {
            let bytes = timeout(QUERY_WITHIN, by_tcp(&query, server)).await;
            let bytes = bytes.map_err(|_| DnsFault::Timeout)??;
            read(&bytes, id, name, kind)?.ok_or(DnsFault::Foreign)
        }
    }
}

/// A random id (RFC 5452); the port of the socket is random too.
fn query_id() -> u16 {
    let [first, second, ..] = uuid::Uuid::new_v4().into_bytes();
    u16::from_be_bytes([first, second])
}

fn query(name: &str, kind: TYPE, id: u16) -> Result<Vec<u8>, DnsFault> {
    let mut packet = Packet::new_query(id);
    packet.set_flags(PacketFlag::RECURSION_DESIRED);
    let (kind, class) = (QTYPE::TYPE(kind), QCLASS::CLASS(CLASS::IN));
    packet
        .questions
        .push(Question::new(Name::new(name)?, kind, class, false));
    Ok(packet.build_bytes_vec()?)
}

async fn by_udp(query: &[u8], server: SocketAddr) -> Result<Vec<u8>, DnsFault> {
    let any: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(server).await?;
    socket.send(query).await?;
    let mut bytes = vec![0; DATAGRAM];
    let length = socket.recv(&mut bytes).await?;
    bytes.truncate(length);
    Ok(bytes)
}

async fn by_tcp(query: &[u8], server: SocketAddr) -> Result<Vec<u8>, DnsFault> {
    let mut stream = TcpStream::connect(server).await?;
    let length = u16::try_from(query.len()).map_err(io::Error::other)?;
    stream
        .write_all(&[&length.to_be_bytes(), query].concat())
        .await?;
    let mut length = [0; 2];
    stream.read_exact(&mut length).await?;
    let mut bytes = vec![0; u16::from_be_bytes(length).into()];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

/// Reads an answer; `None` if it is truncated.
fn read(bytes: &[u8], id: u16, name: &str, kind: TYPE) -> Result<Option<Answer>, DnsFault> {
    let packet = Packet::parse(bytes)?;
    let mut questions = packet.questions.iter();
    let is_own = packet.id() == id
        && packet.has_flags(PacketFlag::RESPONSE)
        && questions.next().is_some_and(|question| {
            is_name(&question.qname, name) && question.qtype == QTYPE::TYPE(kind)
        });
    if !is_own {
        return Err(DnsFault::Foreign);
    }
    if packet.has_flags(PacketFlag::TRUNCATION) {
        return Ok(None);
    }
    if packet.rcode() != RCODE::NoError {
        return Err(DnsFault::Code(packet.rcode()));
    }
    Ok(Some(addresses(&packet, name)))
}

/// The addresses of a name, or of the name that it is an alias of. The shortest TTL counts.
fn addresses(packet: &Packet<'_>, name: &str) -> Answer {
    let (mut owner, mut ttl) = (name.to_owned(), u32::MAX);
    for _ in 0..MOST_ALIASES {
        let mut records = packet.answers.iter();
        let alias = records.find_map(|record| match &record.rdata {
            RData::CNAME(target) if is_name(&record.name, &owner) => {
                Some((target.0.to_string(), record.ttl))
            }
            _ => None,
        });
        let Some((target, holds)) = alias else { break };
        (owner, ttl) = (target, ttl.min(holds));
    }
    let mut addresses = Vec::new();
    for record in &packet.answers {
        let address = match &record.rdata {
            RData::A(a) => IpAddr::V4(Ipv4Addr::from_bits(a.address)),
            RData::AAAA(aaaa) => IpAddr::V6(Ipv6Addr::from_bits(aaaa.address)),
            _ => continue,
        };
        if is_name(&record.name, &owner) {
            addresses.push(address);
            ttl = ttl.min(record.ttl);
        }
    }
    Answer {
        addresses,
        ttl: Duration::from_secs(ttl.into()),
    }
}

/// Compares names regardless of letter case and of the dot at the end.
fn is_name(name: &Name<'_>, other: &str) -> bool {
    let name = name.to_string();
    let plain = |text: &str| text.trim_end_matches('.').to_ascii_lowercase();
    plain(&name) == plain(other)
}

/// The addresses of a name in the text of /etc/hosts.
fn in_hosts(text: &str, name: &str) -> Option<Answer> {
    let mut addresses = Vec::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_ascii_whitespace();
        let Some(Ok(address)) = words.next().map(str::parse::<IpAddr>) else {
            continue;
        };
        let is_named = words.any(|word| word.eq_ignore_ascii_case(name));
        if is_named && !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses.sort_unstable();
    (!addresses.is_empty()).then_some(Answer {
        addresses,
        ttl: HOSTS_TTL,
    })
}

/// The servers in the text of /etc/resolv.conf.
fn system_servers(text: &str) -> Vec<SocketAddr> {
    let servers = text.lines().filter_map(|line| {
        let address = line.trim().strip_prefix("nameserver")?.trim();
        let address: IpAddr = address.parse().ok()?;
        Some(SocketAddr::new(address, 53))
    });
    servers.take(MOST_SERVERS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use simple_dns::{
        ResourceRecord,
        rdata::{A, CNAME},
    };

    const NAME: &str = "core.bank.internal";

    /// An answer with these records: owner, TTL and address, or the name that the owner is an alias of.
    fn answer(id: u16, question: &str, records: &[(&str, u32, &str)]) -> Vec<u8> {
        let mut packet = Packet::new_reply(id);
        let (kind, class) = (QTYPE::TYPE(TYPE::A), QCLASS::CLASS(CLASS::IN));
        let question = Question::new(Name::new_unchecked(question), kind, class, false);
        packet.questions.push(question);
        for (owner, ttl, value) in records {
            let rdata = match value.parse::<Ipv4Addr>() {
                Ok(address) => RData::A(A {
                    address: address.to_bits(),
                }),
                Err(_) => RData::CNAME(CNAME(Name::new_unchecked(value))),
            };
            let owner = Name::new_unchecked(owner);
            packet
                .answers
                .push(ResourceRecord::new(owner, CLASS::IN, *ttl, rdata));
        }
        packet.build_bytes_vec().unwrap()
    }

    #[test]
    fn addresses_with_the_shortest_ttl_of_the_chain() {
        let bytes = answer(
            7,
            "CORE.bank.internal",
            &[
                ("a.internal", 30, "10.0.0.8"),
                (NAME, 20, "b.internal"),
                ("b.internal", 60, "a.internal"),
                ("other.internal", 1, "10.6.6.6"),
                ("a.internal", 40, "10.0.0.7"),
            ],
        );
        let read = read(&bytes, 7, NAME, TYPE::A).unwrap().unwrap();
        let expected: [IpAddr; 2] = ["10.0.0.8", "10.0.0.7"].map(|text| text.parse().unwrap());
        assert_eq!(read.addresses, expected);
        assert_eq!(read.ttl, Duration::from_secs(20));
    }

    #[test]
    fn answers_to_other_questions_do_not_count() {
        let own = &[(NAME, 20, "10.0.0.7")];
        let is_foreign =
            |bytes: &[u8], kind| matches!(read(bytes, 7, NAME, kind), Err(DnsFault::Foreign));
        assert!(!is_foreign(&answer(7, NAME, own), TYPE::A));
        assert!(is_foreign(&answer(8, NAME, own), TYPE::A), "id");
        assert!(is_foreign(&answer(7, "x.internal", own), TYPE::A), "name");
        assert!(is_foreign(&answer(7, NAME, own), TYPE::AAAA), "type");
        assert!(
            is_foreign(&query(NAME, TYPE::A, 7).unwrap(), TYPE::A),
            "query"
        );
    }

    #[test]
    fn bytes_of_any_kind() {
        let whole = answer(
            7,
            NAME,
            &[(NAME, 20, "b.internal"), ("b.internal", 9, "10.0.0.7")],
        );
        for length in 0..whole.len() {
            let _ = read(&whole[..length], 7, NAME, TYPE::A);
        }
        for at in 0..whole.len() {
            for value in [0, 1, 0x3f, 0x40, 0x7f, 0x80, 0xc0, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                let _ = read(&bytes, 7, NAME, TYPE::A);
            }
        }
    }

    #[test]
    fn files_of_the_system() {
        let hosts =
            "127.0.0.1 localhost\n10.0.0.7\tcore.bank.internal core # x\n::1 Core\nbad core\n";
        let found = |name: &str| in_hosts(hosts, name).map(|answer| answer.addresses.len());
        assert_eq!(found("core"), Some(2));
        assert_eq!(found("localhost"), Some(1));
        assert_eq!(found("x"), None);
        let servers = "search a\nnameserver 10.0.0.53\n nameserver ::1 \nnameserver x\n";
        let expected: [SocketAddr; 2] =
            ["10.0.0.53:53", "[::1]:53"].map(|text| text.parse().unwrap());
        assert_eq!(system_servers(servers), expected);
    }
}
