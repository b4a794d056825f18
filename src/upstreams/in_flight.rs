//! Limits the number of concurrent requests at the core, in total and per TPP (ERR-4, HTTP-9).
//!
//! A request counts from before it is sent until its answer has ended, even if its caller has disconnected: resetting streams
//! does not free capacity. While a limit is reached, a request waits for a moment. Requests of known TPPs wait before they are judged:
//! refusing a request after its checks costs most of what serving it does, so many requests at once would leave little CPU time for
//! those that are served. Such a request takes its [`RequestRoom`] through its checks, which no later request can take from it. Others, and
//! those that were judged while there was room, wait after their checks. The TPPs with waiting requests get room in turn, each for its
//! longest waiting one. Deliberately not here: rates (QUO-12), which limit requests per second.

use crate::{
    interface::{Reason, TppId},
    telemetry::{CutCause, Telemetry},
};
use std::{
    collections::{HashMap, VecDeque, hash_map::RandomState},
    fmt,
    hash::BuildHasher,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::oneshot::{Receiver, Sender, channel},
    time::timeout,
};

/// The longest that a request waits for room before it is refused. Over HTTP/1.1 its connection sends no other request meanwhile.
const PATIENCE: Duration = Duration::from_millis(500);

/// The number of concurrent requests at the core.
pub struct InFlight {
    /// TPPs are distinguished by a hash with a random key, which no outsider can predict.
    hasher: RandomState,
    counts: Mutex<Counts>,
    /// How many of the limits are reached; read without the lock. At least one is while a request waits.
    reached: AtomicUsize,
    telemetry: Arc<Telemetry>,
}

#[derive(Default)]
struct Counts {
    /// The limits: in total, and per TPP.
    total: usize,
    per_tpp: usize,
    all: usize,
    reached: usize,
    by_tpp: HashMap<u64, Count>,
    /// The TPPs with waiting requests.
    turns: VecDeque<u64>,
}

/// The requests of one TPP, and those that wait, the first one first.
#[derive(Default)]
struct Count {
    number: usize,
    waiting: VecDeque<Sender<RequestRoom>>,
    is_in_turns: bool,
}

/// Room for one request of a TPP, which counts as in flight until this is dropped.
#[must_use]
#[derive(Debug)]
pub struct RequestRoom {
    /// `None` if it does not count.
    all: Option<Arc<InFlight>>,
    tpp: u64,
    has_waited: bool,
}

impl RequestRoom {
    /// Whether this is room for a request of this TPP.
    fn fits(&self, all: &Arc<InFlight>, tpp: u64) -> bool {
        let own = self.all.as_ref();
        self.tpp == tpp && own.is_some_and(|own| Arc::ptr_eq(own, all))
    }
}

impl Drop for RequestRoom {
    fn drop(&mut self) {
        if let Some(all) = self.all.take() {
            all.release(self.tpp);
        }
    }
}

/// The limit that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// That of all requests.
    Core,
    /// That of the TPP.
    Tpp,
}

impl Full {
    /// The reason for refusing a request.
    pub const fn reason(self) -> Reason {
        match self {
            Self::Core => Reason::Overloaded,
            Self::Tpp => Reason::TooManyAtOnce,
        }
    }

    const fn cause(self) -> CutCause {
        match self {
            Self::Core => CutCause::CoreBusy,
            Self::Tpp => CutCause::CoreBusyWithTpp,
        }
    }
}

/// When a request gets room.
enum Turn {
    Now(RequestRoom),
    /// Later; with the limit that is reached.
    Later(Receiver<RequestRoom>, Full),
}

impl fmt::Debug for InFlight {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("InFlight").finish_non_exhaustive()
    }
}

impl InFlight {
    /// Creates the limits: in total, and per TPP.
    pub fn new(total: usize, per_tpp: usize, telemetry: Arc<Telemetry>) -> Self {
        Self {
            hasher: RandomState::new(),
            counts: Mutex::new(Counts {
                total,
                per_tpp,
                ..Counts::default()
            }),
            reached: AtomicUsize::new(0),
            telemetry,
        }
    }

    /// Sets the limits of a reload. The requests at the core stay counted, also beyond a lower limit, and TPPs keep their marks.
    pub(super) fn set_limits(self: &Arc<Self>, total: usize, per_tpp: usize) {
        let Ok(mut guard) = self.counts.lock() else {
            return;
        };
        let counts = &mut *guard;
        if (counts.total, counts.per_tpp) == (total, per_tpp) {
            return;
        }
        (counts.total, counts.per_tpp) = (total, per_tpp);
        let own = counts.by_tpp.values();
        let reached = own.filter(|own| own.number >= per_tpp).count();
        counts.reached = reached.saturating_add(usize::from(counts.all >= total));
        // A higher limit may have room for several requests of one TPP.
        let mut before = None;
        while before != Some(counts.all) {
            before = Some(counts.all);
            self.take_turns(counts);
        }
        self.reached.store(counts.reached, Ordering::Relaxed);
    }

