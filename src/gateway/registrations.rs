//! What a reload of the registers takes from TPPs that call (CRT-14).
//!
//! A reload compares the registers before and after, for the TPPs whose signature verified in the last 30 days: each that lost a role is an
//! event in the log and in the audit, and counted. Deliberately not here: blocks, which the bank makes itself, and the age of registers,
//! which has metrics of its own.

use crate::{
    audit::AuditKind,
    clock::Clock,
    control::Observations,
    interface::TppId,
    seen::SeenEvent,
    state::NewEvent,
    telemetry::{RegistrationEvent, Telemetry},
    trust::{Registers, Roles, register::Registration},
};
use std::sync::Arc;

/// What is told of each event of a TPP.
#[derive(Clone, Debug)]
pub(super) struct Tellers {
    /// The metrics, and the audit.
    pub(super) telemetry: Arc<Telemetry>,
    /// The events for the bank's services.
    pub(super) observations: Arc<Observations>,
}

impl Tellers {
    /// The tellers of a gateway with this clock.
    pub(super) fn new(telemetry: &Arc<Telemetry>, clock: &Clock) -> Self {
        Self {
            telemetry: Arc::clone(telemetry),
            observations: Arc::new(Observations::new(clock.clone(), Arc::clone(telemetry))),
        }
    }
}

/// The TPPs that one reload names: a truncated file takes the roles of all.
const NAMED: usize = 100;

/// What a TPP lost.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Loss {
    tpp: TppId,
    roles: Roles,
    left: Roles,
    event: RegistrationEvent,
    why: String,
}

/// The losses of these TPPs by a reload; none where registers are not checked before or after it.
pub(super) fn losses(
    before: Option<&Registers>,
    after: Option<&Registers>,
    tpps: impl IntoIterator<Item = TppId>,
) -> Vec<Loss> {
    let (Some(before), Some(after)) = (before, after) else {
        return Vec::new();
    };
    let lost = tpps.into_iter().filter_map(|tpp| {
        let (had, has) = (before.find(&tpp).roles(), after.find(&tpp));
        let roles = had.without(has.roles());
        let event = if has.roles().is_empty() {
            RegistrationEvent::AuthorisationLost
        } else {
            RegistrationEvent::RoleLost
        };
        (!roles.is_empty()).then(|| Loss {
            roles,
            left: has.roles(),
            event,
            why: why(&has),
            tpp,
        })
    });
    lost.collect()
}

/// The TPPs that have other roles after a reload, and lost none: what they had before may be lost again.
pub(super) fn gains(
    before: Option<&Registers>,
    after: Option<&Registers>,
    tpps: impl IntoIterator<Item = TppId>,
) -> Vec<NewEvent> {
    let (Some(before), Some(after)) = (before, after) else {
        return Vec::new();
    };
    let gained = tpps.into_iter().filter_map(|tpp| {
        let (had, has) = (before.find(&tpp).roles(), after.find(&tpp).roles());
        let is_gain = had.without(has).is_empty() && !has.without(had).is_empty();
        is_gain.then(|| NewEvent::RolesChanged {
            tpp,
            lost: None,
            left: has.to_string(),
        })
    });
    gained.collect()
}

fn why(has: &Registration<'_>) -> String {
    if has.blocked {
        return "blocked by the bank's own list".to_owned();
    }
    let is_withdrawn = has.listed.is_some_and(|listed| !listed.authorised);
    match (has.withdrawn_by, has.listed_by) {
        (Some(by), _) => format!("withdrawn, by {by}"),
        (None, Some(by)) if is_withdrawn => format!("withdrawn, by {by}"),
        (None, Some(by)) => format!("{by} has it without the role"),
        (None, None) => "no register has it any more".to_owned(),
    }
}

/// Counts them, adds them to the events, and tells the first ones to the log and the audit.
pub(super) fn tell(losses: &[Loss], telemetry: &Telemetry, observations: &Observations) {
    for loss in losses {
        telemetry.registration(loss.event);
        observations.push(NewEvent::RolesChanged {
            tpp: loss.tpp.clone(),
            lost: Some(loss.roles.to_string()),
            left: loss.left.to_string(),
        });
    }
    let audit = telemetry.audit();
    for loss in losses.iter().take(NAMED) {
        let (tpp, roles, why) = (&loss.tpp, loss.roles.to_string(), &loss.why);
        tracing::warn!(%tpp, %roles, %why, "a TPP lost a role by the registers");
        let event = audit.event(AuditKind::RegistrationLost);
        let event = event.with("tpp", tpp.as_str()).with("roles", roles);
        audit.record(event.with("why", why.as_str()));
    }
    let more = losses.len().saturating_sub(NAMED);
    if more > 0 {
        tracing::warn!(
            more,
            "further TPPs lost a role by the registers: is a file truncated?"
        );
    }
}

