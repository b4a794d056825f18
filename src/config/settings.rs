//! The configuration as the gateway runs on it.
//!
//! Invariant: [`Settings`] that exist can be started: each address is one that may be used, the key fits the certificate, the snapshot
//! is built, and no file has to be read again. A deployment reloads by loading anew. Deliberately not here: keys that no code heeds yet,
//! such as upstreams by group (FWD-3) or what an unbuilt stage would need.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use openssl::x509::X509;
use tracing::Level;

use super::control::{Control, ControlAddress};
use super::document::Document;
use super::endpoints::{Listener, Upstream};
use super::fault::{Fault, Faults, Inspection, Place};
use super::section::Section;
use super::value::Value;
use super::{
    endpoints, limits, operations, pem, policy, registers, revocation, sca, signing, state,
};
use crate::admission::{Rates, Snapshot, WhenUnknown};
use crate::interface::openapi;
use crate::interface::operations::{Catalogue, Environment, builtin};
use crate::sca::ScaSettings;
use crate::signing::{AnswerSigning, AssertionSettings};
use crate::state::StateSettings;
use crate::trust::{Anchors, CertificateTypes, Revocation, Trust};

/// How often files are looked at by default.
const WATCH: Duration = Duration::from_secs(5);

/// Everything that a gateway is started with.
///
/// `Debug` shows no key: rustls names a key's algorithm only.
#[derive(Debug)]
pub struct Settings {
    /// `system` of every error body (ERR-1). Default `portvakt`.
    pub system: String,
    /// Where TPPs call.
    pub listener: Listener,
    /// Where the bank's own services call.
    pub control: Control,
    /// The core.
    pub upstream: Upstream,
    /// How SCA is asked for: the bank's page and the keys of its links.
    pub sca: Arc<ScaSettings>,
    /// How the core's assertions are signed (FWD-1). None by default: there are none.
    pub assertion: Option<AssertionSettings>,
    /// How answers are signed (SIG-12). None by default: they are not.
    pub response_signing: Option<AnswerSigning>,
    /// What requests are judged by: policy, catalogue and trust, ready.
    pub snapshot: Snapshot,
    /// The folders that the snapshot's trust was read from, for people to read.
    pub trust: TrustFiles,
    /// The catalogue file that the snapshot's catalogue was read from (HTTP-11). None by default.
    pub operations: Option<PathBuf>,
    /// Where what outlives a request is kept. Default `../state/portvakt.db` and `../state/hash.key`.
    pub state: StateSettings,
    /// What is logged.
    pub log: Log,
    /// How often the files are looked at, to take changes into use (CRT-8); none where they are not. Default 5 s.
    pub watch: Option<Duration>,
    /// The file that all this was loaded from; none where it was not.
    pub source: Option<PathBuf>,
    /// Every file and folder that was read. What the gateway writes itself is not among them.
    pub files: Vec<PathBuf>,
}

/// Where trust comes from. Every file in these folders holds certificates in PEM (CRT-9).
#[derive(Clone, Debug)]
pub struct TrustFiles {
    /// The folder of trust anchors.
    pub anchors: PathBuf,
    /// The folder of intermediates, which only help to find the way to an anchor. None by default.
    pub intermediates: Option<PathBuf>,
    /// The folder of the anchors of QWACs (TLS-3). None by default: they are those of sealing certificates.
    pub clients: Option<PathBuf>,
}

/// What is logged.
#[derive(Clone, Debug)]
pub struct Log {
    /// Whether every request has a line. Default true.
    pub access: bool,
    /// The least severe events that are logged. Default `info`.
    pub level: Level,
}

impl Settings {
    /// Loads a configuration file and every file that it names, by paths that are relative to its folder.
    ///
    /// # Errors
    /// Every fault of all those files, in their order.
    pub fn load(path: &Path) -> Result<Self, Faults> {
        let file = path.display().to_string();
        let text = read_text(path).map_err(|text| Fault {
            place: Place::start_of(file.as_str()),
            text,
        })?;
        let mut settings = Self::parse(&file, &text, path.parent().unwrap_or(Path::new("")))?;
        settings.files.push(path.to_owned());
        settings.source = Some(path.to_owned());
        Ok(settings)
    }

