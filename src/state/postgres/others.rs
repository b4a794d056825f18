//! The hosts of the URL, asked in the background whether one of them has become the primary.
//!
//! The connections of a gateway show it only the server that they lead to. A primary that another one replaced goes on as long as a standby
//! confirms its commits, and would be used until a connection happens to end. So each host has a connection of its own, which is asked
//! every second; a higher timeline ends the use of the present primary. Deliberately not here: anything that a request waits for.

use super::{
    connect::{Connector, text},
    fence::PrimaryIdentity,
    session::Driver,
    settings::PlantedFault,
    shared::Shared,
};
use std::{sync::Arc, time::Duration};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_postgres::{Client, Error};

/// The pause between two questions.
const INTERVAL: Duration = Duration::from_secs(1);

/// The time for an answer, with a new connection.
const PATIENCE: Duration = Duration::from_secs(2);

/// The cluster, and the timeline of a primary.
const STANDING: &str = "SELECT system_identifier::text, CASE WHEN NOT pg_is_in_recovery()
    THEN ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint END FROM pg_control_system()";

/// Asks every host until the task is ended. With one host there is nothing to ask.
pub(super) async fn watch(shared: Arc<Shared>) {
    let hosts = shared.settings.server.get_hosts().len();
    if hosts < 2 || shared.settings.has_planted(PlantedFault::NoFencing) {
        return;
    }
    let mut watching = JoinSet::new();
    for host in 0..hosts {
        watching.spawn(watch_host(Arc::clone(&shared), host));
    }
    while watching.join_next().await.is_some() {}
}

async fn watch_host(shared: Arc<Shared>, host: usize) {
    let connector = &shared.connector;
    let mut open = None;
    loop {
        sleep(INTERVAL).await;
        let outcome = timeout(PATIENCE, ask(connector, host, &mut open)).await;
        let outcome = outcome.unwrap_or_else(|_| Err("no answer".to_owned()));
        if let Err(fault) = outcome {
            open = None;
            tracing::debug!(host, fault, "a host of the database cannot be asked");
        }
    }
}

/// Asks a host, and notes its timeline if it is a primary.
async fn ask(
    connector: &Connector,
    host: usize,
    open: &mut Option<(Client, Driver)>,
) -> Result<(), String> {
    if open.is_none() {
        *open = Some(connector.connect_to(host).await?);
    }
    let Some((client, _)) = open else {
        return Ok(());
    };
    let fault = |error: Error| text(&error);
    let row = client.query_one(STANDING, &[]).await.map_err(fault)?;
    if let Some(timeline) = row.try_get(1).map_err(fault)? {
        let system = row.try_get(0).map_err(fault)?;
        // A former primary, or a server of another cluster, is refused where it would be used.
        let _ = connector.fence.admit(&PrimaryIdentity { system, timeline });
    }
    Ok(())
}
