//! `portvakt check` and `portvakt serve` agree: each case of tests/it/check/*.txt goes through both.
//!
//! A case begins with a line `== name`. Lines with `$ ` are shell commands that prepare the folder; `@ production` takes the other base,
//! `@ raw` none; `@ unprivileged` takes the right to ports below 1024 from both, and `@ ran` lets a gateway run there before the commands. The YAML that follows replaces the sections of the base that it names. After `--` stands what `check` prints, its status,
//! and whether `serve` starts; the memory stands in the first case only, if it is the same. The ports of a case stand for free ones, except 13333, which another process holds.
//! PORTVAKT_BLESS=1 writes the part after `--` anew.

// Good configurations with one change each.
mod generated;
// The commands of docs/operations.md.
pub(crate) mod page;
// `config show` and `config schema`.
mod written;

use crate::harness::{Program, free_address, happens, skipped};
use command_fds::{CommandFdExt, FdMapping};
use openssl::{
    asn1::Asn1Time,
    bn::BigNum,
    ec::{EcGroup, EcKey},
    hash::MessageDigest,
    nid::Nid,
    pkey::{PKey, Private},
    rsa::Rsa,
    symm::Cipher,
    x509::{
        X509, X509Name,
        extension::{BasicConstraints, SubjectAlternativeName},
    },
};
use portvakt::{clock::Clock, config::Settings, gateway};
use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, ErrorKind, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::{Arc, LazyLock, Mutex},
    thread,
    time::Duration,
};
use tempfile::TempDir;

const SANDBOX: &str = "\
environment: sandbox
listener: {address: '127.0.0.1:11111', certificate: server.pem, key: server.key, max_connections: 1000}
control: {address: '127.0.0.1:12222'}
upstream: {address: '127.0.0.1:9'}
trust: {anchors: anchors}
sca: {page: 'https://bank.example/sca', token_keys: state/sca-token.keys}
state: {file: state/portvakt.db, hash_key: state/hash.key}
";

const PRODUCTION: &str = "\
environment: production
listener: {address: '127.0.0.1:11111', certificate: server.pem, key: server.key, max_connections: 1000}
control: {address: '127.0.0.1:12222', token_file: control.token}
upstream: {address: '127.0.0.1:9'}
trust: {anchors: anchors}
registers: {check: on, eba: eba.json}
revocation: {check: on}
sca: {page: 'https://bank.example/sca', token_keys: state/sca-token.keys}
state: {file: state/portvakt.db, hash_key: state/hash.key}
";

/// A listener on the port that another process holds.
const HELD: &str = "listener: {address: '127.0.0.1:13333', certificate: server.pem, key: server.key, max_connections: 1000}\n";

/// The number of descriptors that a process of this test may have: enough for the base, too few for some cases.
const DESCRIPTORS: u32 = 3_000;

const FILES: [&str; 7] = [
    "syntax",
    "addresses",
    "certificates",
    "files",
    "values",
    "production",
    "upstreams",
];

/// How long a start and its warnings may take, on a machine with much else to do.
const PATIENCE: Duration = Duration::from_secs(120);

/// What became of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    Serves,
    /// With this status; a signal gives none.
    Ends(Option<i32>),
    Hangs,
}

/// A case, and what is expected of it.
#[derive(Clone, Debug)]
struct Case {
    name: String,
    /// Everything before `--`.
    given: String,
    expected: String,
}

/// The cases of all files.
fn all_cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/check");
    let files = FILES.map(|file| fs::read_to_string(folder.join(file).with_extension("txt")));
    files
        .into_iter()
        .flat_map(|text| Case::all(&text.unwrap()))
        .collect()
}

impl Case {
    fn of(name: &str, given: &str) -> Self {
        Self {
            name: name.to_owned(),
            given: given.to_owned(),
            expected: String::new(),
        }
    }

    fn all(text: &str) -> Vec<Self> {
        let cases = text
            .split("\n== ")
            .map(|case| case.trim_start_matches("== "));
        cases
            .map(|case| {
                let (name, rest) = case.split_once('\n').unwrap();
                let rest = format!("\n{rest}\n");
                let (given, expected) = rest.split_once("\n--\n").unwrap_or((&rest, ""));
                Self {
                    name: name.to_owned(),
                    given: given.trim_start_matches('\n').to_owned(),
                    expected: expected.trim_end_matches('\n').to_owned() + "\n",
                }
            })
            .collect()
    }