    /// Reads a configuration: `file_name` is its name in faults, `text` its content, `base` the folder that its paths are relative to.
    ///
    /// # Errors
    /// Every fault of it and of the files that it names.
    pub fn parse(file_name: &str, text: &str, base: &Path) -> Result<Self, Faults> {
        let document = Document::read(file_name, text)?;
        let inspection = Inspection::new();
        let mut settings = settings(document.root(&inspection), &inspection, base);
        if let Some(settings) = &mut settings {
            let revocation = settings.snapshot.trust.revocation();
            let copies = revocation.and_then(|revocation| revocation.copies());
            let written = [
                Some(&*settings.state.file),
                Some(&*settings.state.hash_key),
                Some(&*settings.sca.token_seals),
                copies,
            ];
            let mut files = inspection.named();
            files.push(settings.sca.token_keys.clone());
            files.retain(|path| !written.contains(&Some(path)));
            settings.files = files;
        }
        inspection.conclude(file_name, settings)
    }

    /// The interface that these settings make, as OpenAPI. Its server is where the gateway listens; on every address of
    /// the machine that is `localhost`.
    pub fn openapi(&self) -> serde_json::Value {
        let address = self.listener.address;
        let authority = if address.ip().is_unspecified() {
            format!("localhost:{}", address.port())
        } else {
            address.to_string()
        };
        let policy = &self.snapshot.policy;
        let setting = openapi::Setting {
            environment: policy.environment,
            system: &self.system,
            authority: &authority,
            identity: policy.identity,
            body_limit: policy.body_limit,
        };
        openapi::describe(&self.snapshot.catalogue, &setting)
    }
}

fn settings(mut root: Section<'_>, inspection: &Inspection, base: &Path) -> Option<Settings> {
    let environment = root
        .required("environment")
        .and_then(|value| environment(&value));
    let system = root.optional("system").and_then(|value| system(&value));
    let mut policy = policy::read(&mut root, environment.unwrap_or(Environment::Sandbox));
    let certificates = policy::certificates(&mut root, policy.environment);
    let rates = limits::rates(&mut root);
    let mut section = root.section("listener");
    let address = Listener::address(&mut section);
    let clients = section.optional("client_anchors");
    let clients = clients.and_then(|value| folder(&value, base, Contents::Needed));
    policy.hosts = endpoints::hosts(&mut section);
    let listener = Listener::read(section, address, base);
    let control = Control::read(&mut root, policy.environment, address, base);
    let steered = control.as_ref().map(|control| &control.address);
    let own = [address, steered.and_then(ControlAddress::tcp)];
    let upstream = Upstream::read(root.section("upstream"), own);
    let sca = sca::read(root.section("sca"), base);
    if let Some(sca) = &sca {
        policy.psu_present = sca.psu_present;
        policy.unknown_psu = sca.unknown_psu;
    }
    let trust = trust(root.section("trust"), clients, inspection, base);
    let (operations, catalogue) = catalogue(&mut root, policy.environment, inspection, base);
    let state = state::read(&mut root, base);
    let registers = registers::read(&mut root, policy.environment, inspection, base);
    let written = revocation::Written::read(&mut root, policy.environment, base, &state.file);
    let assertion = signing::assertion(&mut root, base);
    let response_signing = signing::response_signing(&mut root, base);
    let log = log(root.optional_section("log"));
    let watch = watch(root.optional_section("reload"));
    let root_place = root.place_of("revocation");
    root.finish();
    let (files, trust) = trust?;
    let catalogue = catalogue?;
    policy.revocation_unknown = written.unknown.unwrap_or(policy.revocation_unknown);
    let (revocation, by_group) = checked(written, &catalogue, inspection, root_place);
    policy.revocation_unknown_by_group = by_group;
    Some(Settings {
        system: system.unwrap_or("portvakt").to_owned(),
        listener: listener?,
        control: control?,
        upstream: upstream?,
        sca: Arc::new(sca?),
        assertion,
        response_signing,
        snapshot: Snapshot {
            policy,
            catalogue,
            trust: trust.with_policy(certificates).with_revocation(revocation),
            registers: registers.map(Arc::new),
            rates: Arc::new(Rates::new(rates)),
        },
        trust: files,
        operations,
        state,
        log,
        watch,
        source: None,
        files: Vec::new(),
    })
}

/// How revocation is checked, ready, and what is done by group where nobody can say.
fn checked(
    mut written: revocation::Written,
    catalogue: &Catalogue,
    inspection: &Inspection,
    place: Place,
) -> (Option<Arc<Revocation>>, BTreeMap<String, WhenUnknown>) {
    let ready = written.settings.take().map(revocation::ready).transpose();
    let ready = ready
        .map_err(|text| inspection.report(place, text))
        .ok()
        .flatten();
    let by_group = written.by_group(catalogue, |place, text| inspection.report(place, text));
    (ready.map(Arc::new), by_group)
}

/// The environment (CRT-9).
fn environment(value: &Value<'_>) -> Option<Environment> {
    let names = [Environment::Production, Environment::Sandbox]
        .map(|environment| (environment.name(), environment));
    value.one_of(&names)
}

