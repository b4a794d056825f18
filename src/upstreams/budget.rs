//! The budget of retries: a share of the requests, so that a core which fails does not get twice the load (FWD-3).

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The cost of a retry. A request pays in as many as its percentage.
const RETRY: u32 = 100;

/// The balance at the start: ten retries, for a group with few requests.
const START: u32 = 10 * RETRY;

/// The highest balance: a burst of a hundred retries.
const MOST: u32 = 100 * RETRY;

/// A budget.
#[derive(Debug)]
pub(super) struct RetryBudget {
    percent: u32,
    balance: AtomicU32,
}

impl RetryBudget {
    /// A budget of retries, in percent of requests.
    pub(super) const fn new(percent: u32) -> Self {
        let balance = if percent == 0 { 0 } else { START };
        Self {
            percent,
            balance: AtomicU32::new(balance),
        }
    }

    /// Counts a request.
    pub(super) fn pay_in(&self) {
        if self.balance.load(Relaxed) < MOST {
            self.balance.fetch_add(self.percent, Relaxed);
        }
    }

    /// Takes a retry, if there is one left.
    pub(super) fn take(&self) -> bool {
        let taken = self
            .balance
            .fetch_update(Relaxed, Relaxed, |balance| balance.checked_sub(RETRY));
        taken.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retries(budget: &RetryBudget) -> usize {
        std::iter::repeat_with(|| budget.take())
            .take_while(|taken| *taken)
            .count()
    }

    #[test]
    fn a_fifth_of_the_requests() {
        let budget = RetryBudget::new(20);
        assert_eq!(retries(&budget), 10);
        for (requests, left) in [(4, 0), (1, 1), (50, 10), (100_000, 100)] {
            (0..requests).for_each(|_| budget.pay_in());
            assert_eq!(retries(&budget), left, "{requests}");
        }
        let none = RetryBudget::new(0);
        none.pay_in();
        assert_eq!(retries(&none), 0);
    }
}