    fn lines(&self, prefix: &str) -> Vec<&str> {
        let lines = self.given.lines();
        lines.filter_map(|line| line.strip_prefix(prefix)).collect()
    }

    fn is(&self, kind: &str) -> bool {
        self.lines("@ ").contains(&kind)
    }

    /// Whether this machine can show the case: some let everybody listen on every port.
    fn is_possible(&self) -> bool {
        let first = fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start");
        let first = first.map_or(1024, |first| first.trim().parse().unwrap());
        !self.is("unprivileged") || first > 443
    }

    /// The whole configuration.
    fn yaml(&self) -> String {
        let is_yaml = |line: &&str| !line.starts_with("$ ") && !line.starts_with("@ ");
        let own: String = self
            .given
            .lines()
            .filter(is_yaml)
            .map(|line| format!("{line}\n"))
            .collect();
        let base = if self.is("raw") {
            return own;
        } else if self.is("production") {
            PRODUCTION
        } else {
            SANDBOX
        };
        let is_replaced = |line: &&str| {
            let (key, _) = line.split_once(':').unwrap();
            own.lines().any(|own| own.starts_with(&format!("{key}:")))
        };
        let rest = base.lines().filter(|line| !is_replaced(line));
        own.clone() + &rest.map(|line| format!("{line}\n")).collect::<String>()
    }
}

