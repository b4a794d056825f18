//! What operators ask of a running gateway: its configuration, its connections, who sends most, and the level of its log of events.

use super::{context::Call, fault::ApiFault, members::Members};
use crate::{
    clock::Timestamp,
    config,
    interface::TppId,
    telemetry::{
        COMMIT, ConnectionState, Count, MINUTES, OwnModule, SeenConnection, configured_level,
        keyed, raise_level, restore_level,
    },
};
use serde_json::{Value, json};
use std::time::Duration;
use tracing::Level;

/// The longest time for which a level is raised.
const LONGEST: Duration = Duration::from_secs(3_600);

/// The networks, TPPs, operations, reasons and connections of a kind that are shown.
const SHOWN: usize = 20;

/// The form of a level, for faults.
const LEVEL: &str = "info or debug, or configured, which ends a raised level";

/// The form of a module, for faults.
const MODULE: &str = "a module of Portvakt, such as portvakt::gateway::upstream or portvakt_state; for all of them leave it out";

/// The form of a time, for faults.
const FOR: &str = "a time with its unit (s, m, h), from 1s to 1h";

/// `GET /config`: the configuration in use, without secrets, and the hashes by which replicas are compared.
pub(super) async fn configuration(call: Call<'_>) -> Result<Value, ApiFault> {
    let in_use = call.in_use;
    let Some(shown) = &in_use.files.shown else {
        return Err(ApiFault::NotFromFile);
    };
    Ok(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "commit": COMMIT,
        "since": in_use.since.to_string(),
        "needsRestart": in_use.needs_restart,
        "hash": shown.hash,
        "filesHash": shown.files_hash,
        "text": shown.text,
    }))
}

/// `GET /top`: who sends most, and what it meets.
pub(super) async fn top(call: Call<'_>) -> Result<Value, ApiFault> {
    let top = call.context.telemetry.top(SHOWN);
    let networks = top.networks.iter().map(|(network, count)| {
        json!({
            "network": network.to_string(), "key": keyed(*network), "requests": requests(count),
            "connections": count.connections, "refused": count.refused, "atMostTooHighBy": count.above,
        })
    });
    let tpps = top.tpps.iter();
    let tpps = tpps.map(|(tpp, count)| timed("tpp", tpp.as_str(), count));
    let operations = top.operations.iter();
    let operations = operations.map(|(name, count)| timed("operation", name, count));
    let reasons = top
        .reasons
        .iter()
        .map(|(reason, count)| json!({ "reason": reason.slug(), "requests": count.all }));
    Ok(json!({
        "minutes": MINUTES,
        "networks": networks.collect::<Vec<_>>(),
        "tpps": tpps.collect::<Vec<_>>(),
        "operations": operations.collect::<Vec<_>>(),
        "reasons": reasons.collect::<Vec<_>>(),
    }))
}

fn requests(count: &Count) -> u64 {
    count.all.saturating_sub(count.connections)
}

/// `GET /connections`: the open connections of callers.
pub(super) async fn connections(call: Call<'_>) -> Result<Value, ApiFault> {
    let (seen, open) = call.context.telemetry.connections(SHOWN);
    let after_handshake: usize = seen.states.iter().sum();
    let after_handshake = i64::try_from(after_handshake).unwrap_or(i64::MAX);
    let mut answer = json!({
        "open": open,
        "handshakes": open.saturating_sub(after_handshake).max(0),
        "oldest": seen.oldest.iter().map(shown).collect::<Vec<_>>(),
        "mostRequests": seen.busiest.iter().map(shown).collect::<Vec<_>>(),
    });
    if let Some(members) = answer.as_object_mut() {
        for (state, count) in ConnectionState::ALL.into_iter().zip(seen.states) {
            members.insert(state.name().to_owned(), count.into());
        }
    }
    Ok(answer)
}

fn shown(connection: &SeenConnection) -> Value {
    let tpp = connection.tpp.as_ref().map(TppId::as_str);
    json!({
        "seconds": connection.age.as_secs(), "state": connection.state.name(), "requests": connection.requests,
        "network": connection.network.to_string(), "key": keyed(connection.network), "tpp": tpp,
    })
}

/// The counts of a TPP or an operation, with its times in milliseconds.
fn timed(kind: &str, name: &str, count: &Count) -> Value {
    let all = u32::try_from(count.all).unwrap_or(u32::MAX).max(1);
    let mean = count.time.checked_div(all).unwrap_or_default();
    json!({
        (kind): name, "requests": count.all, "refused": count.refused, "meanMs": mean.as_millis(),
        "slowestMs": count.slowest.as_millis(), "atMostTooHighBy": count.above,
    })
}

/// `POST /log`: writes more events for a time.
pub(super) async fn log(call: Call<'_>, members: &mut Members) -> Result<Value, ApiFault> {
    let level = members.required("level", LEVEL, |value| match value.as_str()? {
        "configured" => Some(None),
        "info" => Some(Some(Level::INFO)),
        "debug" => Some(Some(Level::DEBUG)),
        _ => None,
    });
    let raises = level != Some(None);
    let with_it = |members: &mut Members, name| {
        if raises || !members.has(name) {
            return;
        }
        members.fault(name, "it stands with info and debug only");
    };
    with_it(members, "module");
    with_it(members, "for");
    let module = members.optional("module", MODULE, |value| OwnModule::parse(value.as_str()?));
    let time = |value: &Value| {
        let time = config::duration(value.as_str()?)?;
        let is_short = (Duration::from_secs(1)..=LONGEST).contains(&time);
        is_short.then_some(time)
    };
    let time = match raises {
        true => members.required("for", FOR, time),
        false => members.optional("for", FOR, time),
    };
    members.finish()?;
    let (Some(Some(level)), Some(time)) = (level, time) else {
        let changed = restore_level(None);
        note_restored(changed);
        return Ok(json!({ "level": "configured", "changed": changed }));
    };
    if configured_level().is_some_and(|configured| configured >= level) {
        return Ok(json!({ "level": "configured", "changed": false }));
    }
    let module = module.unwrap_or_default();
    let until = call.context.clock.now().unix();
    let until = Timestamp::from_unix(until.saturating_add(time.as_secs())).to_string();
    let number = raise_level(level, module.clone());
    tracing::warn!(%level, module = module.name(), %until, "the level of events is raised");
    tokio::spawn(async move {
        tokio::time::sleep(time).await;
        note_restored(restore_level(Some(number)));
    });
    Ok(json!({
        "level": level.as_str().to_ascii_lowercase(), "module": module.name(), "until": until, "changed": true,
    }))
}

fn note_restored(changed: bool) {
    if changed {
        tracing::info!("the level of events is that of the configuration again");
    }
}
