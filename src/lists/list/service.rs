//! The services of a list (TS 119 612, clauses 5.4 to 5.6): who provides which service, and its state now and before.

use super::{
    identity::Identity,
    names::{ADDITIONAL, EXTENSION, QUALIFICATIONS, SERVICE_STATUS, SERVICE_TYPE, TSL, short},
    qualification,
    scheme::Version,
    value::{boolean, name_of, text, text_of, time},
};
use crate::{fault::Refusal, tree::Element};
use portvakt_base::clock::Timestamp;
use portvakt_trust::qualification::Qualification;

/// The type of services that issue qualified certificates, without the beginning that all types have.
pub const CA_QC: &str = "CA/QC";

/// The state of a service that is qualified, without the beginning that all states have.
pub const GRANTED: &str = "granted";

/// A service of a provider.
#[derive(Clone, Debug)]
pub struct Service {
    /// The provider's name, in English where it has one.
    pub provider: String,
    /// By what it is identified; read for [`CA_QC`] only.
    pub identity: Identity,
    /// What the service is now.
    pub current: State,
    /// What it was before; the newest first.
    pub history: Vec<State>,
    /// The line in the file.
    pub line: usize,
}

/// What a service is from a time on.
#[derive(Clone, Debug)]
pub struct State {
    /// The service's name, in English where it has one.
    pub name: String,
    /// The type, such as [`CA_QC`], without the beginning that all types have.
    pub service_type: String,
    /// The state, such as [`GRANTED`], without the beginning that all states have.
    pub status: String,
    /// Since when.
    pub since: Timestamp,
    /// The extensions.
    pub extensions: Extensions,
}

/// The extensions of a service (clause 5.5.9).
#[derive(Clone, Debug, Default)]
pub struct Extensions {
    /// The additional information, such as `ForeSeals`.
    pub additional: Vec<String>,
    /// Which certificates are more, or less, than they say.
    pub qualifications: Vec<Qualification>,
    /// Extensions that are critical and unknown here: the service cannot be relied on.
    pub unknown: Vec<String>,
}

impl Service {
    /// What the service is at a time; `None` before its first state.
    pub fn state_at(&self, at: Timestamp) -> Option<&State> {
        // The current state first: no instance of the history can outlive it, whatever its time.
        let mut states = std::iter::once(&self.current).chain(&self.history);
        states.find(|state| state.since <= at)
    }
}

/// Reads the element `TrustServiceProviderList`.
///
/// # Errors
/// A part is missing or malformed.
pub(crate) fn read(element: &Element<'_>, version: Version) -> Result<Vec<Service>, Refusal> {
    let mut services = Vec::new();
    for provider in element.children() {
        if !provider.is(TSL, "TrustServiceProvider") {
            return Err(provider.refuse(format_args!("{} among providers", provider.local())));
        }
        let information = provider.required(TSL, "TSPInformation")?;
        let name = name_of(&information, "TSPName")?;
        for service in provider.required(TSL, "TSPServices")?.children() {
            if !service.is(TSL, "TSPService") {
                return Err(service.refuse(format_args!("{} among services", service.local())));
            }
            services.push(read_service(&service, &name, version)?);
        }
    }
    Ok(services)
}

fn read_service(
    element: &Element<'_>,
    provider: &str,
    version: Version,
) -> Result<Service, Refusal> {
    let information = element.required(TSL, "ServiceInformation")?;
    check_supply_points(&information, version)?;
    let identity = information.required(TSL, "ServiceDigitalIdentity")?;
    let current = read_state(&information)?;
    let mut history = Vec::new();
    if let Some(instances) = element.optional(TSL, "ServiceHistory")? {
        for instance in instances.children() {
            if !instance.is(TSL, "ServiceHistoryInstance") {
                return Err(instance.refuse(format_args!("{} in a history", instance.local())));
            }
            history.push(read_state(&instance)?);
        }
    }
    let mut states = std::iter::once(&current).chain(&history);
    let identity = match states.any(|state| state.service_type == CA_QC) {
        true => Identity::read(&identity),
        false => Identity::default(),
    };
    history.sort_by_key(|state| std::cmp::Reverse(state.since));
    Ok(Service {
        provider: provider.to_owned(),
        identity,
        current,
        history,
        line: element.line(),
    })
}

/// Reads an element `ServiceInformation` or `ServiceHistoryInstance`.
fn read_state(element: &Element<'_>) -> Result<State, Refusal> {
    let service_type = text_of(element, "ServiceTypeIdentifier")?;
    let status = text_of(element, "ServiceStatus")?;
    let extensions = element.optional(TSL, "ServiceInformationExtensions")?;
    Ok(State {
        name: name_of(element, "ServiceName")?,
        service_type: short(&service_type, SERVICE_TYPE).to_owned(),
        status: short(&status, SERVICE_STATUS).to_owned(),
        since: time(&element.required(TSL, "StatusStartingTime")?)?,
        extensions: match extensions {
            Some(extensions) => read_extensions(&extensions)?,
            None => Extensions::default(),
        },
    })
}

fn read_extensions(element: &Element<'_>) -> Result<Extensions, Refusal> {
    let mut read = Extensions::default();
    for extension in element.children() {
        let critical = extension.attribute(None, "Critical");
        let critical = critical.ok_or_else(|| extension.refuse("an extension without Critical"))?;
        let critical = boolean(&extension, critical)?;
        for content in extension.children() {
            match (content.namespace(), content.local()) {
                (TSL, "AdditionalServiceInformation") => {
                    let uri = text(&content.required(TSL, "URI")?)?;
                    read.additional.push(short(&uri, EXTENSION).to_owned());
                }
                (QUALIFICATIONS, "Qualifications") => {
                    read.qualifications.extend(qualification::read(&content)?);
                }
                // They change nothing of what is issued now.
                (ADDITIONAL, "TakenOverBy") | (TSL, "ExpiredCertsRevocationInfo") => {}
                (_, unknown) if critical => read.unknown.push(unknown.to_owned()),
                _ => {}
            }
        }
    }
    Ok(read)
}

/// The points at which a service is reached have a type from version 6 on (TS 119 612 v2.3.1), and none before.
fn check_supply_points(element: &Element<'_>, version: Version) -> Result<(), Refusal> {
    let points = element.optional(TSL, "ServiceSupplyPoints")?;
    let points = points.into_iter().flat_map(|points| points.children());
    for point in points {
        match (version, point.attribute(None, "type")) {
            (Version::Five, Some(_)) => {
                return Err(point.refuse("ServiceSupplyPoint with a type, which version 5 has not"));
            }
            (Version::Six, None) => {
                return Err(
                    point.refuse("ServiceSupplyPoint without a type, which version 6 requires")
                );
            }
            _ => {}
        }
    }
    Ok(())
}