/// The ports of a case, and the process's own in their place, none of which may be one of a case: `free_address` begins at 20 000.
struct Ports(
    [(&'static str, u16); 3],
    /// Holds its port.
    TcpListener,
);

impl Ports {
    fn take() -> Self {
        let held = TcpListener::bind("127.0.0.1:0").unwrap();
        let ports = [
            ("11111", free_address().port()),
            ("12222", free_address().port()),
            ("13333", held.local_addr().unwrap().port()),
        ];
        Self(ports, held)
    }

    fn to_real(&self, text: &str) -> String {
        let replace =
            |text: String, (name, port): &(&str, u16)| text.replace(name, &port.to_string());
        self.0.iter().fold(text.to_owned(), replace)
    }

    fn to_names(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (name, port)| {
            named(&text, &port.to_string(), name)
        })
    }
}

/// The text with `name` for each `port` that is not a part of a longer number.
fn named(text: &str, port: &str, name: &str) -> String {
    let mut done = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(port) {
        done += before;
        let is_digit = |char: char| char.is_ascii_digit();
        let is_part = done.ends_with(is_digit) || after.starts_with(is_digit);
        done += if is_part { port } else { name };
        rest = after;
    }
    done + rest
}

/// A folder with a prepared configuration.
struct Site {
    folder: PathBuf,
    _whole: TempDir,
    ports: Ports,
    yaml: String,
    /// Begins the shell command that runs the program.
    run: &'static str,
}

impl Site {
    fn new(case: &Case) -> Self {
        let whole = tempfile::tempdir().unwrap();
        let site = Self {
            folder: whole.path().join("config"),
            _whole: whole,
            ports: Ports::take(),
            yaml: case.yaml(),
            run: match case.is("unprivileged") && is_root() {
                true => "exec setpriv --bounding-set=-net_bind_service -- \"$0\"",
                false => "exec \"$0\"",
            },
        };
        for (name, content) in TEMPLATE.iter() {
            let path = site.folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        }
        fs::write(
            site.folder.join("gateway.yaml"),
            site.ports.to_real(&site.yaml),
        )
        .unwrap();
        if case.is("ran") {
            let (errors, start) = site.serve(&[]);
            assert_eq!(start, Start::Serves, "{}: {errors}", case.name);
        }
        for command in case.lines("$ ") {
            let done = site.shell(&site.ports.to_real(command)).output().unwrap();
            assert!(done.status.success(), "{}: {command}: {done:?}", case.name);
        }
        site
    }

    fn shell(&self, command: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", command, env!("CARGO_BIN_EXE_portvakt")]);
        shell.current_dir(&self.folder);
        shell
    }

    fn portvakt(&self, arguments: &str) -> Command {
        self.shell(&format!(
            "ulimit -n {DESCRIPTORS}; {} {arguments} --config gateway.yaml",
            self.run
        ))
    }

    /// What `check` prints, and its status.
    fn check(&self, arguments: &str) -> (String, i32) {
        let Output {
            status,
            stdout,
            stderr,
        } = self
            .portvakt(&format!("check {arguments}"))
            .output()
            .unwrap();
        let text = [stderr, stdout]
            .map(|bytes| String::from_utf8(bytes).unwrap())
            .concat();
        (self.ports.to_names(&text), status.code().unwrap())
    }

    /// What `serve` prints to standard error until it serves or ends, and which of them it does. It is killed then.
    fn serve(&self, expected: &[&str]) -> (String, Start) {
        let mut child = self
            .portvakt("serve")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let errors = child.stderr.take().unwrap();
        let read = Arc::new(Mutex::new(String::new()));
        let reader = thread::spawn({
            let read = Arc::clone(&read);
            move || {
                for line in BufReader::new(errors).lines() {
                    let mut read = read.lock().unwrap();
                    read.push_str(&line.unwrap());
                    read.push('\n');
                }
            }
        });
        let mut program = Program(child);
        let mut start = Start::Hangs;
        happens(PATIENCE, || {
            if let Some(status) = program.0.try_wait().unwrap() {
                start = Start::Ends(status.code());
            } else if self.is_served_by(program.0.id()) {
                start = Start::Serves;
            }
            start != Start::Hangs
        });
        // It accepts connections before it has written its warnings. `run` reports those that do not come.
        happens(PATIENCE, || {
            let text = self.ports.to_names(&read.lock().unwrap());
            start != Start::Serves || expected.iter().all(|line| text.contains(line))
        });
        program.end();
        reader.join().unwrap();
        let text = self.ports.to_names(&read.lock().unwrap());
        (text, start)
    }

    /// Whether this process accepts connections. Its socket is bound before it has opened its state, so an accepted connection says
    /// nothing; what is no TLS is answered or closed by a gateway that serves. So is what meets the trial bind of a gateway that starts:
    /// what tells is an answer after the socket was found to be its own.
    fn is_served_by(&self, process: u32) -> bool {
        // The kernel writes its table of connections in milliseconds: that is asked of a listener that has answered.
        self.answers() && self.owns(process, self.listener().port()) && self.answers()
    }

    fn answers(&self) -> bool {
        let (address, short) = (self.listener(), Duration::from_millis(500));
        // An address of another machine may not answer at all.
        let Ok(mut connection) = TcpStream::connect_timeout(&address, short) else {
            return false;
        };
        connection.set_read_timeout(Some(short)).unwrap();
        let _ = connection.write_all(b"GET / HTTP/1.0\r\n\r\n");
        match connection.peek(&mut [0; 1]) {
            Ok(_) => true,
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        }
    }

    fn listener(&self) -> SocketAddr {
        let mut lines = self
            .yaml
            .lines()
            .skip_while(|line| !line.starts_with("listener:"));
        let line = lines
            .find(|line| line.contains("address: '"))
            .unwrap_or_default();
        let address = line
            .split("address: '")
            .nth(1)
            .and_then(|rest| rest.split('\'').next());
        let address = address.and_then(|text| self.ports.to_real(text).parse().ok());
        let mut address: SocketAddr = address.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 1)));
        if address.ip().is_unspecified() {
            address.set_ip([127, 0, 0, 1].into());
        }
        address
    }

    /// Whether the process listens on this port itself: a case may name a port that another one holds.
    fn owns(&self, process: u32, port: u16) -> bool {
        let Ok(open) = fs::read_dir(format!("/proc/{process}/fd")) else {
            return false;
        };
        let links = open.flatten();
        let links = links.filter_map(|entry| fs::read_link(entry.path()).ok());
        let links = links.filter_map(|link| link.into_os_string().into_string().ok());
        let sockets: Vec<_> = links.filter(|it| it.starts_with("socket:")).collect();
        if sockets.is_empty() {
            return false;
        }
        let tables = ["tcp", "tcp6"].map(|table| {
            fs::read_to_string(format!("/proc/{process}/net/{table}")).unwrap_or_default()
        });
        // Of thousands of lines, which take a while here, few are looked at.
        let port = format!(":{port:04X} ");
        let lines = tables.iter().flat_map(|table| table.lines());
        let mut listening = lines
            .filter(|line| line.contains(&port) && line.contains(" 0A "))
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .filter(|fields| fields.len() > 9 && fields[1].ends_with(port.trim_end()));
        listening.any(|fields| sockets.contains(&format!("socket:[{}]", fields[9])))
    }

    /// Every path in the folder, without the log of SQLite, which any reader may move into the file.
    fn listing(&self) -> Vec<PathBuf> {
        fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                found.push(entry.path());
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    walk(&entry.path(), found);
                }
            }
        }
        let mut found = Vec::new();
        walk(&self.folder, &mut found);
        found.retain(|path| {
            let name = path.to_string_lossy();
            !name.ends_with("-wal") && !name.ends_with("-shm")
        });
        found.sort();
        found
    }
}

