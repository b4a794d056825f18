//! Faults, each with the series that changes and the alerts that become active. A fault lasts as long as `watch` runs.

use super::stage::{Stage, Wrong, good};
use crate::harness::{Call, Connection, Reply, Said, let_pass, pki::Key, render, world};
use serde_json::json;
use std::{
    fs,
    io::Write,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};
use time::OffsetDateTime;

/// Turns a fault on, watches, and turns it off.
type Turn = fn(&Stage, &mut dyn FnMut());

/// A fault.
pub(super) struct Fault {
    pub(super) name: &'static str,
    /// A query that has a result while the fault is on, and none before.
    pub(super) series: &'static str,
    /// The alerts that must become active. No other page may.
    pub(super) alerts: &'static [&'static str],
    pub(super) turn: Turn,
}

/// Pages of every fault by which requests fail.
const BURN: [&str; 2] = ["PortvaktAvailabilityBurn14", "PortvaktAvailabilityBurn6"];

pub(super) const FAULTS: &[Fault] = &[
    Fault {
        name: "the core is down",
        series: r#"rate(portvakt_upstream_failures_total{kind="refused"}[4s]) > 0"#,
        alerts: &["PortvaktCoreDown", BURN[0], BURN[1]],
        turn: |stage, watch| stage.gate.upstream().away(watch),
    },
    Fault {
        name: "the core is slow",
        series: r#"sum(rate(portvakt_upstream_seconds_count[4s])) - sum(rate(portvakt_upstream_seconds_bucket{le="0.5"}[4s])) > 1"#,
        alerts: &["PortvaktCoreSlow"],
        turn: |stage, watch| {
            let slow = Reply::json(200, "{}").after(Duration::from_millis(600));
            core_answers(stage, slow, watch);
        },
    },
    Fault {
        name: "the core hangs",
        series: r#"rate(portvakt_upstream_failures_total{kind="timeout"}[4s]) > 0"#,
        alerts: &["PortvaktCoreDown", BURN[0], BURN[1]],
        turn: |stage, watch| core_answers(stage, Reply::Silence, watch),
    },
    Fault {
        name: "the core hangs, and callers leave",
        series: r#"rate(portvakt_upstream_failures_total{kind="abandoned"}[4s]) > 0"#,
        alerts: &["PortvaktCoreHangs", "PortvaktCoreDown", BURN[0], BURN[1]],
        turn: |stage, watch| {
            let watch = &mut || {
                meanwhile(stage, watch, |stage| {
                    let mut connection = stage.connect().unwrap();
                    let call = Call::accounts().present().by(&stage.tpps[1]);
                    let _ = connection.send(&render(&stage.gate.seal(&call)));
                    let_pass(Duration::from_millis(700));
                });
            };
            core_answers(stage, Reply::Silence, watch);
        },
    },
    Fault {
        name: "the core answers 500",
        series: r#"sum(rate(portvakt_upstream_responses_total{status="5xx"}[4s])) > 0"#,
        alerts: &["PortvaktCoreFailing", BURN[0], BURN[1]],
        turn: |stage, watch| {
            core_answers(stage, Reply::json(500, r#"{"code":"SYSTEM_ERROR"}"#), watch)
        },
    },
    Fault {
        name: "the core truncates its answers",
        series: r#"rate(portvakt_upstream_failures_total{kind="truncated"}[4s]) > 0"#,
        alerts: &["PortvaktCoreAnswersBroken", BURN[0], BURN[1]],
        turn: |stage, watch| {
            let head =
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
            core_answers(stage, Reply::Raw(head.into()), watch);
        },
    },
    Fault {
        name: "the core speaks no HTTP",
        series: r#"rate(portvakt_upstream_failures_total{kind="garbage"}[4s]) > 0"#,
        alerts: &["PortvaktCoreAnswersBroken", BURN[0], BURN[1]],
        turn: |stage, watch| {
            core_answers(
                stage,
                Reply::Raw(b"SSH-2.0-OpenSSH\r\n\r\n".to_vec()),
                watch,
            )
        },
    },
    Fault {
        name: "the OCSP responder is down",
        series: r#"rate(portvakt_revocation_fetches_total{result="status"}[4s]) > 0"#,
        alerts: &["PortvaktRevocationUnreachable", BURN[0], BURN[1]],
        turn: |stage, watch| {
            stage.responder.say(|_| Said {
                head: "503 Service Unavailable".into(),
                ..Said::ok(Vec::new())
            });
            meanwhile(stage, watch, |stage| {
                // The gateway has no answer about a new certificate.
                stage.send(&Call::plain().by(&stage.stranger()));
                let_pass(Duration::from_millis(200));
            });
            stage.responder.say(|request| Said::ok(good(request)));
        },
    },
    Fault {
        name: "the register is stale",
        series: "portvakt_register_age_seconds > portvakt_register_max_age_seconds",
        alerts: &["PortvaktRegisterStale", "PortvaktExpired", BURN[0], BURN[1]],
        turn: |stage, watch| {
            stage.register_of(8);
            watch();
            stage.register_of(0);
        },
    },
    Fault {
        name: "the disk is full",
        series: "rate(portvakt_state_batches_failed_total[4s]) > 0",
        alerts: &[
            "PortvaktStateFailing",
            "PortvaktNotReady",
            "PortvaktExpired",
            BURN[0],
            BURN[1],
        ],
        turn: |stage, watch| {
            let filler = stage.disk().join("filler");
            let mut file = fs::File::create(&filler).unwrap();
            while file.write_all(&[0; 4096]).is_ok() {}
            drop(file);
            watch();
            fs::remove_file(filler).unwrap();
        },
    },
    Fault {
        name: "a bad reload",
        series: r#"increase(portvakt_reloads_total{result="refused"}[4s]) > 0"#,
        alerts: &["PortvaktReloadFailed"],
        turn: |stage, watch| {
            let good = stage.gate.yaml().to_owned();
            assert_eq!(
                stage.reload_with("gateway.yaml", &format!("{good}colour: red\n")),
                422
            );
            watch();
            assert_eq!(stage.reload_with("gateway.yaml", &good), 200);
        },
    },
    Fault {
        name: "the signatures of all TPPs fail",
        series: r#"count(sum by (tpp) (rate(portvakt_tpp_signature_failures_total{tpp!="other"}[4s])) > 0.2) > 2"#,
        alerts: &["PortvaktSignaturesOfAllFail"],
        turn: |stage, watch| stage.with_all(Wrong::Signatures, watch),
    },
    Fault {
        name: "a key waits for a restart",
        series: "portvakt_pending_restart > 0",
        alerts: &["PortvaktRestartPending"],
        turn: |stage, watch| {
            let good = stage.gate.yaml().to_owned();
            let other = format!("{good}system: other\n");
            assert_eq!(stage.reload_with("gateway.yaml", &other), 200);
            watch();
            assert_eq!(stage.reload_with("gateway.yaml", &good), 200);
        },
    },
    Fault {
        name: "the gateway's certificate ends",
        series: r#"portvakt_certificate_end_timestamp_seconds{of="listener"} - time() < 3 * 86400"#,
        alerts: &["PortvaktCertificateEnds"],
        turn: |stage, watch| {
            let now = OffsetDateTime::now_utc();
            let day = time::Duration::DAY;
            let issued = world()
                .tls_ca
                .issue_server(&Key::EcP256, now - day, now + day);
            let issued = issued.unwrap();
            fs::write(stage.gate.folder().join("server.key"), &issued.key_pem).unwrap();
            assert_eq!(stage.reload_with("server.pem", &issued.pem), 200);
            watch();
            let server = &world().server;
            fs::write(stage.gate.folder().join("server.key"), &server.key_pem).unwrap();
            assert_eq!(stage.reload_with("server.pem", &server.pem), 200);
        },
    },
    Fault {
        name: "the clock of some callers is wrong",
        series: r#"sum(rate(portvakt_refusals_total{reason="date-skewed"}[4s])) > 0"#,
        alerts: &["PortvaktCallersClocksOff"],
        turn: |stage, watch| {
            meanwhile(stage, watch, |stage| {
                stage.send(&Call::accounts().present().by(&stage.tpps[1]).off_by(-75));
                let_pass(Duration::from_millis(250));
            });
        },
    },
    Fault {
        name: "the clocks of all callers and the gateway's differ",
        series: r#"sum(rate(portvakt_refusals_total{reason="date-skewed"}[4s])) > 0.3 * sum(rate(portvakt_requests_total[4s]))"#,
        alerts: &["PortvaktDatesOfAllFail"],
        turn: |stage, watch| stage.with_all(Wrong::Dates, watch),
    },
    Fault {
        name: "the signatures of one TPP fail",
        series: r#"sum by (tpp) (rate(portvakt_tpp_signature_failures_total{tpp!="other"}[4s])) > 1"#,
        alerts: &["PortvaktSignaturesOfOneTppFail"],
        turn: |stage, watch| {
            meanwhile(stage, watch, |stage| {
                stage.send(&unverifiable().by(&stage.tpps[2]));
            });
        },
    },
    Fault {
        name: "a TPP repeats its requests",
        series: r#"sum(rate(portvakt_refusals_total{reason="request-replayed"}[4s])) > 0"#,
        alerts: &["PortvaktReplays"],
        turn: |stage, watch| {
            let sealed = stage.gate.seal(&Call::payment().by(&stage.tpps[3]));
            meanwhile(stage, watch, |stage| {
                let mut connection = stage.connect().unwrap();
                for _ in 0..10 {
                    let _ = connection.exchange(&sealed);
                }
            });
        },
    },
    Fault {
        name: "a flood of unsigned requests",
        series: r#"rate(portvakt_refusals_total{reason="signature-missing"}[4s]) > 20"#,
        alerts: &["PortvaktFloodOfRefused"],
        turn: |stage, watch| {
            let call = Call::plain().altered(|request| request.remove_header("Signature"));
            let sealed = stage.gate.seal(&call);
            meanwhile(stage, watch, |stage| {
                let mut connection = stage.connect().unwrap();
                for _ in 0..40 {
                    let _ = connection.exchange(&sealed);
                }
            });
        },
    },
    Fault {
        name: "the register lacks a TPP",
        series: r#"rate(portvakt_refusals_total{reason="tpp-not-registered"}[4s]) > 5"#,
        alerts: &["PortvaktTppNotAuthorised"],
        turn: |stage, watch| {
            let tpp = stage.unregistered();
            meanwhile(stage, watch, |stage| {
                let mut connection = stage.connect().unwrap();
                for _ in 0..10 {
                    let call = Call::plain().by(&tpp);
                    let _ = connection.exchange(&stage.gate.seal(&call));
                }
            });
        },
    },
    Fault {
        name: "a TPP polls without the PSU",
        series: "sum by (tpp) (rate(portvakt_tpp_quota_exceeded_total[4s])) > 5",
        alerts: &["PortvaktQuotaSurge"],
        turn: |stage, watch| {
            meanwhile(stage, watch, |stage| {
                let mut connection = stage.connect().unwrap();
                for _ in 0..10 {
                    let call = Call::balances().by(&stage.tpps[4]);
                    let _ = connection.exchange(&stage.gate.seal(&call));
                }
            });
        },
    },
    Fault {
        name: "the bank binds PSU-IDs of one TPP to another",
        series: r#"rate(portvakt_psu_bound_elsewhere_total{by="bind"}[4s]) > 0"#,
        alerts: &["PortvaktPsuBoundElsewhere"],
        turn: |stage, watch| {
            let body = json!({
                "tpp": stage.tpps[0].id(), "psu_id": stage.tpps[1].psu(), "last_sca": stage.gate.now().to_string(),
            });
            meanwhile(stage, watch, |stage| {
                assert_eq!(stage.gate.tell("/psu/bind", &body).status, 409);
                let_pass(Duration::from_millis(200));
            });
        },
    },
    Fault {
        name: "a flood of connections",
        series: "rate(portvakt_connections_turned_away_total[4s]) > 0",
        alerts: &["PortvaktShedding"],
        turn: |stage, watch| {
            meanwhile(stage, watch, |stage| {
                // The callers of the test have another address.
                let open = || stage.connect_from([127, 0, 0, 2]);
                let held: Vec<Connection> = (0..60).filter_map(|_| open().ok()).collect();
                let_pass(Duration::from_millis(200));
                drop(held);
            });
        },
    },
    Fault {
        name: "the gateway is killed",
        series: "up == 0",
        alerts: &["PortvaktDown"],
        turn: |stage, watch| {
            stage.program.lock().unwrap().end();
            watch();
        },
    },
];

/// A call whose signature does not verify.
fn unverifiable() -> Call {
    Call::plain()
        .altered(|request| request.set_header("TPP-Redirect-URI", "https://tpp.example/other"))
}

fn core_answers(stage: &Stage, reply: Reply, watch: &mut dyn FnMut()) {
    stage.gate.upstream().reply(reply);
    watch();
    stage.gate.upstream().reply(super::usual());
}

/// Repeats something while the fault is watched.
fn meanwhile(stage: &Stage, watch: &mut dyn FnMut(), act: impl Fn(&Stage) + Sync) {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _ends = super::stage::Until(&over);
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                act(stage);
                let_pass(Duration::from_millis(20));
            }
        });
        watch();
    });
}
