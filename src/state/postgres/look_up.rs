//! Looking rows up, on the connection that no transaction uses.

use super::{
    blocks,
    connect::{Link, text},
    moves,
    shared::Shared,
};
use crate::{Unavailable, blocks::Standing, lock::lock};
use portvakt_base::clock::Stopwatch;
use std::{sync::Arc, time::Duration};
use tokio::time::{sleep, timeout};
use tokio_postgres::{Row, Statement, types::ToSql};

/// The time for an answer.
const LOOKUP: Duration = Duration::from_secs(2);

/// The time in which the connection is opened again: the follower finds out within a quarter of a second that it ended.
const REOPENED: Duration = Duration::from_millis(500);

/// The connection. Where it ended, it is waited for, as long as the database is heard. Where this process stood still, the next proof is
/// waited for: the connection may lead to a server that was replaced meanwhile.
pub(super) async fn reader(shared: &Shared) -> Result<Arc<Link>, Unavailable> {
    let waited = Stopwatch::start();
    loop {
        let is_proven = shared.freshness.of_memory().is_some();
        let link = lock(&shared.reader).clone();
        let link = link.filter(|link| shared.connector.is_usable(link));
        let (fault, limit) = match link {
            Some(link) if is_proven => return Ok(link),
            Some(_) => ("the database is not heard", LOOKUP),
            None => ("the connection is opened again", REOPENED),
        };
        if let Some(fault) = lock(&shared.fault).fault.clone() {
            return Err(Unavailable(fault));
        }
        if waited.elapsed() >= limit {
            return Err(Unavailable(fault.to_owned()));
        }
        sleep(Duration::from_millis(10)).await;
    }
}

/// The answer to a question that was sent on the connection.
pub(super) async fn answer<T>(
    shared: &Shared,
    link: &Link,
    question: impl Future<Output = Result<T, String>>,
) -> Result<T, Unavailable> {
    let level = async {
        let row = link.client.query_one(&link.statements.key_checks, &[]);
        let value = row.await.and_then(|row| row.try_get::<_, String>(0));
        value.map_err(|error| text(&error))
    };
    // The questions are sent in this order. What the database answers about its level is not older than the rows.
    let asked = async { tokio::try_join!(biased; question, level) };
    let found = timeout(LOOKUP, asked)
        .await
        .map_err(|_| Unavailable(format!("no answer for {} s", LOOKUP.as_secs())))?;
    let (found, level) = found.map_err(Unavailable)?;
    shared.connector.judge_level(&level).map_err(Unavailable)?;
    // A former primary does not know what the newer one has decided, nor may its rows get into the cache after that was cleared.
    if !shared.connector.fence.is_current(&link.origin) {
        return Err(Unavailable("there is a newer primary".to_owned()));
    }
    Ok(found)
}

/// The rows of a statement.
///
/// # Errors
/// The reason for the operator.
pub(super) async fn rows(
    link: &Link,
    statement: &Statement,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>, String> {
    let found = link.client.query(statement, parameters).await;
    found.map_err(|error| text(&error))
}

/// Every block and every move of a TPP (CTL-2, CTL-4). A change between the two questions is heard of, and both are asked again.
///
/// # Errors
/// The reason for the operator.
pub(super) async fn standing(link: &Link) -> Result<Standing, String> {
    let (found, moved) = tokio::try_join!(
        biased;
        rows(link, &link.statements.blocks, &[]),
        rows(link, &link.statements.moves, &[]),
    )?;
    let blocks = blocks::all(&found).map_err(|fault| fault.to_string())?;
    let moves = moves::all(&moved).map_err(|fault| fault.to_string())?;
    Ok(Standing { blocks, moves })
}