fn is_root() -> bool {
    rustix::process::getuid().is_root()
}

/// The files of each site, by their paths.
static TEMPLATE: LazyLock<BTreeMap<&'static str, Vec<u8>>> = LazyLock::new(template);

/// The times of certificates, in Unix seconds.
const PAST: [i64; 2] = [1_500_000_000, 1_600_000_000];
const CURRENT: [i64; 2] = [1_600_000_000, 4_000_000_000];
const FUTURE: [i64; 2] = [3_900_000_000, 4_000_000_000];

fn elliptic() -> PKey<Private> {
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
    PKey::from_ec_key(EcKey::generate(&group).unwrap()).unwrap()
}

/// A certificate for this key, issued by the named key or by itself.
fn certificate(
    name: &str,
    key: &PKey<Private>,
    issuer: Option<(&X509, &PKey<Private>)>,
    [from, to]: [i64; 2],
) -> X509 {
    let mut subject = X509Name::builder().unwrap();
    subject.append_entry_by_nid(Nid::COMMONNAME, name).unwrap();
    let subject = subject.build();
    let mut builder = X509::builder().unwrap();
    builder.set_version(2).unwrap();
    let serial = BigNum::from_u32(1).unwrap().to_asn1_integer().unwrap();
    builder.set_serial_number(&serial).unwrap();
    builder.set_subject_name(&subject).unwrap();
    let issuer_name = issuer.map_or(&*subject, |(issuer, _)| issuer.subject_name());
    builder.set_issuer_name(issuer_name).unwrap();
    builder
        .set_not_before(&Asn1Time::from_unix(from).unwrap())
        .unwrap();
    builder
        .set_not_after(&Asn1Time::from_unix(to).unwrap())
        .unwrap();
    builder.set_pubkey(key).unwrap();
    let names = SubjectAlternativeName::new()
        .dns(name)
        .build(&builder.x509v3_context(None, None));
    builder.append_extension(names.unwrap()).unwrap();
    if name == "Root" {
        let of_ca = BasicConstraints::new().critical().ca().build().unwrap();
        builder.append_extension(of_ca).unwrap();
    }
    builder
        .sign(issuer.map_or(key, |(_, key)| key), MessageDigest::sha256())
        .unwrap();
    builder.build()
}

