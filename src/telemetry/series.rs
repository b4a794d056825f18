//! The number of series of a busy gateway.

use super::{ConfigurationFacts, Scrape, Telemetry};
use crate::{
    clock::Timestamp,
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
const MOST_SERIES: usize = 2_000;

/// The certificates of TPPs that are shown at most.
const TPP_CERTIFICATES: usize = 200;

/// Every operation of the sandbox with every outcome, every reason, and 200 TPPs in every family.
#[test]
fn series_of_a_busy_gateway() {
    let telemetry = Telemetry::new(false);
    let catalogue = Catalogue::new(Environment::Sandbox, builtin()).unwrap();
    telemetry.handles(&catalogue).fill();
    for number in 0..200 {
        let tpp = TppId::parse(&format!("PSDNO-FSA-{number}")).unwrap();
        telemetry.requests.fill(&tpp);
    }
    for version in ["1.2", "1.3"] {
        telemetry.handshake("done", version);
    }
    telemetry.handshake("failed", "none");
    telemetry.handshake("too_slow", "none");
    for place in ["location", "content-location", "link", "body"] {
        telemetry.inner_address(place, "removed");
    }
    let registers = Registers::new(RegisterSettings::default());
    let revocation = Revocation::new(RevocationSettings::default()).unwrap();
    let trust = Trust::new(Anchors::new(Vec::new(), Vec::new()).unwrap());
    let now = Timestamp::from_unix(1_790_000_000);
    let rows = Rows {
        quotas: Some(1),
        pages: Some(1),
        requests: Some(1),
        tokens: Some(1),
        psus: Some(1),
        sessions: Some(1),
    };
    let text = telemetry.metrics(&Scrape {
        now,
        state: Counters {
            rows,
            ..Counters::default()
        },
        not_ready: ["stopping", "listener", "state", "sca"].map(|cause| (cause, false)),
        configuration: ConfigurationFacts {
            environment: Environment::Sandbox,
            since: now,
            ends: ["listener", "anchor", "client_anchor"]
                .map(|of| (of, now))
                .to_vec(),
            seen: trust.seen(),
            registers: Some(&registers),
            revocation: Some(&revocation),
            seals: ["00000001", "00000002"]
                .map(|key| (key.to_owned(), 1))
                .to_vec(),
            sca_started: 1,
        },
    });
    let samples = text.lines().filter(|line| !line.starts_with('#')).count();
    let series = samples + TPP_CERTIFICATES + RevocationCounters::MOST_LISTS;
    assert!(series <= MOST_SERIES, "{series}");
    // A change that adds many shows here first.
    assert!(series > 1_500, "{series}");
}
