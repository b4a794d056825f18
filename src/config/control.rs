//! The section `control`: the address of the control listener, and the authentication of its callers.
//!
//! Invariant: a listener that other machines can reach requires a bearer token or a client certificate. In production so does a
//! listener on loopback, which every program and browser of the machine can reach. A configuration without them is refused at
//! start. Deliberately not here: binding, and comparing tokens.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::sign::SingleCertAndKey;
use rustls::{RootCertStore, ServerConfig, server::WebPkiClientVerifier};
use sha2::{Digest, Sha256};

use super::authority::Authority;
use super::control_clients::ClientRoles;
use super::endpoints::meet;
use super::identity::{identity, warn_of_all};
use super::pem;
use super::secret::Secret;
use super::section::Section;
use super::value::Value;
use crate::expiring::Expiring;
use crate::interface::operations::Environment;

/// The fewest characters of a bearer token: 16 random bytes in hexadecimal.
const LEAST_TOKEN: usize = 32;

/// The longest path of a Unix socket, in bytes (unix(7): 108 with the NUL that ends it).
const MAX_SOCKET_PATH: usize = 107;

/// The consequence of CAs of callers that have ended.
const REFUSED: &str = ": every caller of the control listener is refused";

/// The credentials that restrict access, as faults name them.
const GUARDS: &str = "token_file, or certificate, key and client_ca";

/// The access rules of the control listener.
#[derive(Clone, Debug, Default)]
pub struct ControlAccess {
    /// The bearer token of callers; `None` if the address or a certificate restricts access.
    pub token: Option<Secret>,
    /// A bearer token for /metrics only; `None` if `token` is required there too.
    pub metrics_token: Option<Secret>,
    /// A bearer token for /readyz only; `None` if it is open.
    pub readiness_token: Option<Secret>,
    /// The bearer token of /tpp/ calls, which opens nothing else; `None` if no token opens them (CTL-2).
    pub operate_token: Option<Secret>,
    /// The bearer token of `/events`, which opens nothing else; `None` if no token opens it (CTL-3).
    pub events_token: Option<Secret>,
    /// The accepted hosts; `None` for the listener's own address and localhost.
    pub hosts: Option<Vec<Authority>>,
    /// TLS; `None` for plain HTTP.
    pub tls: Option<ControlTls>,
}

/// TLS of the control listener.
#[derive(Clone, Debug)]
pub struct ControlTls {
    /// The certificate and key, with the CAs of callers if `client_ca` is set.
    pub config: Arc<ServerConfig>,
    /// The CAs of callers, who must then present a certificate; `None` if client certificates are off.
    pub client_ca: Option<ClientCa>,
    /// The roles of client certificates; `None` if each has all of them.
    pub clients: Option<ClientRoles>,
}

/// Identifies the CAs of `control.client_ca`, to compare two configurations: SHA-256 of their certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientCa([u8; 32]);

/// The address of the control listener. Default 127.0.0.1:9100.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlAddress {
    /// A TCP address.
    Tcp(SocketAddr),
    /// A Unix socket that only its owner can use (mode 0600).
    Unix(PathBuf),
}

impl ControlAddress {
    /// The TCP address, unless the listener is a socket.
    pub const fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }
}

impl fmt::Display for ControlAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(formatter),
            Self::Unix(path) => path.display().fmt(formatter),
        }
    }
}