fn template() -> BTreeMap<&'static str, Vec<u8>> {
    let pem = |certificate: &X509| certificate.to_pem().unwrap();
    let key_pem = |key: &PKey<Private>| key.private_key_to_pem_pkcs8().unwrap();
    let (root_key, ca_key, key) = (elliptic(), elliptic(), elliptic());
    let root = certificate("Root", &root_key, None, CURRENT);
    let ca = certificate("CA", &ca_key, Some((&root, &root_key)), CURRENT);
    let leaf = |times| certificate("api.bank.example", &key, Some((&ca, &ca_key)), times);
    let server = leaf(CURRENT);
    let rsa = |bits| PKey::from_rsa(Rsa::generate(bits).unwrap()).unwrap();
    let (weak, strong) = (rsa(1024), rsa(2048));
    let old_root = certificate("Old", &elliptic(), None, PAST);
    let register = |changed: &str| {
        format!(
            "[[{{\"__EBA_Disclaimer\":[\"x\"]}}],[{{\"CA_OwnerID\":\"NO_FSA\",\"EntityCode\":\"NO_FSA!71\",\"EntityType\":\"PSD_PI\",\
             \"Properties\":[{{\"ENT_NAT_REF_COD\":\"987654321\"}},{{\"ENT_AUT\":[\"2019-01-01\"]}}],\
             \"Services\":[{{\"NO\":[\"PS_070\",\"PS_080\"]}}],\"__EBA_EntityVersion\":\"{changed}\"}}]]"
        )
        .into_bytes()
    };
    let today: String = Clock::System
        .now()
        .to_string()
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    let encrypted = key
        .private_key_to_pem_pkcs8_passphrase(Cipher::aes_256_cbc(), b"secret")
        .unwrap();
    let traditional = key.ec_key().unwrap();
    let traditional = traditional
        .private_key_to_pem_passphrase(Cipher::aes_256_cbc(), b"secret")
        .unwrap();
    let chain = |parts: &[&X509]| parts.iter().flat_map(|part| pem(part)).collect::<Vec<_>>();
    BTreeMap::from([
        ("server.pem", pem(&server)),
        ("server.key", key_pem(&key)),
        ("chain.pem", chain(&[&server, &ca, &root])),
        ("swapped.pem", chain(&[&ca, &server])),
        ("disorder.pem", chain(&[&server, &root, &ca])),
        ("expired.pem", pem(&leaf(PAST))),
        ("future.pem", pem(&leaf(FUTURE))),
        ("other.key", key_pem(&elliptic())),
        ("encrypted.key", encrypted),
        ("traditional.key", traditional),
        ("weak.pem", pem(&certificate("weak", &weak, None, CURRENT))),
        ("weak.key", key_pem(&weak)),
        (
            "encrypted-signer.key",
            strong
                .private_key_to_pem_pkcs8_passphrase(Cipher::aes_256_cbc(), b"secret")
                .unwrap(),
        ),
        (
            "signer.pem",
            pem(&certificate("signer", &strong, None, CURRENT)),
        ),
        (
            "signer-expired.pem",
            pem(&certificate("signer", &strong, None, PAST)),
        ),
        ("signer.key", key_pem(&strong)),
        ("anchors/root.pem", pem(&root)),
        ("old-anchors/old.pem", pem(&old_root)),
        ("mixed-anchors/old.pem", pem(&old_root)),
        ("mixed-anchors/root.pem", pem(&root)),
        ("intermediates/ca.pem", pem(&ca)),
        ("eba.json", register(&format!("{today}000"))),
        ("eba-old.json", register("20220428213506543")),
        ("eba-ahead.json", register("20930801212000000")),
        (
            "control.token",
            b"0123456789abcdef0123456789abcdef\n".to_vec(),
        ),
        (
            "metrics.token",
            b"fedcba9876543210fedcba9876543210\n".to_vec(),
        ),
        ("short.token", b"short\n".to_vec()),
        ("text", b"no certificate\n".to_vec()),
        (
            "token.keys",
            b"00000001 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n".to_vec(),
        ),
        ("hash.key", vec![7; 32]),
        (
            "local.yaml",
            b"allow:\n- {tpp: PSDNO-FSA-123456, roles: [PSP_AI]}\nblock: []\n".to_vec(),
        ),
        (
            "local-bad.yaml",
            b"allow:\n- {tpp: 123456, roles: [PSP_AI]}\n".to_vec(),
        ),
        ("operations.yaml", b"operations: []\n".to_vec()),
    ])
}

/// What both made of a site.
struct Judged {
    /// What `check` printed, and its status.
    printed: String,
    status: i32,
    /// What `serve` printed, and what became of it.
    errors: String,
    start: Start,
    /// In what they disagree.
    faults: Vec<String>,
}

/// Runs a site through both.
fn judge(site: &Site) -> Judged {
    let mut faults = Vec::new();
    let before = site.listing();
    let (printed, status) = site.check("");
    if site.listing() != before {
        let after = site.listing();
        faults.push(format!("check changed the folder: {before:?} to {after:?}"));
    }
    let expected: Vec<_> = printed
        .lines()
        .filter(|line| !NOT_LOGGED.iter().any(|part| line.contains(part)))
        .map(|line| line.strip_prefix("warning: ").unwrap_or(line))
        .collect();
    let (errors, start) = site.serve(&expected);
    let agrees = match start {
        Start::Serves => status == 0,
        Start::Ends(ended) => status != 0 && ended == Some(status),
        Start::Hangs => false,
    };
    if !agrees {
        faults.push(format!("check ends with {status}, serve: {start:?}"));
    }
    let missing = expected.iter().filter(|line| !errors.contains(**line));
    faults.extend(missing.map(|line| format!("serve does not print: {line}")));
    Judged {
        printed,
        status,
        errors,
        start,
        faults,
    }
}

