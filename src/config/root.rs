//! The root of the configuration file: the sections in the order of their dependencies, and the keys outside any section.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::endpoints::Listener;
use super::fault::FilePosition;
use super::inspection::Inspection;
use super::revocation::RevocationSection;
use super::section::Section;
use super::server_certificates::ServerCertificates;
use super::settings::{Fixed, ReadFiles, Reloadable, Settings};
use super::shutdown::Shutdown;
use super::ticket_keys::TicketKeys;
use super::upstreams::WrittenUpstreams;
use super::value::Value;
use super::{
    audit, control, endpoints, limits, log, operations, policy, registers, revocation, sca,
    signing, state, traces, trust,
};
use crate::admission::{Policy, Rates, Snapshot};
use crate::interface::operations::{Catalogue, Environment};
use crate::sca::ScaSettings;
use crate::state::StateSettings;
use crate::trust::Revocation;

/// The default interval of checks for changed files.
const WATCH: Duration = Duration::from_secs(5);

/// Reads the whole file; `None` only after a fault.
pub(super) fn read(
    mut root: Section<'_>,
    inspection: &Inspection,
    base: &Path,
) -> Option<Settings> {
    let environment = environment(&mut root);
    let system = root.optional("system").and_then(|value| system(&value));
    let mut policy = policy::read(&mut root, environment.unwrap_or(Environment::Sandbox));
    let certificates = policy::certificates(&mut root, policy.environment);
    let rates = limits::rates(&mut root);
    let mut section = root.section("listener");
    let address = Listener::address(&mut section);
    let clients = trust::client_anchors(&mut section, base);
    policy.hosts = endpoints::hosts(&mut section);
    let own_certificates = ServerCertificates::read(&mut section, base);
    let ticket_keys = ticket_keys(&mut section, base);
    let listener = Listener::read(section, address);
    let control = control::read(&mut root, policy.environment, address, base);
    let control_address = control.as_ref().and_then(|(address, _)| address.tcp());
    let upstreams = WrittenUpstreams::read(&mut root, [address, control_address], base);
    let sca = sca(&mut root, &mut policy, base);
    let state = state(&mut root, policy.environment, inspection, base);
    let trust = trust::read(root.section("trust"), clients, &listener, inspection, base);
    let (operations, catalogue) =
        operations::read_catalogue(&mut root, policy.environment, inspection, base);
    let registers = registers::read(&mut root, policy.environment, inspection, base);
    let written = RevocationSection::read(&mut root, policy.environment, base, &state.file);
    let assertion = signing::assertion(&mut root, base);
    let response_signing = signing::response_signing(&mut root, base);
    let shutdown = Shutdown::read(&mut root, upstreams.as_ref().map(WrittenUpstreams::longest));
    let log = log::read(&mut root, base);
    let traces = traces::read(&mut root);
    let audit = audit::read(&mut root, policy.environment, base, &state.file);
    let watch = watch(root.optional_section("reload"));
    let root_place = root.place_of("revocation");
    root.finish();
    let ((files, trust), catalogue) = (trust?, catalogue?);
    let revocation = checked(written, &mut policy, &catalogue, inspection, root_place);
    let upstreams = upstreams.map(|upstreams| upstreams.checked(&catalogue, inspection));
    let (control, access) = control?;
    Some(Settings {
        fixed: Fixed {
            environment: policy.environment,
            system: system.unwrap_or("portvakt").to_owned(),
            listener: listener?,
            control,
            state,
            shutdown,
            log,
            traces,
            audit,
            watch,
        },
        reloadable: Reloadable {
            certificates: Arc::new(own_certificates?),
            ticket_keys,
            control: access,
            upstreams: upstreams?,
            sca: sca?,
            assertion,
            response_signing,
            snapshot: Snapshot {
                policy,
                catalogue,
                trust: trust.with_policy(certificates).with_revocation(revocation),
                registers: registers.map(Arc::new),
                rates: Arc::new(Rates::new(rates)),
                seen: Arc::default(),
            },
            trust: files,
            operations,
            warnings: Vec::new(),
            files: ReadFiles::default(),
        },
    })
}

fn ticket_keys(listener: &mut Section<'_>, base: &Path) -> Option<Arc<TicketKeys>> {
    let value = listener.optional("ticket_keys")?;
    TicketKeys::read(&value, base)
}

/// The settings of SCA that judge requests.
fn sca(root: &mut Section<'_>, policy: &mut Policy, base: &Path) -> Option<ScaSettings> {
    let sca = sca::read(root.section("sca"), base, policy.environment);
    if let Some(sca) = &sca {
        policy.psu_present = sca.psu_present;
        policy.unknown_psu = sca.unknown_psu;
    }
    sca
}

/// The state. Who owns its folder runs the gateway.
fn state(
    root: &mut Section<'_>,
    environment: Environment,
    inspection: &Inspection,
    base: &Path,
) -> StateSettings {
    let state = state::read(root, base, environment);
    inspection.is_run_by_owner_of(&state.file);
    state
}

/// The revocation checker. The policy gets the behaviour if a status is unknown.
fn checked(
    mut written: RevocationSection,
    policy: &mut Policy,
    catalogue: &Catalogue,
    inspection: &Inspection,
    place: FilePosition,
) -> Option<Arc<Revocation>> {
    policy.revocation_unknown = written.unknown.unwrap_or(policy.revocation_unknown);
    let ready = written.settings.take().map(revocation::ready).transpose();
    let ready = ready
        .map_err(|text| inspection.report(place, text))
        .ok()
        .flatten();
    policy.revocation_unknown_by_group =
        written.by_group(catalogue, |place, text| inspection.report(place, text));
    ready.map(Arc::new)
}

/// The environment (CRT-9).
fn environment(root: &mut Section<'_>) -> Option<Environment> {
    let value = root.required("environment")?;
    let names = [Environment::Production, Environment::Sandbox]
        .map(|environment| (environment.name(), environment));
    let environment = value.one_of(&names);
    if environment == Some(Environment::Production) {
        value.inspection().is_of_production();
    }
    environment
}

/// The name is part of every error body, so it is short and in plain characters.
fn system<'a>(value: &Value<'a>) -> Option<&'a str> {
    let text = value.as_str()?;
    if text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Some(text);
    }
    value.refuse("a name of at most 64 visible ASCII characters")
}

/// The interval of checks for changed files.
fn watch(section: Option<Section<'_>>) -> Option<Duration> {
    let Some(mut section) = section else {
        return Some(WATCH);
    };
    let value = section.optional("watch");
    section.finish();
    match value {
        Some(value) if value.is("off") => None,
        Some(value) => value.duration(Duration::from_millis(100)..=Duration::from_secs(3_600)),
        None => Some(WATCH),
    }
}
