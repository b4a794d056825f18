//! What operators look at, beside metrics and logs: who sends most, and the open connections.

use super::{Connected, SeenConnections, Telemetry, TopCounts};
use std::{net::IpAddr, sync::Weak};

impl Telemetry {
    /// Counts a new connection of this caller, also one that is closed at once.
    pub fn connection_from(&self, caller: IpAddr) {
        self.top.connected(caller);
    }

    /// Counts an accepted connection.
    pub fn connection_opened(&self) {
        self.edge.connections.inc();
    }

    /// Counts a closed connection, by its number if its handshake was completed.
    pub fn connection_closed(&self, number: Option<u64>) {
        self.edge.connections.dec();
        if let Some(number) = number {
            self.connections.close(number);
        }
    }

    /// Who has sent most in the last minutes: of each kind at most `most`.
    pub fn top(&self, most: usize) -> TopCounts {
        self.top.counts(most)
    }

    /// Notes a connection after its handshake; returns its number.
    pub fn connected(&self, connection: Weak<dyn Connected>) -> u64 {
        self.connections.open(connection)
    }

    /// The connections that are open after their handshakes, with the `most` oldest and busiest ones; and the number of all, handshakes
    /// included.
    pub fn connections(&self, most: usize) -> (SeenConnections, i64) {
        (self.connections.look(most), self.edge.connections.get())
    }
}