/// Runs a case through both; returns what to expect after `--`, and all outputs of a case in which they disagree.
fn run(case: &Case) -> (String, Option<String>) {
    let Judged {
        printed,
        status,
        errors,
        start,
        mut faults,
    } = judge(&Site::new(case));
    let verdict = match start {
        Start::Serves => "serves",
        Start::Ends(_) => "refuses",
        Start::Hangs => "neither serves nor ends",
    };
    let printed = match case.name.as_str() {
        BASE => printed,
        _ => printed.replace(&*MEMORY_OF_BASE, AS_BASE),
    };
    let found = format!("{printed}status {status}; serve {verdict}\n");
    if !bless() && found != case.expected {
        faults.push(format!("expected of check:\n{}", case.expected));
    }
    let shown = || {
        let (name, faults) = (&case.name, faults.join("\n"));
        format!("== {name}\n{faults}\nserve printed:\n{errors}check printed:\n{found}")
    };
    let is_bad = !faults.is_empty();
    (found.clone(), is_bad.then(shown))
}

fn bless() -> bool {
    std::env::var_os("PORTVAKT_BLESS").is_some()
}

/// The case whose memory stands in full; the same line of other cases is [`AS_BASE`].
const BASE: &str = "the base";

const AS_BASE: &str = "(memory: as the base)\n";

/// The line of memory that `check` prints for the base.
static MEMORY_OF_BASE: LazyLock<String> = LazyLock::new(|| {
    let base = Case::of(BASE, "");
    let (printed, _) = Site::new(&base).check("");
    let line = printed
        .lines()
        .find(|line| line.contains(" MiB of memory: "));
    line.unwrap().to_owned() + "\n"
});

/// The lines of `check` that are no faults and no warnings.
const NOT_LOGGED: [&str; 3] = [": good (", " MiB of memory: ", "at most "];

/// Runs all cases, four at a time; returns the results in the order of the cases.
fn run_all<T: Send>(cases: &[Case], run: impl Fn(&Case) -> T + Sync) -> Vec<T> {
    let next = Mutex::new(cases.iter().enumerate());
    let done = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let Some((index, case)) = next.lock().unwrap().next() else {
                        break;
                    };
                    let result = run(case);
                    done.lock().unwrap().insert(index, result);
                }
            });
        }
    });
    done.into_inner().unwrap().into_values().collect()
}

#[test]
fn check_and_serve_agree_on_every_configuration() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/check");
    let (mut count, mut faults) = (0, Vec::new());
    for file in FILES {
        let path = folder.join(file).with_extension("txt");
        let cases = Case::all(&fs::read_to_string(&path).unwrap());
        count += cases.len();
        let (cases, impossible): (Vec<_>, Vec<_>) = cases
            .into_iter()
            .partition(|case| bless() || case.is_possible());
        for case in impossible {
            skipped(&format!("every port may be bound here: {}", case.name));
        }
        let mut blessed = String::new();
        for (case, (found, disagreement)) in cases.iter().zip(run_all(&cases, run)) {
            assert!(!found.contains(":secret"), "{}: {found}", case.name);
            faults.extend(disagreement.map(|shown| format!("{file} {shown}")));
            let gap = if case.given.is_empty() { "" } else { "\n" };
            blessed.push_str(&format!(
                "== {}\n{}{gap}--\n{found}\n",
                case.name, case.given
            ));
        }
        if bless() {
            fs::write(&path, blessed.trim_end_matches('\n').to_owned() + "\n").unwrap();
        }
    }
    assert!(
        faults.is_empty(),
        "{} of {count} cases\n{}",
        faults.len(),
        faults.join("\n")
    );
    assert!(count >= 90, "{count} cases");
}

