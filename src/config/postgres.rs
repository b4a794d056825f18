//! The section `state.postgres`: the database that several gateways share.
//!
//! Invariant: no password stands in the configuration, and a database on another machine is reached with TLS only. Deliberately not here:
//! connecting, which the store does at start.

use super::identity::{warn, warn_of_all};
use super::pem;
use super::section::Section;
use super::value::Value;
use crate::expiring::Expiring;
use crate::private_file::{self, FileFault};
use crate::state::{PostgresSettings, PostgresTls, StaleReads};
use std::{
    net::IpAddr,
    path::{Path, PathBuf},
};
use tokio_postgres::config::{Config, Host, SslMode};

/// The maximum number of hosts. All of them are tried at once.
const MOST_HOSTS: usize = 8;

/// The maximum number of connections that write.
const MOST_CONNECTIONS: usize = 64;

/// The consequence of CAs that are all invalid.
const REFUSED: &str = ": every connection to the database is refused";

/// Reads the section. `None` without it, or after a fault.
pub(super) fn read(state: &mut Section<'_>, base: &Path) -> Option<PostgresSettings> {
    let mut section = state.optional_section("postgres")?;
    let url = section.required("url").and_then(|value| value.as_str());
    let server = url.and_then(|url| server(url).map_err(|text| section.fault("url", text)).ok());
    let (held, file) = (
        section.optional("password"),
        section.optional("password_file"),
    );
    if held.is_some() && file.is_some() {
        let text = "password and password_file exclude each other; leave one of them out";
        section.fault("password", text);
    }
    let tls = tls(&mut section, base);
    let mut settings = PostgresSettings::new(server.clone().unwrap_or_default());
    if let Some(password) = held.and_then(|value| value.secret()) {
        settings.server.password(password.bytes());
    }
    settings.password = file.and_then(|value| secret(&value, base));
    if let Some(server) = &server
        && tls.is_none()
        && !server.get_hosts().iter().all(is_on_this_machine)
    {
        section.fault(
            "tls",
            "a database on another machine is reached with TLS; expected {ca: FILE}",
        );
    }
    settings.tls = tls;
    let pool = section.optional("pool");
    if let Some(pool) = pool.and_then(|value| value.integer(1..=MOST_CONNECTIONS)) {
        settings.pool = pool;
    }
    let require_sync = section.optional("require_sync");
    if let Some(require_sync) = require_sync.and_then(|value| value.boolean()) {
        settings.require_sync = require_sync;
    }
    let reads = section.optional("reads").and_then(|value| {
        value.one_of(&[("fresh", StaleReads::Refuse), ("memory", StaleReads::Allow)])
    });
    settings.reads = reads.unwrap_or(settings.reads);
    section.finish();
    server.map(|_| settings)
}

/// The hosts, the user and the database of a URL. The texts of faults never repeat the URL, which may hold a password by mistake.
fn server(url: &str) -> Result<Config, String> {
    let expected =
        "expected postgres://USER@HOST,HOST:PORT/DATABASE, or ?host=/FOLDER for a Unix socket";
    let server: Config = url.parse().map_err(|_| format!("no URL; {expected}"))?;
    if server.get_password().is_some() {
        return Err(
            "the URL has a password; put it into a file and name that in password_file".to_owned(),
        );
    }
    if server.get_ssl_mode() != SslMode::Prefer {
        return Err("sslmode is not used; set tls".to_owned());
    }
    let hosts = server.get_hosts();
    if hosts.is_empty() || hosts.len() > MOST_HOSTS || !server.get_hostaddrs().is_empty() {
        return Err(format!("from 1 to {MOST_HOSTS} hosts; {expected}"));
    }
    if server.get_user().is_none() || server.get_dbname().is_none() {
        return Err(format!("no user or no database; {expected}"));
    }
    Ok(server)
}

/// TLS by its files; `None` without the key, for `off`, or after a fault.
fn tls(section: &mut Section<'_>, base: &Path) -> Option<PostgresTls> {
    let value = section.optional("tls")?;
    if value.is("off") {
        return None;
    }
    let mut tls = value.as_section();
    let ca = tls.required("ca").and_then(|value| {
        let path = value.path(base)?;
        // A file that cannot be read is a fault of the start, which opens the state.
        if let Ok(found) = pem::certificates(&path) {
            let shown = path.display().to_string();
            warn_of_all(&value, Expiring::StateCa, shown, &found, REFUSED);
        }
        Some(path)
    });
    let certificate = tls.optional("certificate").and_then(|value| {
        let path = value.path(base)?;
        if let Ok(found) = pem::certificates(&path) {
            warn(&value, &path, &found, Expiring::State);
        }
        Some(path)
    });
    let key = tls.optional("key").and_then(|value| secret(&value, base));
    if certificate.is_some() != key.is_some() {
        tls.fault("certificate", "certificate and key belong together");
    }
    tls.finish();
    Some(PostgresTls {
        ca: ca?,
        identity: certificate.zip(key),
    })
}

/// The path of a secret that each connection reads. Whether it is there, the start says, which opens the state.
fn secret(value: &Value<'_>, base: &Path) -> Option<PathBuf> {
    let path = value.secret_path(base)?;
    if let Err(fault @ FileFault::Open(_)) = private_file::read(&path, 0) {
        value.fault(format!("{}: {fault}", path.display()));
    }
    Some(path)
}

fn is_on_this_machine(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost" || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_hosts_user_and_database_and_no_password() {
        for (url, fault) in [
            ("postgres://portvakt@db1,db2:5433/portvakt", None),
            ("postgres://portvakt@/portvakt?host=/run/postgresql", None),
            (
                "postgres://portvakt:secret@db1/portvakt",
                Some("password_file"),
            ),
            (
                "postgres://portvakt@db1/portvakt?sslmode=disable",
                Some("set tls"),
            ),
            ("postgres://db1/portvakt", Some("no user")),
            ("postgres://portvakt@db1", Some("no database")),
            ("postgres:///portvakt?user=portvakt", Some("hosts")),
            (
                "postgres://portvakt@db1/portvakt?nonsense=1",
                Some("no URL"),
            ),
        ] {
            match (server(url), fault) {
                (Ok(_), None) => {}
                (Err(text), Some(part)) => {
                    assert!(
                        text.contains(part) && !text.contains("secret"),
                        "{url}: {text}"
                    );
                }
                (other, _) => panic!("{url}: {:?}", other.map(drop)),
            }
        }
    }

    #[test]
    fn only_this_machine_needs_no_tls() {
        for (url, local) in [
            ("postgres://u@localhost,127.0.0.1/d", true),
            ("postgres://u@/d?host=/run", true),
            ("postgres://u@db/d", false),
            ("postgres://u@localhost,10.0.0.7/d", false),
        ] {
            let hosts = server(url).unwrap();
            assert_eq!(
                hosts.get_hosts().iter().all(is_on_this_machine),
                local,
                "{url}"
            );
        }
    }
}