/// Reads the section, which is optional: the listener's address and its access rules. `listener` is the public listener's
/// address.
pub(super) fn read(
    root: &mut Section<'_>,
    environment: Environment,
    listener: Option<SocketAddr>,
    base: &Path,
) -> Option<(ControlAddress, ControlAccess)> {
    let Some(mut section) = root.optional_section("control") else {
        let address = default_address();
        if let Some(fault) = taken(listener, address) {
            root.fault("control", fault);
        }
        if let Some(fault) = open(environment, address) {
            root.fault("control", fault);
        }
        return Some((ControlAddress::Tcp(address), ControlAccess::default()));
    };
    let address = address(&mut section, listener, base);
    let guarded = ["token", "token_file", "client_ca"].map(|key| section.has(key)) != [false; 3];
    let token = token(&mut section, ["token", "token_file"], base);
    let metrics = ["metrics_token", "metrics_token_file"];
    let metrics_token = own_token(&mut section, metrics, &[&token], base);
    let readiness = ["readiness_token", "readiness_token_file"];
    let readiness_token = own_token(&mut section, readiness, &[&token, &metrics_token], base);
    let operate = ["operate_token", "operate_token_file"];
    let others = [&token, &metrics_token, &readiness_token];
    let operate_token = own_token(&mut section, operate, &others, base);
    let events = ["events_token", "events_token_file"];
    let others = [&token, &metrics_token, &readiness_token, &operate_token];
    let events_token = own_token(&mut section, events, &others, base);
    let hosts = section.optional("hosts").and_then(|value| hosts(&value));
    let encrypts = ["certificate", "key", "client_ca"].map(|key| section.has(key)) != [false; 3];
    let mut tls = encrypts.then(|| tls(&mut section, base)).flatten();
    if let Some(value) = section.optional("clients") {
        if !section.has("client_ca") {
            value.fault("roles are those of client certificates; set client_ca too");
        }
        let clients = ClientRoles::read(&value);
        if let Some(tls) = &mut tls {
            tls.clients = clients;
        }
    }
    match &address {
        Some(ControlAddress::Tcp(address)) if !guarded => {
            if let Some(fault) = open(environment, *address) {
                section.fault("address", fault);
            }
        }
        Some(ControlAddress::Unix(_)) if encrypts => section.fault(
            "certificate",
            "a Unix socket has no TLS; leave out certificate, key and client_ca",
        ),
        _ => {}
    }
    if let Some(ControlAddress::Tcp(address)) = &address
        && !address.ip().is_loopback()
        && !encrypts
    {
        let text = "tokens and PSU-IDs cross the network in clear; set certificate and key";
        section.weakens("address", text);
    }
    if section.has("client_ca") && !section.has("clients") {
        let text = "every certificate that this CA issues opens /sca, /psu and /reload; list the callers in clients";
        section.weakens("client_ca", text);
    }
    section.finish();
    let access = ControlAccess {
        token,
        metrics_token,
        readiness_token,
        operate_token,
        events_token,
        hosts,
        tls,
    };
    Some((address?, access))
}

fn default_address() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 9_100))
}

fn address(
    section: &mut Section<'_>,
    listener: Option<SocketAddr>,
    base: &Path,
) -> Option<ControlAddress> {
    let value = section.optional("address");
    let socket = section.optional("socket");
    if let (Some(_), Some(socket)) = (&value, &socket) {
        socket.fault("address and socket exclude each other; leave one of them out");
        return None;
    }
    if let Some(socket) = socket {
        let path = socket.path(base)?;
        if path.as_os_str().len() > MAX_SOCKET_PATH {
            return socket.refuse(&format!("a path of at most {MAX_SOCKET_PATH} bytes"));
        }
        return Some(ControlAddress::Unix(path));
    }
    let Some(value) = value else {
        let address = default_address();
        if let Some(fault) = taken(listener, address) {
            section.fault("address", fault);
        }
        return Some(ControlAddress::Tcp(address));
    };
    let address = value.socket_address("an IP address and a port, such as 127.0.0.1:9100")?;
    if let Some(fault) = taken(listener, address) {
        value.fault(fault);
    }
    Some(ControlAddress::Tcp(address))
}

/// The reason to refuse an address without credentials; `None` if it is allowed.
fn open(environment: Environment, address: SocketAddr) -> Option<String> {
    if !address.ip().is_loopback() {
        return Some(format!(
            "{address} can be reached from other machines without a credential; use 127.0.0.1 or [::1], or set {GUARDS}"
        ));
    }
    (environment == Environment::Production).then(|| format!(
        "{address} can be reached by every program and browser of this machine, and production requires a credential; set {GUARDS}, or socket in place of address"
    ))
}

/// The hosts that the control listener accepts.
fn hosts(value: &Value<'_>) -> Option<Vec<Authority>> {
    let listed = value.as_list()?;
    if listed.is_empty() {
        value.fault("expected at least one host; leave the key out to accept the listener's own address and localhost");
        return None;
    }
    let host = |value: &Value<'_>| {
        let found = Authority::parse(value.as_str()?);
        found.or_else(|| {
            value.refuse("a host with or without a port, such as gateway.internal or 10.0.0.7:9100")
        })
    };
    listed.iter().map(host).collect()
}