/// Adds what was seen of a TPP to the events (CTL-3).
pub(super) fn tell_seen(seen: SeenEvent, tellers: &Tellers) {
    tellers.observations.push(match seen {
        SeenEvent::New(tpp) => {
            tell_new(&tpp, &tellers.telemetry);
            NewEvent::TppSeen { tpp }
        }
        SeenEvent::Before(tpp) => NewEvent::TppSeen { tpp },
        SeenEvent::Ends { tpp, serial, end } => NewEvent::CertificateEnds { tpp, serial, end },
    });
}

/// Counts a TPP whose signature verified for the first time in 30 days, and tells the log and the audit.
fn tell_new(tpp: &TppId, telemetry: &Telemetry) {
    telemetry.registration(RegistrationEvent::FirstSeen);
    tracing::info!(%tpp, "a TPP called for the first time in 30 days");
    let audit = telemetry.audit();
    let event = audit.event(AuditKind::TppFirstSeen);
    audit.record(event.with("tpp", tpp.as_str()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        clock::Timestamp,
        trust::register::{
            MappedFormat, Mapping, Member, Origin, RegisterName, RegisterSettings, WhenWithdrawn,
        },
    };

    /// A register with these rows: id, state and roles.
    fn register(rows: &str) -> Registers {
        let column = |name: &str| Origin::Column(name.to_owned());
        let mapping = Mapping {
            format: MappedFormat::Csv { separator: b';' },
            origins: vec![
                (Member::Tpp, column("TPP")),
                (Member::Status, column("STATUS")),
                (Member::Roles, column("ROLES")),
            ],
            list_separator: ",".to_owned(),
            authorised: vec!["yes".to_owned()],
            everywhere: Vec::new(),
            roles: vec![("PI".to_owned(), 2), ("AI".to_owned(), 3)],
            date: "%Y-%m-%d".to_owned(),
            max_age: None,
            withdrawn: WhenWithdrawn::Refuse,
        };
        let mut registers = Registers::new(RegisterSettings::default());
        let text = format!("TPP;STATUS;ROLES\n{rows}");
        let name = RegisterName::new("national");
        let at = Timestamp::from_unix(1_800_000_000);
        registers
            .take_mapped(name, &mapping, text.as_bytes(), at)
            .unwrap();
        registers
    }

    #[test]
    fn each_loss_has_its_reason() {
        let before =
            "PSDNO-FSA-1;yes;AI,PI\nPSDNO-FSA-2;yes;AI\nPSDNO-FSA-3;yes;PI\nPSDNO-FSA-4;yes;AI\n";
        let after = "PSDNO-FSA-1;yes;AI\nPSDNO-FSA-2;no;AI\nPSDNO-FSA-4;yes;AI,PI\n";
        let (before, after) = (register(before), register(after));
        let tpps = ["1", "2", "3", "4", "5"].map(|id| {
            let text = format!("PSDNO-FSA-{id}");
            TppId::parse(&text).unwrap()
        });
        let found = losses(Some(&before), Some(&after), tpps.clone());
        let found: Vec<_> = found
            .iter()
            .map(|loss| {
                let (tpp, roles) = (loss.tpp.as_str(), loss.roles.to_string());
                format!("{tpp} {roles} {}: {}", loss.event.name(), loss.why)
            })
            .collect();
        assert_eq!(
            found,
            [
                "PSDNO-FSA-1 PSP_PI role_lost: the register national has it without the role",
                "PSDNO-FSA-2 PSP_AI authorisation_lost: withdrawn, by the register national",
                "PSDNO-FSA-3 PSP_PI authorisation_lost: no register has it any more",
            ]
        );
        let gained = gains(Some(&before), Some(&after), tpps.clone());
        let [NewEvent::RolesChanged { tpp, lost, left }] = gained.as_slice() else {
            panic!("{gained:?}")
        };
        assert_eq!(tpp.as_str(), "PSDNO-FSA-4");
        assert_eq!((lost, left.as_str()), (&None, "PSP_PI,PSP_AI"));
        assert_eq!(losses(None, Some(&after), tpps.clone()), []);
        assert_eq!(losses(Some(&before), None, tpps), []);
    }
}