#[test]
fn a_warning_fails_a_strict_check_only() {
    let case = |given: &str| Case::of("", given);
    let site = Site::new(&case("trust: {anchors: mixed-anchors}\n"));
    assert_eq!(site.check("").1, 0);
    let (printed, status) = site.check("--strict");
    assert!(printed.contains("warning: ") && status == 1, "{printed}");
    assert_eq!(Site::new(&case("")).check("--strict").1, 0);
}

#[test]
fn a_check_beside_a_running_gateway_does_not_bind() {
    let site = Site::new(&Case::of("", HELD));
    let (printed, status) = site.check("");
    assert!(printed.contains("--no-bind") && status == 1, "{printed}");
    assert_eq!(site.check("--no-bind").1, 0);
}

/// A socket unit holds the addresses before `ExecStartPre` runs: the unit of docs/operations.md must start then too.
#[test]
fn the_units_check_passes_while_systemd_holds_the_sockets() {
    let page = fs::read_to_string("docs/operations.md").unwrap();
    let lines = page.lines().filter_map(|line| {
        let arguments = line.trim().strip_prefix("ExecStartPre=portvakt check ")?;
        arguments.strip_suffix(" --config /etc/portvakt/gateway.yaml")
    });
    let arguments: Vec<_> = lines.collect();
    assert!(!arguments.is_empty());
    for arguments in arguments {
        let site = Site::new(&Case::of("", HELD));
        assert_eq!(site.check(arguments).1, 0, "{arguments}");
    }
}

/// A `check` with the sockets of systemd binds them as little as `serve` does.
#[test]
fn a_check_takes_the_sockets_that_it_is_started_with() {
    let site = Site::new(&Case::of("", HELD));
    let check = |script: &str| {
        let listening = site.ports.1.try_clone().unwrap();
        let mut shell = site.shell(&format!("{script} exec \"$0\" check --config gateway.yaml"));
        let mapping = FdMapping {
            parent_fd: listening.into(),
            child_fd: 3,
        };
        shell.fd_mappings(vec![mapping]).unwrap();
        shell.output().unwrap()
    };
    let done = check("export LISTEN_PID=$$ LISTEN_FDS=1;");
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    assert_eq!(check("").status.code(), Some(1));
}

/// The unit of docs/operations.md leaves a stop its longest time, and outlives an upgrade.
#[test]
fn the_unit_waits_for_the_end_of_a_stop() {
    let page = fs::read_to_string("docs/operations.md").unwrap();
    let site = Site::new(&Case::of("", HELD));
    let settings = Settings::load(&site.folder.join("gateway.yaml")).unwrap();
    let longest = gateway::longest_stop(&settings).as_secs();
    assert!(page.contains(&format!("a stop takes at most\n{longest} s by default")));
    let runbook = fs::read_to_string("dashboards/runbooks/process.md").unwrap();
    assert!(runbook.contains(&format!("it takes up to {longest} s by default")));
    let (_, unit) = page.split_once("    [Service]\n").unwrap();
    let (unit, _) = unit.split_once("    [Install]\n").unwrap();
    let value = |key: &str| {
        let mut lines = unit.lines().map(str::trim);
        lines.find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
    };
    assert!(value("TimeoutStopSec").unwrap().parse::<u64>().unwrap() > longest);
    assert_eq!(
        [value("Type"), value("NotifyAccess")],
        [Some("notify"), Some("all")]
    );
}

/// Each key that names a file with a secret, and the file.
const SECRETS: [(&str, &str); 15] = [
    ("listener.key", "server.key"),
    ("listener.ticket_keys", "tickets.keys"),
    ("listener.other_certificates[0].key", "second.key"),
    ("control.token_file", "control.token"),
    ("control.metrics_token_file", "metrics.token"),
    ("control.readiness_token_file", "readiness.token"),
    ("control.operate_token_file", "operate.token"),
    ("control.events_token_file", "events.token"),
    ("control.key", "control.key"),
    ("upstream.tls.key", "core.key"),
    ("assertion.key", "assertion.key"),
    ("assertion.previous", "previous.key"),
    ("response_signing.key", "signer.key"),
    ("sca.token_keys", "token.keys"),
    ("state.hash_key", "hash.key"),
];