    /// Whether no limit is reached, of any TPP.
    pub fn is_free(&self) -> bool {
        self.reached.load(Ordering::Relaxed) == 0
    }

    /// Waits for room for a request of this TPP.
    ///
    /// # Errors
    /// There is none in time, because of this limit.
    pub async fn await_room(self: &Arc<Self>, tpp: &TppId) -> Result<RequestRoom, Full> {
        self.wait(self.hash(Some(tpp))).await
    }

    /// Counts a request of this TPP, or of the unidentified ones, as soon as there is room. A request that has room counts already.
    ///
    /// # Errors
    /// There is no room in time, because of this limit.
    pub async fn begin(
        self: &Arc<Self>,
        tpp: Option<&TppId>,
        room: Option<RequestRoom>,
    ) -> Result<InFlightRequest, Full> {
        let tpp = self.hash(tpp);
        let room = match room.filter(|room| room.fits(self, tpp)) {
            Some(room) => room,
            None => self.wait(tpp).await?,
        };
        self.telemetry.core_has_request();
        let all = Arc::clone(self);
        Ok(InFlightRequest {
            all,
            room,
            is_at_core: true,
        })
    }

    fn hash(&self, tpp: Option<&TppId>) -> u64 {
        self.hasher.hash_one(tpp)
    }

    async fn wait(self: &Arc<Self>, tpp: u64) -> Result<RequestRoom, Full> {
        match self.queue(tpp)? {
            Turn::Now(room) => Ok(room),
            Turn::Later(turn, full) => {
                let room = timeout(PATIENCE, turn).await.ok().and_then(Result::ok);
                room.ok_or_else(|| self.refuse(full))
            }
        }
    }

    /// Counts a request that is refused.
    fn refuse(&self, full: Full) -> Full {
        self.telemetry.cut(full.cause());
        full
    }

    /// Takes room for a request of this TPP, or queues the request.
    fn queue(self: &Arc<Self>, tpp: u64) -> Result<Turn, Full> {
        let mut guard = self.counts.lock().map_err(|_| Full::Core)?;
        let counts = &mut *guard;
        let Err(full) = self.take(counts, tpp) else {
            return Ok(Turn::Now(self.room(tpp, false)));
        };
        let own = counts.by_tpp.entry(tpp).or_default();
        // Every request waits equally long, so those that have given up are at the front.
        while own.waiting.front().is_some_and(Sender::is_closed) {
            own.waiting.pop_front();
        }
        let (sender, receiver) = channel();
        own.waiting.push_back(sender);
        if !own.is_in_turns {
            own.is_in_turns = true;
            counts.turns.push_back(tpp);
        }
        Ok(Turn::Later(receiver, full))
    }

    fn room(self: &Arc<Self>, tpp: u64, has_waited: bool) -> RequestRoom {
        RequestRoom {
            all: Some(Arc::clone(self)),
            tpp,
            has_waited,
        }
    }

    /// Counts a request.
    ///
    /// # Errors
    /// The limit that is reached.
    fn take(&self, counts: &mut Counts, tpp: u64) -> Result<(), Full> {
        if counts.all >= counts.total {
            return Err(Full::Core);
        }
        let own = counts.by_tpp.entry(tpp).or_default();
        if own.number >= counts.per_tpp {
            return Err(Full::Tpp);
        }
        own.number = own.number.saturating_add(1);
        counts.all = counts.all.saturating_add(1);
        let reached = usize::from(own.number == counts.per_tpp);
        let reached = usize::from(counts.all == counts.total).saturating_add(reached);
        counts.reached = counts.reached.saturating_add(reached);
        self.reached.store(counts.reached, Ordering::Relaxed);
        Ok(())
    }

    /// Ends the count of a request, and gives its room to one that waits.
    fn release(self: &Arc<Self>, tpp: u64) {
        let Ok(mut guard) = self.counts.lock() else {
            return;
        };
        let counts = &mut *guard;
        let Some(own) = counts.by_tpp.get_mut(&tpp) else {
            return;
        };
        let left = usize::from(own.number == counts.per_tpp);
        let left = usize::from(counts.all == counts.total).saturating_add(left);
        own.number = own.number.saturating_sub(1);
        if own.number == 0 && !own.is_in_turns {
            counts.by_tpp.remove(&tpp);
        }
        counts.all = counts.all.saturating_sub(1);
        counts.reached = counts.reached.saturating_sub(left);
        self.take_turns(counts);
        self.reached.store(counts.reached, Ordering::Relaxed);
    }

