//! The roles of client certificates at the control listener, by their DNS names: `control.clients`.
//!
//! Invariant: a certificate without a listed name has no role. Deliberately not here: verifying certificates, which TLS does.

use super::authority::{Authority, Host};
use super::value::Value;

/// What a credential of the control listener opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlRole {
    /// The bank's calls, reloads, and all other paths with access control.
    Calls,
    /// /metrics.
    Metrics,
    /// /readyz.
    Readiness,
    /// The calls of the bank's operators: on TPPs (CTL-2), and on the running gateway.
    Operate,
    /// The stream of events (CTL-3).
    Events,
}

/// The DNS names of the client certificates with each role, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientRoles {
    calls: Vec<String>,
    metrics: Vec<String>,
    /// `None`: every certificate has this role.
    readiness: Option<Vec<String>>,
    /// Nobody, unless they are listed.
    operate: Vec<String>,
    /// Nobody, unless they are listed.
    events: Vec<String>,
}

impl ClientRoles {
    /// Reads the section. `None` only after a fault.
    pub(super) fn read(value: &Value<'_>) -> Option<Self> {
        let mut section = value.as_section();
        let calls = section.required("calls").and_then(|value| names(&value));
        let metrics = match section.optional("metrics") {
            Some(value) => names(&value),
            None => calls.clone(),
        };
        let readiness = section.optional("readiness").map(|value| names(&value));
        let operate = section.optional("operate").map(|value| names(&value));
        let events = section.optional("events").map(|value| names(&value));
        section.finish();
        Some(Self {
            calls: calls?,
            metrics: metrics?,
            operate: operate.unwrap_or_else(|| Some(Vec::new()))?,
            events: events.unwrap_or_else(|| Some(Vec::new()))?,
            readiness: match readiness {
                Some(names) => Some(names?),
                None => None,
            },
        })
    }

    /// Whether /readyz requires a role.
    pub const fn guard_readiness(&self) -> bool {
        self.readiness.is_some()
    }

    /// Whether a certificate with these DNS names, in lower case, has a role.
    pub fn permit(&self, role: ControlRole, names: &[String]) -> bool {
        let listed = match role {
            ControlRole::Calls => Some(&self.calls),
            ControlRole::Metrics => Some(&self.metrics),
            ControlRole::Readiness => self.readiness.as_ref(),
            ControlRole::Operate => Some(&self.operate),
            ControlRole::Events => Some(&self.events),
        };
        listed.is_none_or(|listed| names.iter().any(|name| listed.contains(name)))
    }

    /// The first of these DNS names, in lower case, that reads events: the name of a consumer.
    pub fn consumer<'a>(&self, names: &'a [String]) -> Option<&'a str> {
        let found = names.iter().find(|name| self.events.contains(name));
        found.map(String::as_str)
    }
}

fn names(value: &Value<'_>) -> Option<Vec<String>> {
    let name = |value: &Value<'_>| match Authority::parse(value.as_str()?) {
        Some(Authority {
            host: Host::Name(name),
            port: None,
        }) => Some(name),
        _ => value.refuse("a DNS name in a client certificate, such as sca.bank.internal"),
    };
    value.as_list()?.iter().map(name).collect()
}
