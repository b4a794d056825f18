//! Taking an endpoint out and back, as an operator asks.

use super::{DrainFault, Endpoint, Group, Tally};
use std::sync::{Arc, PoisonError};

impl Group {
    /// Takes an endpoint out: it gets no new request until it is restored, and those that it has are completed. A group keeps one that is
    /// healthy. True if that changed it.
    ///
    /// # Errors
    /// [`DrainFault`]; nothing has changed.
    pub fn drain(&self, label: &str) -> Result<bool, DrainFault> {
        // Two at a time would leave none.
        let _turn = self.ejecting.lock().unwrap_or_else(PoisonError::into_inner);
        let tally = self.tally(label)?;
        let members = self.members.list();
        let is_own = |endpoint: &Endpoint| Arc::ptr_eq(endpoint.tally(), tally);
        let mut others = members.iter().filter(|(_, one)| !is_own(one));
        if !others.any(|member| self.may_serve(member)) {
            return Err(DrainFault::Needed);
        }
        let has_changed = tally.set_drained(true);
        for (_, endpoint) in members.iter().filter(|(_, one)| is_own(one)) {
            if let Some(pool) = endpoint.pool() {
                pool.close();
            }
        }
        Ok(has_changed)
    }

    /// Takes a drained endpoint back. True if that changed it.
    ///
    /// # Errors
    /// [`DrainFault::Unknown`]
    pub fn restore(&self, label: &str) -> Result<bool, DrainFault> {
        Ok(self.tally(label)?.set_drained(false))
    }

    fn tally(&self, label: &str) -> Result<&Arc<Tally>, DrainFault> {
        let mut tallies = self.members.tallies();
        tallies
            .find(|tally| tally.of.endpoint == label)
            .ok_or(DrainFault::Unknown)
    }
}