    /// Gives room to one waiting request of each TPP in turn, while there is room.
    fn take_turns(self: &Arc<Self>, counts: &mut Counts) {
        for _ in 0..counts.turns.len() {
            if counts.all >= counts.total {
                break;
            }
            self.take_turn(counts);
        }
    }

    /// Gives room to the longest waiting request of the next TPP, if that TPP may have one more.
    fn take_turn(self: &Arc<Self>, counts: &mut Counts) {
        let Some(tpp) = counts.turns.pop_front() else {
            return;
        };
        let Some(own) = counts.by_tpp.get_mut(&tpp) else {
            return;
        };
        let mut is_given = false;
        while own.number < counts.per_tpp
            && !is_given
            && let Some(next) = own.waiting.pop_front()
        {
            match next.send(self.room(tpp, true)) {
                Ok(()) => is_given = true,
                // The request was given up.
                Err(mut room) => room.all = None,
            }
        }
        own.is_in_turns = !own.waiting.is_empty();
        let is_left = own.is_in_turns || own.number > 0;
        if own.is_in_turns {
            counts.turns.push_back(tpp);
        }
        if is_given {
            let _ = self.take(counts, tpp);
        } else if !is_left {
            counts.by_tpp.remove(&tpp);
        }
    }
}

/// A counted request; dropping it ends the count.
#[must_use]
#[derive(Debug)]
pub struct InFlightRequest {
    all: Arc<InFlight>,
    room: RequestRoom,
    /// Whether the core still has the request, as the metric counts it.
    is_at_core: bool,
}

/// A TPP, told apart from others in one group. Not for a log: it is no name, and changes with the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TppMark(pub(super) u64);

impl InFlightRequest {
    /// The TPP of the request.
    pub const fn tpp(&self) -> TppMark {
        TppMark(self.room.tpp)
    }

    /// Whether the request has waited for room: its caller may have left meanwhile.
    pub const fn has_waited(&self) -> bool {
        self.room.has_waited
    }

    /// Notes that the core has sent all of its answer. The request keeps its room until its caller has it, so that callers who take
    /// nothing get no further ones.
    pub fn core_has_answered(&mut self) {
        if std::mem::take(&mut self.is_at_core) {
            self.all.telemetry.core_has_answered();
        }
    }
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        self.core_has_answered();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(total: usize, per_tpp: usize) -> Arc<InFlight> {
        Arc::new(InFlight::new(
            total,
            per_tpp,
            Arc::new(Telemetry::new(None)),
        ))
    }

    fn tpp(id: u32) -> TppId {
        TppId::parse(&format!("PSDNO-FSA-{id}")).unwrap()
    }

    fn is_empty(all: &InFlight) -> bool {
        let counts = all.counts.lock().unwrap();
        let left = (counts.all, counts.by_tpp.len(), counts.turns.len());
        left == (0, 0, 0) && all.is_free()
    }

    #[tokio::test]
    async fn in_all_and_of_one_tpp() {
        let all = limits(3, 2);
        let [a, b, c] = [1, 2, 3].map(tpp);
        let first = all.begin(Some(&a), None).await.unwrap();
        let second = all.begin(Some(&a), None).await.unwrap();
        assert_eq!(all.begin(Some(&a), None).await.unwrap_err(), Full::Tpp);
        let other = all.begin(Some(&b), None).await.unwrap();
        assert_eq!(all.begin(Some(&c), None).await.unwrap_err(), Full::Core);
        drop(first);
        assert!(all.begin(Some(&a), None).await.is_ok());
        drop((second, other));
        assert!(is_empty(&all));
    }

    #[tokio::test]
    async fn a_request_waits_for_room() {
        for (total, per_tpp, other) in [(9, 2, 1), (2, 9, 2)] {
            let all = limits(total, per_tpp);
            let [a, other] = [1, other].map(tpp);
            let mut begun = Vec::new();
            for _ in 0..2 {
                begun.push(all.begin(Some(&a), None).await.unwrap());
            }
            assert!(!all.is_free());
            let ending = async {
                tokio::task::yield_now().await;
                drop(begun.pop());
                // The room is that of the waiting request, before that one goes on.
                assert!(all.begin(Some(&other), None).await.is_err());
            };
            let (room, ()) = tokio::join!(all.await_room(&other), ending);
            let own = all.begin(Some(&other), room.ok()).await;
            assert!(own.is_ok() && !all.is_free());
            drop((own, begun));
            assert!(is_empty(&all));
        }
    }

