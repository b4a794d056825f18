//! The number of series of a busy gateway.

use super::{
    ConfigurationFacts, CoreEndpoint, EndpointFacts, Scrape, Telemetry,
    upstreams::SHOWN,
    values::{
        AddressAction, AddressPlace, Degradation, HandshakeOutcome, ReadinessCondition, TlsVersion,
    },
};
use crate::{
    admission::ObservableCheck,
    clock::Timestamp,
    config::{NextUpdate, Shown, TrustBundle},
    expiring::Expiring,
    interface::{
        TppId,
        operations::{Catalogue, Environment, builtin},
    },
    state::{Counters, Rows},
    trust::{
        Anchors, Registers, Revocation, Trust,
        register::RegisterSettings,
        revocation::{Counters as RevocationCounters, RevocationSettings},
    },
};

/// What a Prometheus server should take from one gateway.
const MOST_SERIES: usize = 2_100;

/// The certificates of TPPs that are shown at most.
const TPP_CERTIFICATES: usize = 30;

fn endpoint(number: usize) -> EndpointFacts {
    EndpointFacts {
        of: CoreEndpoint::new("core".into(), format!("10.0.0.{number}:80")),
        is_up: true,
        failures: 0,
    }
}

fn bundle(at: Timestamp) -> TrustBundle {
    let territory = "NO".to_owned();
    TrustBundle {
        path: "current".into(),
        imported: at,
        next_update: Some(NextUpdate { at, territory }),
        services: Default::default(),
        listed: Default::default(),
    }
}

/// Every operation of the sandbox with every outcome, every reason, and 200 TPPs in every family.
#[test]
fn series_of_a_busy_gateway() {
    let telemetry = Telemetry::new(None);
    let catalogue = Catalogue::new(Environment::Sandbox, builtin()).unwrap();
    telemetry.handles(&catalogue).fill();
    for number in 0..200 {
        let tpp = TppId::parse(&format!("PSDNO-FSA-{number}")).unwrap();
        telemetry.requests.fill(&tpp);
    }
    for version in TlsVersion::ALL {
        telemetry.handshake(HandshakeOutcome::Done, Some(*version));
    }
    telemetry.handshake(HandshakeOutcome::Failed, None);
    telemetry.handshake(HandshakeOutcome::TooSlow, None);
    for place in AddressPlace::ALL {
        telemetry.inner_address(*place, AddressAction::Removed);
    }
    let registers = Registers::new(RegisterSettings::default());
    let revocation = Revocation::new(RevocationSettings::default()).unwrap();
    let trust = Trust::new(Anchors::of_operator(Vec::new(), Vec::new()).unwrap());
    let now = Timestamp::from_unix(1_790_000_000);
    let rows = Rows {
        quotas: Some(1),
        pages: Some(1),
        requests: Some(1),
        tokens: Some(1),
        blocks: Some(1),
        psus: Some(1),
        sessions: Some(1),
    };
    let shown = Shown {
        text: String::new(),
        hash: "0".repeat(64),
        files_hash: "0".repeat(64),
    };
    let text = telemetry.metrics(&Scrape {
        now,
        state: Counters {
            rows,
            ..Counters::default()
        },
        not_ready: ReadinessCondition::ALL
            .iter()
            .map(|condition| (*condition, false))
            .collect(),
        degraded: Degradation::ALL
            .iter()
            .map(|fault| (*fault, false))
            .collect(),
        configuration: ConfigurationFacts {
            environment: Environment::Sandbox,
            since: now,
            shown: Some(&shown),
            ends: Expiring::ALL.iter().map(|of| (*of, now)).collect(),
            findings: Vec::new(),
            seen: trust.seen(),
            bundle: Some(&bundle(now)),
            registers: Some(&registers),
            revocation: Some(&revocation),
            seals: ["00000001", "00000002"]
                .map(|key| (key.to_owned(), 1))
                .to_vec(),
            observed: ObservableCheck::ALL.iter().copied().collect(),
            sca_links: 1,
            endpoints: (0..2 * SHOWN).map(endpoint).collect(),
        },
    });
    let samples = text.lines().filter(|line| !line.starts_with('#')).count();
    let series = samples + TPP_CERTIFICATES + RevocationCounters::MOST_LISTS;
    assert!(series <= MOST_SERIES, "{series}");
    // A change that adds many shows here first.
    assert!(series > 1_500, "{series}");
}