/// A bearer token for one path. It differs from all `others`: each token has the rights of one caller.
fn own_token(
    section: &mut Section<'_>,
    keys: [&'static str; 2],
    others: &[&Option<Secret>],
    base: &Path,
) -> Option<Secret> {
    let own = token(section, keys, base)?;
    let mut others = others.iter().copied().flatten();
    if others.any(|other| other.text() == own.text()) {
        let [inline, file] = keys;
        let key = if section.has(inline) { inline } else { file };
        section.fault(
            key,
            "it is the token of another key, with other rights; use another token, or leave the key out",
        );
        return None;
    }
    Some(own)
}

fn taken(listener: Option<SocketAddr>, address: SocketAddr) -> Option<String> {
    let listener = listener.filter(|listener| meet(*listener, address))?;
    Some(format!(
        "{address} is the address of the listener ({listener})"
    ))
}

/// Reads a bearer token: from an environment variable by the first key, or from a file that contains nothing else by the second.
fn token(
    section: &mut Section<'_>,
    [inline, file]: [&'static str; 2],
    base: &Path,
) -> Option<Secret> {
    let (held, named) = (section.optional(inline), section.optional(file));
    if let (Some(held), Some(_)) = (&held, &named) {
        held.fault(format!(
            "{inline} and {file} exclude each other; leave one of them out"
        ));
        return None;
    }
    let (value, shown, secret) = match held {
        Some(value) => {
            let secret = value.secret()?;
            (value, "the environment variable".to_owned(), secret)
        }
        None => {
            let value = named?;
            let path = value.secret_path(base)?;
            let shown = path.display().to_string();
            let secret = Secret::read(&path);
            let secret =
                secret.map_err(|error| value.fault(format!("{shown} cannot be read: {error}")));
            (value, shown, secret.ok()?)
        }
    };
    if secret.text().is_some_and(is_token) {
        return Some(secret);
    }
    value.fault(format!(
        "{shown} holds no bearer token; expected one line of at least {LEAST_TOKEN} letters, digits and -._~+/, as \"openssl rand -hex 32\" gives it"
    ));
    None
}

/// RFC 6750, section 2.1.
fn is_token(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let mut bytes = body.bytes();
    text.len() >= LEAST_TOKEN
        && !body.is_empty()
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte))
}

/// TLS with the listener's certificate, and with the callers' CAs if `client_ca` is set. `None` only after a fault.
fn tls(section: &mut Section<'_>, base: &Path) -> Option<ControlTls> {
    let identity = identity(section, base, Expiring::Control, None);
    let identity = identity.map(|identity| identity.certified);
    let roots = section
        .optional("client_ca")
        .map(|value| client_roots(&value, base));
    let provider = Arc::new(pem::provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .ok()?;
    let (builder, client_ca) = match roots {
        None => (builder.with_no_client_auth(), None),
        Some(roots) => {
            let (roots, client_ca) = roots?;
            let roots = Arc::new(roots);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
            let refused = |error| {
                section.fault(
                    "client_ca",
                    format!("it cannot verify client certificates: {error}"),
                );
            };
            let verifier = verifier.map_err(refused).ok()?;
            let builder = builder.with_client_cert_verifier(verifier);
            (builder, Some(client_ca))
        }
    };
    let identity = SingleCertAndKey::from(Arc::unwrap_or_clone(identity?));
    let mut config = builder.with_cert_resolver(Arc::new(identity));
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Some(ControlTls {
        config: Arc::new(config),
        client_ca,
        clients: None,
    })
}

/// Reads the CAs that issue certificates to callers.
fn client_roots(value: &Value<'_>, base: &Path) -> Option<(RootCertStore, ClientCa)> {
    let path = value.path(base)?;
    let found = pem::certificates(&path);
    let found = found.map_err(|text| value.fault(text)).ok()?;
    warn_of_all(
        value,
        Expiring::ControlCa,
        path.display().to_string(),
        &found,
        REFUSED,
    );
    let mut roots = RootCertStore::empty();
    let mut hash = Sha256::new();
    for certificate in found {
        let der = certificate.to_der().map_err(|error| pem::reason(&error));
        let added = der.and_then(|der| {
            hash.update(&der);
            roots.add(der.into()).map_err(|error| error.to_string())
        });
        if let Err(error) = added {
            value.fault(format!("it contains an unusable certificate: {error}"));
            return None;
        }
    }
    Some((roots, ClientCa(hash.finalize().into())))
}