    #[cfg(feature = "sandbox")]
    #[tokio::test(start_paused = true)]
    async fn a_request_waits_for_half_a_second() {
        let (all, a) = (limits(1, 1), tpp(1));
        let first = all.begin(Some(&a), None).await.unwrap();
        let watch = crate::clock::Stopwatch::start();
        assert!(all.await_room(&a).await.is_err());
        let late = PATIENCE + Duration::from_millis(2);
        assert!((PATIENCE..late).contains(&watch.elapsed()));
        drop(first);
        assert!(is_empty(&all));
    }

    /// They were judged while there was room.
    #[tokio::test]
    async fn judged_requests_wait_too() {
        let all = limits(9, 1);
        let a = tpp(1);
        let one = async {
            let begun = all.begin(Some(&a), None).await.unwrap();
            tokio::task::yield_now().await;
            drop(begun);
        };
        let another = async { drop(all.begin(Some(&a), None).await.unwrap()) };
        let third = async { drop(all.begin(Some(&a), None).await.unwrap()) };
        tokio::join!(one, another, third);
        assert!(is_empty(&all));
    }

    #[tokio::test]
    async fn requests_stay_counted_when_limits_change() {
        let all = limits(9, 2);
        let (a, b) = (tpp(1), tpp(2));
        let begin = |tpp| all.begin(Some(tpp), None);
        let begun = (begin(&a).await.unwrap(), begin(&a).await.unwrap());
        let mark = begun.0.tpp();
        all.set_limits(9, 9);
        assert!(all.is_free());
        let third = begin(&a).await.unwrap();
        assert_eq!(third.tpp(), mark);
        // Lower than the number that it has.
        all.set_limits(9, 1);
        assert!(!all.is_free());
        drop(begun.0);
        assert_eq!(begin(&a).await.unwrap_err(), Full::Tpp);
        drop(begin(&b).await.unwrap());
        drop(begun.1);
        assert_eq!(begin(&a).await.unwrap_err(), Full::Tpp);
        all.set_limits(1, 9);
        assert_eq!(begin(&b).await.unwrap_err(), Full::Core);
        // Those that wait get all of the new room.
        let waiting = async { tokio::join!(begin(&a), begin(&a), begin(&b)) };
        let raise = async { all.set_limits(3, 9) };
        let (waited, ()) = tokio::join!(waiting, raise);
        let (one, two, other) = (waited.0.ok(), waited.1.ok(), waited.2.ok());
        let got = [&one, &two, &other].map(Option::is_some);
        assert_eq!(got.iter().filter(|got| **got).count(), 2, "{got:?}");
        assert!(other.is_some() && !all.is_free());
        drop((third, one, two, other));
        assert!(is_empty(&all) && all.is_free());
    }

    #[tokio::test]
    async fn tpps_get_room_in_turn() {
        let all = limits(1, 1);
        let [a, b] = [1, 2].map(tpp);
        let begun = all.begin(Some(&a), None).await;
        let order = Mutex::new(Vec::new());
        let one = |tpp, name| {
            let (all, order) = (&all, &order);
            async move {
                let room = all.await_room(tpp).await;
                order.lock().unwrap().push(name);
                drop(all.begin(Some(tpp), room.ok()).await.unwrap());
            }
        };
        let ending = async { drop(begun) };
        tokio::join!(
            one(&a, "a1"),
            one(&a, "a2"),
            one(&a, "a3"),
            one(&b, "b"),
            ending
        );
        assert_eq!(order.into_inner().unwrap(), ["a1", "b", "a2", "a3"]);
        assert!(is_empty(&all));
    }

    #[tokio::test]
    async fn room_that_a_request_does_not_use_goes_to_the_next() {
        let all = limits(9, 1);
        let [a, b] = [1, 2].map(tpp);
        let begun = all.begin(Some(&a), None).await;
        let refused = async { drop(all.await_room(&a).await.unwrap()) };
        let signed_by_another = async {
            let room = all.await_room(&a).await;
            assert!(room.is_ok());
            drop(all.begin(Some(&b), room.ok()).await.unwrap());
        };
        let ending = async { drop(begun) };
        tokio::join!(refused, signed_by_another, ending);
        assert!(is_empty(&all));
    }

    #[tokio::test]
    async fn a_request_that_waited_in_vain_leaves_nothing() {
        let all = limits(9, 1);
        let [a, b] = [1, 2].map(tpp);
        let begun = all.begin(Some(&a), None).await.unwrap();
        let (first, second) = tokio::join!(all.await_room(&a), all.await_room(&a));
        assert!(first.is_err() && second.is_err());
        assert!(all.await_room(&b).await.is_ok(), "the limit is of one TPP");
        drop(begun);
        assert!(is_empty(&all));
    }
}
