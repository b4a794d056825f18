//! An admitted request on its way to the core: it is judged again where it waited (CTL-2, SCA-13, SCA-23), and where what is known of its PSU
//! has grown old (SCA-6).
//!
//! Between the judgement of a request and its head lie a place at the core, the audit, a connection and earlier tries: seconds, and more
//! where the gateway stood still. Meanwhile the bank may block the TPP, take back a binding or a consent, or change its list, and expects
//! that the core gets nothing more. Invariant: the head for the core is written from a [`Fresh`], which [`UnderWay::refresh`] alone makes,
//! after a look at the clock, and which cannot be kept: it is not `Send`, so no future of the gateway holds one while it waits. What remains
//! is a stop between that look and the write of the head.

use super::Admitted;
use crate::{
    admission::{
        Grant, Judged, ObservedFault, Snapshot, Stage,
        enforcement::{Caller, Ruling, Whose},
        sca,
        standing::Present,
    },
    clock::{BootTime, Clock, Timestamp},
    interface::{Reason, Refusal, operations::Quota},
    state::StateStore,
};
use std::{marker::PhantomData, time::Duration};

/// The most times that the store is asked for one head: its answers may be too old already where it is slow.
const ASKS: usize = 3;

/// The longest wait after which a request goes on by its earlier judgement: a part of the 100 ms of CTL-2.
const WAIT: Duration = Duration::from_millis(20);

/// An admitted request, and what it is judged by again.
#[derive(Debug)]
pub struct UnderWay<'a> {
    admitted: &'a mut Admitted,
    snapshot: &'a Snapshot,
    present: &'a dyn Present,
    store: &'a StateStore,
    observed: Vec<ObservedFault>,
}

/// The proof that the sender's standing was judged a moment ago, and that what is known of the PSU is at most a second old. Use it at once.
#[must_use]
#[derive(Debug)]
pub struct Fresh<'a> {
    admitted: &'a Admitted,
    _used_at_once: PhantomData<*const ()>,
}

impl<'a> Fresh<'a> {
    /// A head that goes nowhere, for benchmarks and tests: reads the clock, and takes any age.
    #[cfg(feature = "sandbox")]
    pub(crate) fn of_any_age(admitted: &'a Admitted) -> Self {
        let now = BootTime::now();
        let waited = admitted.judged.moment.until(now) > WAIT;
        let is_fresh = |grant: &Grant| grant.is_fresh_at(now);
        std::hint::black_box(waited || admitted.grant().is_none_or(is_fresh));
        Self {
            admitted,
            _used_at_once: PhantomData,
        }
    }

    /// The request.
    pub const fn admitted(&self) -> &Admitted {
        self.admitted
    }
}

impl<'a> UnderWay<'a> {
    /// `snapshot` and `store` judged the request; `present` is the configuration in use.
    pub const fn new(
        admitted: &'a mut Admitted,
        snapshot: &'a Snapshot,
        present: &'a dyn Present,
        store: &'a StateStore,
    ) -> Self {
        Self {
            admitted,
            snapshot,
            present,
            store,
            observed: Vec::new(),
        }
    }

    /// The request.
    pub const fn admitted(&self) -> &Admitted {
        self.admitted
    }

    /// The faults of SCA that came up on the way and are only observed (FWD-6).
    pub fn observed(self) -> Vec<ObservedFault> {
        self.observed
    }

    /// Judges by the clock how long the request waited, and how old what is known is; judges the request again where it waited, and asks the
    /// store where that is more than a second.
    ///
    /// # Errors
    /// By what is known now, the request is refused; or that cannot be known: the core must not get the request.
    pub async fn refresh(&mut self, clock: &Clock) -> Result<Fresh<'_>, Refusal> {
        let mut now = BootTime::now();
        let mut is_due = self.admitted.judged.moment.until(now) > WAIT;
        if is_due {
            self.judge_standing(now, clock.now()).await?;
        }
        let mut asks = 0;
        while is_due || !self.is_fresh_at(now) {
            is_due = false;
            if asks == ASKS {
                return Err(unavailable("the state answers too slowly"));
            }
            asks += 1;
            if self.admitted.grant().is_some() {
                self.admitted.judgement = self.admitted.judgement.wrapping_add(1);
                self.ask(clock.now()).await?;
            }
            now = BootTime::now();
        }
        Ok(Fresh {
            admitted: self.admitted,
            _used_at_once: PhantomData,
        })
    }

    fn is_fresh_at(&self, now: BootTime) -> bool {
        let is_fresh = |grant: &Grant| grant.is_fresh_at(now);
        self.admitted.grant().is_none_or(is_fresh)
    }

    /// Judges again whether the bank or a register turns the sender away.
    #[cold]
    async fn judge_standing(&mut self, now: BootTime, at: Timestamp) -> Result<(), Refusal> {
        let question = self.admitted.question(self.snapshot);
        let decided = Box::pin(question.decide(self.present, self.store, at));
        let _standing = decided.await?;
        self.admitted.judged.moment = now;
        Ok(())
    }

    /// Judges the requirement on the PSU again.
    #[cold]
    async fn ask(&mut self, at: Timestamp) -> Result<(), Refusal> {
        let (admitted, snapshot) = (&*self.admitted, self.snapshot);
        let Some(again) = admitted.again(snapshot) else {
            return Err(Refusal::new(Reason::Internal).for_operator("nobody to judge again"));
        };
        let request = again.request(admitted, snapshot);
        let judged = Box::pin(sca::judge(&request, &admitted.links, self.store, at)).await;
        let refusal = match judged {
            Ok(grant) if self.is_claimed_by(&grant) => {
                self.admitted.grant = Judged::Held(grant);
                return Ok(());
            }
            Ok(_) => unavailable("what is known of the PSU changed while the request waited"),
            Err(refusal) => refusal,
        };
        let tpp = self.admitted.tpp();
        let whose = Whose::Of(Caller::proven(tpp.map(|tpp| tpp.certificate().tpp_id())));
        let ruling = snapshot.policy.enforcement.rule(Stage::Sca, refusal, whose);
        let Ruling { observed, decision } = ruling;
        let waiver = decision?;
        let reasons = observed.iter().map(|fault| fault.reason);
        self.admitted.observed.extend(reasons);
        self.observed.extend(observed);
        self.admitted.grant = Judged::Waived(waiver);
        Ok(())
    }

    /// Whether the headers and the call of the quota that the request has follow from this grant too. Both grants name ids of one request: an
    /// id is named or not, and in the key of a quota it matters who stated it.
    fn is_claimed_by(&self, grant: &Grant) -> bool {
        let is_counted = self.admitted.operation.quota != Quota::None;
        self.admitted.grant().is_some_and(|claimed| {
            let (psu, corporate) = (claimed.named_psu(), claimed.named_corporate());
            let names_the_same = psu.is_some() == grant.named_psu().is_some()
                && corporate.is_some() == grant.named_corporate().is_some();
            let counts_the_same = psu == grant.named_psu()
                && corporate == grant.named_corporate()
                && claimed.session().is_some() == grant.session().is_some();
            names_the_same && (counts_the_same || !is_counted)
        })
    }
}

fn unavailable(text: &str) -> Refusal {
    Refusal::new(Reason::StateUnavailable).for_operator(text)
}