/// A site with all of these as systemd shows its credentials: in a folder that the environment names, with mode 0440.
fn site_of_credentials() -> Site {
    let folder = "'${CREDENTIALS_DIRECTORY}";
    let site = Site::new(&Case::of(
        "",
        &format!(
            "listener:\n  address: '127.0.0.1:11111'\n  max_connections: 1000\n  certificate: server.pem\n  key: {folder}/server.key'\n\
             \x20 ticket_keys: {folder}/tickets.keys'\n  other_certificates: [{{certificate: server.pem, key: {folder}/second.key'}}]\n\
             control: {{address: '127.0.0.1:12222', token_file: {folder}/control.token', metrics_token_file: {folder}/metrics.token', \
             readiness_token_file: {folder}/readiness.token', operate_token_file: {folder}/operate.token', events_token_file: {folder}/events.token', \
             certificate: server.pem, key: {folder}/control.key', client_ca: anchors/root.pem}}\n\
             upstream: {{address: '127.0.0.1:9', tls: {{ca: anchors/root.pem, name: core, certificate: server.pem, key: {folder}/core.key'}}}}\n\
             assertion: {{key: {folder}/assertion.key', previous: {folder}/previous.key'}}\n\
             response_signing: {{certificate: signer.pem, key: {folder}/signer.key'}}\n\
             sca: {{page: 'https://bank.example/sca', token_keys: {folder}/token.keys', token_seals: state/seals}}\n\
             state: {{file: state/portvakt.db, hash_key: {folder}/hash.key'}}\n"
        ),
    ));
    let mut made = site.shell(
        "mkdir credentials && mv server.key control.token metrics.token signer.key token.keys hash.key credentials && cd credentials && \
         for key in second control core; do cp server.key $key.key; done && cp token.keys tickets.keys && cp ../other.key assertion.key && \
         openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out previous.key && \
         printf abcdef0123456789abcdef0123456789 > readiness.token && \
         printf 0f1e2d3c4b5a69788796a5b4c3d2e1f0 > operate.token && \
         printf 1f1e2d3c4b5a69788796a5b4c3d2e1f0 > events.token && chmod 0440 *",
    );
    assert!(made.status().unwrap().success());
    site
}

/// Kubernetes and systemd bring secrets as files that the gateway's group may read, and systemd names their folder in the environment.
#[test]
fn every_secret_may_be_a_credential() {
    let site = site_of_credentials();
    let check = |folder: &str| {
        let mut program = site.portvakt("check --no-bind");
        let done = program.env("CREDENTIALS_DIRECTORY", folder).output();
        let done = done.unwrap();
        let printed = String::from_utf8(done.stderr).unwrap();
        (printed, done.status.code().unwrap())
    };
    assert_eq!(check("credentials"), (String::new(), 0));
    let (printed, status) = check("");
    assert_eq!(
        (printed.lines().count(), status),
        (SECRETS.len(), 2),
        "{printed}"
    );
    for (key, file) in SECRETS {
        let missing = format!(
            " {key}: the environment variable \"CREDENTIALS_DIRECTORY\" is not set, or is empty\n"
        );
        assert!(printed.contains(&missing), "{key}: {printed}");
        let path = site.folder.join("credentials").join(file);
        let set = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        // Kubernetes' default.
        set(0o644);
        let (printed, status) = check("credentials");
        let is_refused = printed.contains(&format!(" {key}: ")) && printed.contains("644");
        assert!(is_refused && status == 2, "{key}: {printed}");
        set(0o400);
        assert_eq!(check("credentials").1, 0, "{key}");
        set(0o440);
    }
}

/// Sources of revocation with https are verified by the system's CA certificates, which a small image may lack.
#[test]
fn missing_ca_certificates_are_named_with_the_cure() {
    let site = Site::new(&Case::of("", "revocation: {check: on}\n"));
    let empty = site.folder.join("empty.pem");
    fs::write(&empty, "").unwrap();
    let mut program = site.portvakt("check --no-bind");
    program.env_remove("SSL_CERT_DIR");
    let done = program.env("SSL_CERT_FILE", &empty).output().unwrap();
    let printed = String::from_utf8(done.stderr).unwrap();
    for part in [
        "No CA certificates",
        "package ca-certificates",
        "SSL_CERT_FILE",
    ] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    assert!(!done.status.success());
}
