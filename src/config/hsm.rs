//! A key in an HSM: `pkcs11`, in place of the path of a key's file.
//!
//! Invariants: the token has signed with the key, and the signature verifies by the certificate; the keys of a token have one PIN.
//! Deliberately not here: the assertion's key, which is a file, since each request needs a signature of it.

use super::secret::Secret;
use super::section::Section;
use super::value::Value;
use crate::hsm::{self, Part, Pin, Pkcs11Settings, Purpose};
use openssl::x509::X509;
use rustls::sign::SigningKey;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The most sessions of a key.
const MOST_SESSIONS: usize = 64;

/// The default number of sessions.
const SESSIONS: usize = 8;

/// The default timeout of a call.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The bounds of the timeout. pingora's handshake has a limit of its own.
const TIMEOUTS: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(10);

/// A key in an HSM, as it is written: its faults belong to the keys of its section.
pub(super) struct WrittenKey<'a> {
    settings: Pkcs11Settings,
    section: Section<'a>,
}

/// A key in use.
#[derive(Clone, Copy)]
pub(super) struct KeyInHsm {
    /// The number of its use, which changes with its settings.
    pub(super) id: u64,
    /// The most signatures at the same time.
    pub(super) sessions: usize,
}

/// Reads `{pkcs11: {...}}`. `None` after a fault.
pub(super) fn read<'a>(key: &Value<'a>, base: &Path) -> Option<WrittenKey<'a>> {
    let mut outer = key.as_section();
    let mut section = outer.section("pkcs11");
    outer.finish();
    let module = section
        .required("module")
        .and_then(|value| value.path(base));
    let token = section.required("token").and_then(|value| value.as_str());
    let label = section.required("label").and_then(|value| value.as_str());
    let pin = pin(&mut section, base);
    let sessions = section.optional("sessions");
    let sessions = sessions.and_then(|value| value.integer(1..=MOST_SESSIONS));
    let timeout = section.optional("timeout");
    let timeout = timeout.and_then(|value| value.duration(TIMEOUTS));
    section.finish();
    Some(WrittenKey {
        settings: Pkcs11Settings {
            module: module?,
            token: token?.to_owned(),
            label: label?.to_owned(),
            pin: pin?,
            sessions: sessions.unwrap_or(SESSIONS),
            timeout: timeout.unwrap_or(TIMEOUT),
        },
        section,
    })
}

/// Refuses a key in an HSM where only a file is taken. True if it is one.
pub(super) fn refuse(key: &Value<'_>, text: &str) -> bool {
    if key.is_mapping() {
        key.fault(text);
    }
    key.is_mapping()
}

impl WrittenKey<'_> {
    /// The key, which is that of the certificate. `None` after a fault.
    pub(super) fn open(
        &self,
        certificate: &X509,
        purpose: Purpose,
    ) -> Option<(Arc<dyn SigningKey>, KeyInHsm)> {
        let Pkcs11Settings {
            module, token, pin, ..
        } = &self.settings;
        if !self.section.inspection.is_pin_of(module, token, pin) {
            let text = "another key of this token has another PIN, and a token has one login for the process: give both the same";
            self.section.fault(key_of_pin(&self.section), text);
            return None;
        }
        let opened = hsm::open(&self.settings, certificate, purpose);
        let fault = |fault: hsm::LoadFault| {
            let key = match fault.part {
                Part::Module => "module",
                Part::Token => "token",
                Part::Pin => key_of_pin(&self.section),
                Part::Label => "label",
            };
            self.section.fault(key, fault.text);
        };
        let (key, id) = opened.map_err(fault).ok()?;
        let sessions = self.settings.sessions;
        Some((key, KeyInHsm { id, sessions }))
    }
}

/// The key that names the PIN.
fn key_of_pin(section: &Section<'_>) -> &'static str {
    match section.has_entry("pin_file") {
        true => "pin_file",
        false => "pin",
    }
}

fn is_no_part_of_a_pin(character: char) -> bool {
    character.is_control() || character == '\u{feff}'
}

fn pin(section: &mut Section<'_>, base: &Path) -> Option<Pin> {
    let (held, file) = (section.optional("pin"), section.optional("pin_file"));
    let secret = match (held, file) {
        (Some(held), None) => held.secret()?,
        (None, Some(file)) => {
            let path = file.secret_path(base)?;
            let read = Secret::read(&path);
            let unreadable =
                |fault| file.fault(format!("{} cannot be read: {fault}", path.display()));
            read.map_err(unreadable).ok()?
        }
        (Some(_), Some(_)) => {
            let text = "pin and pin_file exclude each other; leave one of them out";
            section.fault("pin", text);
            return None;
        }
        (None, None) => {
            let text = "missing key; set pin to ${NAME}, an environment variable, or pin_file";
            section.fault("pin", text);
            return None;
        }
    };
    // A token counts each try, so what nobody meant as a PIN is not tried.
    let is_meant = |text: &&str| !text.is_empty() && !text.contains(is_no_part_of_a_pin);
    let text = secret.text().filter(is_meant);
    if text.is_none() {
        let text = "the PIN is empty, not UTF-8, or has a control character or a byte order mark: write the PIN and at most one newline";
        section.fault(key_of_pin(section), text);
    }
    text.map(Pin::new)
}
