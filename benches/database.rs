//! The PostgreSQL server of a measurement, which `.ci/postgres.sh` starts.

use tokio_postgres::{Client, Config, NoTls};
use uuid::Uuid;

/// A new schema of the server that `PORTVAKT_BENCH_POSTGRES` names; `None` without a server.
pub(crate) async fn schema() -> Option<Config> {
    let server = std::env::var("PORTVAKT_BENCH_POSTGRES").ok()?;
    let mut config: Config = server.parse().unwrap();
    let name = format!("bench_{}", Uuid::new_v4().simple());
    let client = connect(&config).await;
    let make = format!("CREATE SCHEMA {name}");
    client.batch_execute(&make).await.unwrap();
    config.options(format!("-c search_path={name}"));
    Some(config)
}

/// A connection.
pub(crate) async fn connect(config: &Config) -> Client {
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