/// It stands in every error body, so it is short and plain.
fn system<'a>(value: &Value<'a>) -> Option<&'a str> {
    let text = value.as_str()?;
    if text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Some(text);
    }
    value.refuse("a name of at most 64 visible ASCII characters")
}

fn trust(
    mut section: Section<'_>,
    clients: Option<(PathBuf, Vec<X509>)>,
    inspection: &Inspection,
    base: &Path,
) -> Option<(TrustFiles, Trust)> {
    let anchors = section.required("anchors");
    let anchors = anchors.and_then(|value| folder(&value, base, Contents::Needed));
    let intermediates = section.optional("intermediates");
    let intermediates = intermediates.and_then(|value| folder(&value, base, Contents::MayBeEmpty));
    let types = section.optional("certificate_types");
    let types = types.and_then(|value| certificate_types(&value));
    let place = section.place_of("anchors");
    section.finish();
    let (path, found) = anchors?;
    let (other_path, others) = intermediates.unzip();
    let (client_path, client_found) = clients.unzip();
    let files = TrustFiles {
        anchors: path,
        intermediates: other_path,
        clients: client_path,
    };
    let others = others.unwrap_or_default();
    let clients = client_found.map(|found| Anchors::new(found, others.clone()));
    let fault = |error| inspection.report(place, pem::reason(&error));
    let (anchors, clients) = Anchors::new(found, others)
        .and_then(|anchors| Ok((anchors, clients.transpose()?)))
        .map_err(fault)
        .ok()?;
    let trust = Trust::new(anchors).with_client_anchors(clients);
    Some((files, trust.with_types(types.unwrap_or_default())))
}

/// Which certificates may sign (CRT-3).
fn certificate_types(value: &Value<'_>) -> Option<CertificateTypes> {
    let mut types = CertificateTypes {
        eseal: false,
        web: false,
    };
    let listed = value.as_list()?;
    for value in &listed {
        match value.one_of(&[("eseal", true), ("web", false)])? {
            true => types.eseal = true,
            false => types.web = true,
        }
    }
    if listed.is_empty() {
        value.fault("without a type nobody may sign; expected eseal, web or both");
    }
    Some(types)
}

/// Whether a folder may hold nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Contents {
    Needed,
    MayBeEmpty,
}

/// The certificates of the folder that a key names.
fn folder(value: &Value<'_>, base: &Path, contents: Contents) -> Option<(PathBuf, Vec<X509>)> {
    let path = value.path(base)?;
    let (found, faults) = pem::folder(&path);
    if found.is_empty() && faults.is_empty() && contents == Contents::Needed {
        let path = path.display();
        value.fault(format!(
            "{path} holds no certificate: without a trust anchor no TPP is known"
        ));
    }
    for fault in faults {
        value.fault(fault);
    }
    Some((path, found))
}

/// The catalogue (HTTP-11): the interface's, with what the operator's file changes.
fn catalogue(
    root: &mut Section<'_>,
    environment: Environment,
    inspection: &Inspection,
    base: &Path,
) -> (Option<PathBuf>, Option<Catalogue>) {
    let Some(value) = root.optional("operations") else {
        let catalogue = Catalogue::new(environment, builtin());
        // Not to be seen: the built-in operations are tested to stand beside each other.
        let catalogue = catalogue.map_err(|faults| {
            faults
                .into_iter()
                .for_each(|fault| root.fault("operations", fault.text));
        });
        return (None, catalogue.ok());
    };
    let path = value.path(base);
    let catalogue = path.as_ref().and_then(|path| {
        let text = read_text(path).map_err(|text| value.fault(text)).ok()?;
        operations::read(&path.display().to_string(), &text, environment, inspection)
    });
    (path, catalogue)
}

/// How often files are looked at.
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

fn log(section: Option<Section<'_>>) -> Log {
    let default = Log {
        access: true,
        level: Level::INFO,
    };
    let Some(mut section) = section else {
        return default;
    };
    let access = section.optional("access").and_then(|value| value.boolean());
    let level = section.optional("level").and_then(|value| {
        value.one_of(&[
            ("error", Level::ERROR),
            ("warn", Level::WARN),
            ("info", Level::INFO),
            ("debug", Level::DEBUG),
            ("trace", Level::TRACE),
        ])
    });
    section.finish();
    Log {
        access: access.unwrap_or(default.access),
        level: level.unwrap_or(default.level),
    }
}

pub(super) fn read_text(path: &Path) -> Result<String, String> {
    String::from_utf8(pem::read(path)?).map_err(|_| format!("{} is not UTF-8", path.display()))
}
