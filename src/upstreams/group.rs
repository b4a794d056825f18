//! A group of endpoints in use: it chooses the endpoint of each request (FWD-3).
//!
//! pingora's `LoadBalancer` selects by weighted round robin among the endpoints that its health registry calls healthy; docs/decisions
//! says which of its parts are used. A group of one unchecked endpoint needs no selection, and pays for none. Deliberately not here:
//! sending requests.
//!
//! Invariant: an ejection never takes the last endpoint of a group, and never more than half of them where requests may have caused the
//! failures: what one TPP sends must not take the core from the others. Where active checks leave ejected endpoints only, these are used.

/// Taking an endpoint out and back.
mod drain;

use super::{
    budget::RetryBudget,
    check::ActiveHealth,
    endpoint::{Endpoint, Tally},
    in_flight::{InFlight, TppMark},
    inner::{GroupNames, InnerNames},
    members::{Discovery, Member, Members},
    names::{Addresses, Names},
    passive::{EjectionTurn, Failure},
};
use crate::{
    config::{Ejection, UpstreamGroup},
    interface::operations::Operation,
    telemetry::{CoreEndpoint, Telemetry},
};
use arc_swap::Guard;
use pingora_load_balancing::{Backend, Backends, LoadBalancer, selection::RoundRobin};
use std::{
    fmt,
    future::Future,
    pin::pin,
    ptr,
    sync::{Arc, Mutex, PoisonError, Weak},
    task::{Context, Poll, Waker},
    time::Duration,
};
use tokio::{runtime::Handle, time::sleep};

/// The most steps of a selection for each endpoint: other requests select at the same time, and move the round on.
const STEPS: usize = 8;

/// The pause between two searches for connections that can no longer be used.
const TENDING: Duration = Duration::from_secs(1);

/// A group of endpoints.
pub struct Group {
    settings: Arc<UpstreamGroup>,
    members: Arc<Members>,
    balancer: LoadBalancer<RoundRobin>,
    health: Option<Arc<ActiveHealth>>,
    in_flight: Arc<InFlight>,
    budget: RetryBudget,
    inner_names: GroupNames,
    /// Allows one refresh at a time.
    turn: Mutex<()>,
    /// Allows one ejection at a time, also by requests that began before a reload.
    ejecting: Arc<Mutex<EjectionTurn>>,
}

impl fmt::Debug for Group {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Group")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// The state of an endpoint as it is configured, for readiness and metrics.
#[derive(Clone, Debug)]
pub struct EndpointState {
    /// The endpoint.
    pub of: Arc<CoreEndpoint>,
    /// Its addresses that are healthy, by active checks.
    pub up: usize,
    /// Its addresses that are ejected, because their requests failed; 0 while the group has no other to use.
    pub ejected: usize,
    /// Its addresses that are healthy and not ejected.
    pub usable: usize,
    /// All its addresses; 0 for a name that was never resolved.
    pub addresses: usize,
    /// The failures since the start.
    pub failures: u64,
    /// Whether an operator has taken it out.
    pub drained: bool,
}

/// Why an endpoint is not taken out or back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrainFault {
    /// The group has none of this name.
    Unknown,
    /// No other endpoint of the group is healthy.
    Needed,
}

impl Group {
    /// Takes a group into use. Endpoints, health and counts of `before` stay where their settings are the same.
    pub(super) fn start(
        settings: &Arc<UpstreamGroup>,
        before: Option<&Self>,
        names: &Names,
        inner: &Arc<InnerNames>,
        runtime: &Handle,
        telemetry: &Arc<Telemetry>,
    ) -> Arc<Self> {
        let settings = Arc::clone(settings);
        let known = before.map(|before| &*before.members);
        let members = Members::new(Arc::clone(&settings), known, names, telemetry);
        let health = before.and_then(|before| before.health.clone());
        let health = health
            .filter(|health| health.fits(&settings))
            .or_else(|| ActiveHealth::start(&settings, runtime));
        let discovery = Box::new(Discovery(Arc::clone(&members)));
        let backends = match &health {
            Some(health) => {
                Backends::new_with_health_registry(discovery, Arc::clone(&health.registry))
            }
            None => Backends::new(discovery),
        };
        let (total, per_tpp) = (settings.max_in_flight, settings.max_in_flight_per_tpp);
        let in_flight = match before.map(|before| Arc::clone(&before.in_flight)) {
            Some(known) => {
                known.set_limits(total, per_tpp);
                known
            }
            None => Arc::new(InFlight::new(total, per_tpp, Arc::clone(telemetry))),
        };
        let group = Arc::new(Self {
            in_flight,
            budget: RetryBudget::new(settings.retry_percent),
            inner_names: GroupNames::new(inner),
            balancer: LoadBalancer::from_backends(backends),
            members,
            health,
            settings,
            turn: Mutex::new(()),
            ejecting: before.map_or_else(Arc::default, |before| Arc::clone(&before.ejecting)),
        });
        // First, so that no change is between what the refresh reads and what they report.
        let changes = group.members.name_changes();
        group.refresh();
        group.follow_names(changes, runtime);
        group.tend_pools(runtime);
        group
    }

    /// The settings.
    pub fn settings(&self) -> &Arc<UpstreamGroup> {
        &self.settings
    }

    /// The most bytes of the body of an answer to an operation (FWD-7).
    pub fn answer_limit(&self, operation: &Operation) -> usize {
        self.settings.answer_sizes.of(&operation.group)
    }

    /// The concurrent requests.
    pub const fn in_flight(&self) -> &Arc<InFlight> {
        &self.in_flight
    }

    /// The names and addresses by which only the bank's network knows the groups: this one, and all others (FWD-7).
    pub fn inner_names(&self) -> Guard<Arc<Vec<String>>> {
        self.inner_names.all()
    }

    /// Counts a request, which adds to the budget of retries.
    pub fn count_request(&self) {
        self.budget.pay_in();
    }

    /// Takes a retry of the budget; false if none is left.
    pub fn may_retry(&self) -> bool {
        self.budget.take()
    }

    /// Whether the group has another endpoint than one.
    pub fn has_others(&self) -> bool {
        self.members.list().len() > 1
    }

    /// Chooses an endpoint that is not among those `tried`; `None` if no other is healthy.
    pub fn choose(&self, tried: &[Arc<Endpoint>]) -> Option<Arc<Endpoint>> {
        let members = self.members.list();
        if let ([(_, only)], None) = (members.as_slice(), &self.health) {
            let is_free = tried.is_empty() && !only.is_drained();
            return is_free.then(|| Arc::clone(only));
        }
        let steps = members.len().saturating_mul(STEPS);
        let select = |offers: fn(&Self, &Endpoint) -> bool| {
            let accepts = |backend: &Backend, is_up: bool| {
                let endpoint = backend.ext.get::<Arc<Endpoint>>();
                let is_free = |one| is_new(one, tried) && !one.is_drained();
                is_up && endpoint.is_some_and(|one| is_free(one) && offers(self, one))
            };
            self.balancer.select_with(&[], steps, accepts)
        };
        // Endpoints that return get a small share, unless there is no other; ejected ones are used where active checks leave no other.
        let selected = select(Self::offers)
            .or_else(|| select(|group, endpoint| !group.is_ejected(endpoint)))
            .or_else(|| select(|_, _| true));
        if let Some(backend) = selected {
            return backend.ext.get().cloned();
        }
        let mut others = members.iter();
        let other = others.find(|member| is_new(&member.1, tried) && self.may_serve(member));
        other.map(|(_, endpoint)| Arc::clone(endpoint))
    }

    fn offers(&self, endpoint: &Endpoint) -> bool {
        match &self.settings.ejection {
            Some(ejection) => endpoint.passive().accepts(ejection),
            None => true,
        }
    }

    /// Whether an endpoint is ejected; a reload may have turned ejection off since.
    fn is_ejected(&self, endpoint: &Endpoint) -> bool {
        self.settings.ejection.is_some() && endpoint.passive().is_ejected()
    }

    fn is_up(&self, backend: &Backend) -> bool {
        self.balancer.backends().ready(backend)
    }

    /// Whether an endpoint is healthy, and no operator has taken it out.
    fn may_serve(&self, (backend, endpoint): &Member) -> bool {
        self.is_up(backend) && !endpoint.is_drained()
    }

    /// A request of this TPP was answered by this endpoint. Answers from 500 on count as failures for the ejection.
    pub fn answered(&self, endpoint: &Endpoint, status: u16, tpp: TppMark) {
        if status < 500 {
            // An only endpoint is never ejected, so nobody asks whom it answered.
            endpoint
                .passive()
                .succeeded(self.has_others().then_some(tpp));
        } else {
            self.failed(endpoint, "answers with errors", Failure::OfRequest(tpp));
        }
    }

    /// A request at this endpoint failed.
    pub fn failed(&self, endpoint: &Endpoint, kind: &str, failure: Failure) {
        endpoint.count_failure();
        let Some(ejection) = &self.settings.ejection else {
            return;
        };
        if endpoint.passive().failed(failure, ejection)
            && let Some(time) = self.eject(endpoint, failure, ejection)
        {
            endpoint.tell_ejection(kind, time);
        }
    }

    /// Ejects an endpoint, if enough others remain.
    fn eject(&self, own: &Endpoint, failure: Failure, ejection: &Ejection) -> Option<Duration> {
        let mut turn = self.ejecting.lock().unwrap_or_else(PoisonError::into_inner);
        let members = self.members.list();
        let others = members.iter().filter(|member| {
            let is_own = ptr::eq::<Endpoint>(&*member.1, own);
            !is_own && self.may_serve(member)
        });
        let others: Vec<&Arc<Endpoint>> = others.map(|(_, other)| other).collect();
        let ejected = others.iter().filter(|other| other.passive().is_ejected());
        let remaining = others.len().saturating_sub(ejected.count());
        // Half of all, with this one; of an odd number the larger half.
        let half = others.len() / 2 + 1;
        let is_allowed = match failure {
            Failure::NoConnection => remaining > 0 || Self::release_another(&mut turn, &others),
            Failure::OfRequest(_) => remaining >= half,
        };
        is_allowed
            .then(|| own.passive().eject(&mut turn, failure, ejection))
            .flatten()
    }

    /// Uses an endpoint again that requests may have ejected, in place of one that cannot be reached; false if there is none.
    fn release_another(turn: &mut EjectionTurn, others: &[&Arc<Endpoint>]) -> bool {
        let mut others = others.iter();
        let other = others.find(|other| other.passive().is_ejected_for_requests());
        if let Some(other) = other {
            other.passive().release(turn);
            other.tell_release();
        }
        other.is_some()
    }

    /// The states of the endpoints, in the order of the configuration.
    pub fn states(&self) -> Vec<EndpointState> {
        let members = self.members.list();
        let mut in_use = members.iter();
        let has_others = in_use.any(|member| self.may_serve(member) && !self.is_ejected(&member.1));
        let state = |tally: &Arc<Tally>| {
            let own = members.iter();
            let own = own.filter(|(_, endpoint)| Arc::ptr_eq(endpoint.tally(), tally));
            let mut state = EndpointState {
                of: Arc::clone(&tally.of),
                up: 0,
                ejected: 0,
                usable: 0,
                addresses: 0,
                failures: tally.failures(),
                drained: tally.is_drained(),
            };
            for (backend, endpoint) in own {
                let is_up = self.is_up(backend);
                let is_ejected = has_others && self.is_ejected(endpoint);
                state.addresses += 1;
                state.up += usize::from(is_up);
                state.ejected += usize::from(is_ejected);
                state.usable += usize::from(is_up && !is_ejected && !state.drained);
            }
            state
        };
        self.members.tallies().map(state).collect()
    }

    /// Whether an endpoint is healthy by active checks, and not taken out. Ejections do not count: they leave an endpoint, and requests may
    /// cause them.
    pub fn is_healthy(&self) -> bool {
        let members = self.members.list();
        members.iter().any(|member| self.may_serve(member))
    }

    /// Takes the current addresses of the endpoints into use.
    fn refresh(&self) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // Discovery awaits nothing, so one poll ends it.
        let mut update = pin!(self.balancer.update());
        let polled = update
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        if !matches!(polled, Poll::Ready(Ok(()))) {
            tracing::error!(upstream = self.settings.name, "endpoints cannot be updated");
        }
        let mut inner = self.settings.inner_names();
        let members = self.members.list();
        inner.extend(
            members
                .iter()
                .map(|(_, one)| one.address().ip().to_string()),
        );
        self.inner_names.set(inner);
    }

    /// Closes connections that can no longer be used, as long as the group is in use.
    fn tend_pools(self: &Arc<Self>, runtime: &Handle) {
        if !self.settings.reuse {
            return;
        }
        let group: Weak<Self> = Arc::downgrade(self);
        runtime.spawn(async move {
            loop {
                sleep(TENDING).await;
                let Some(group) = group.upgrade() else {
                    return;
                };
                for (_, endpoint) in group.members.list().iter() {
                    endpoint.pool().inspect(|pool| pool.tend());
                }
            }
        });
    }

    /// Refreshes the group when a name gets other addresses, as long as the group is in use.
    fn follow_names(self: &Arc<Self>, changes: Vec<Addresses>, runtime: &Handle) {
        for mut changes in changes {
            let group: Weak<Self> = Arc::downgrade(self);
            runtime.spawn(async move {
                while changes.changed().await.is_ok() {
                    match group.upgrade() {
                        Some(group) => group.refresh(),
                        None => return,
                    }
                }
            });
        }
    }
}

fn is_new(endpoint: &Arc<Endpoint>, tried: &[Arc<Endpoint>]) -> bool {
    !tried.iter().any(|one| Arc::ptr_eq(one, endpoint))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{AnswerSizes, Host, UpstreamEndpoint, UpstreamNetworks};
    use http::HeaderValue;
    use std::{
        net::{IpAddr, Ipv4Addr},
        sync::Barrier,
        thread,
    };
    use tokio::{runtime::Runtime, sync::watch};
    use tracing::{
        Event, Metadata, Subscriber,
        span::{Attributes, Id, Record},
        subscriber,
    };

    const EJECTION: Ejection = Ejection {
        failures: 1,
        time: Duration::from_secs(3_600),
        recovery: Duration::from_secs(3_600),
    };

    fn settings(weight: usize) -> Arc<UpstreamGroup> {
        let endpoint = |port| UpstreamEndpoint {
            host: Host::Address(Ipv4Addr::LOCALHOST.into()),
            port,
            weight,
        };
        Arc::new(UpstreamGroup {
            name: "core".to_owned(),
            endpoints: [1, 2].map(endpoint).to_vec(),
            host: HeaderValue::from_static("core"),
            networks: UpstreamNetworks::default(),
            name_servers: Vec::new(),
            tls: None,
            health: None,
            ejection: Some(EJECTION),
            needed: true,
            retry_percent: 20,
            connect_timeout: Duration::from_secs(1),
            read_timeout: Duration::from_secs(1),
            timeout: Duration::from_secs(2),
            idle_timeout: Duration::from_secs(1),
            reuse: true,
            max_in_flight: 1,
            max_in_flight_per_tpp: 1,
            answer_sizes: AnswerSizes::default(),
            answer_headers: Vec::new(),
        })
    }

    /// Requests before and after a reload, each at its endpoint, at the same time.
    #[test]
    fn two_ejections_at_once_leave_an_endpoint() {
        let runtime = Runtime::new().unwrap();
        let names = Names::new(runtime.handle().clone());
        let telemetry = Arc::new(Telemetry::new(None));
        let start = |weight, before| {
            Group::start(
                &settings(weight),
                before,
                &names,
                &Arc::default(),
                runtime.handle(),
                &telemetry,
            )
        };
        let before = start(1, None);
        let groups = [start(2, Some(&before)), before];
        for round in 0..2_000 {
            let failure = match round % 2 {
                0 => Failure::OfRequest(TppMark(1)),
                _ => Failure::NoConnection,
            };
            let together = Barrier::new(2);
            thread::scope(|scope| {
                for (index, group) in groups.iter().enumerate() {
                    let together = &together;
                    scope.spawn(move || {
                        let endpoint = Arc::clone(&group.members.list()[index].1);
                        together.wait();
                        group.failed(&endpoint, "test", failure);
                    });
                }
            });
            for group in &groups {
                let members = group.members.list();
                let ejected = members.iter().filter(|(_, one)| group.is_ejected(one));
                assert_eq!(ejected.count(), 1, "{round}");
                assert!(group.is_healthy() && group.choose(&[]).is_some());
            }
            for (_, endpoint) in groups[0].members.list().iter() {
                let mut turn = groups[0].ejecting.lock().unwrap();
                endpoint.passive().release(&mut turn);
            }
        }
    }
    /// Publishes the address of a name when the group refuses the one before: just after the group has read it.
    struct Publisher(watch::Sender<Option<Vec<IpAddr>>>);

    impl Subscriber for Publisher {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, event: &Event<'_>) {
            if event.metadata().target().ends_with("members") {
                self.0.send_replace(Some(vec![Ipv4Addr::LOCALHOST.into()]));
            }
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    //= FWD-3 accepted
    #[test]
    fn an_answer_of_dns_during_a_start_is_not_lost() {
        const NAME: &str = "core.bank.internal";
        let runtime = Runtime::new().unwrap();
        let names = Names::new(runtime.handle().clone());
        let refused = Ipv4Addr::new(169, 254, 1, 1);
        let (sender, latest) = watch::channel(Some(vec![refused.into()]));
        let _name = names.follow_channel(NAME, latest);
        let mut settings = (*settings(1)).clone();
        settings.endpoints.truncate(1);
        settings.endpoints[0].host = Host::Name(NAME.to_owned());
        let group = subscriber::with_default(Publisher(sender.clone()), || {
            Group::start(
                &Arc::new(settings),
                None,
                &names,
                &Arc::default(),
                runtime.handle(),
                &Arc::new(Telemetry::new(None)),
            )
        });
        assert_eq!(
            *sender.borrow(),
            Some(vec![IpAddr::from(Ipv4Addr::LOCALHOST)])
        );
        for _ in 0..6_000 {
            if group.choose(&[]).is_some() {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("a wait ran out: the address is not used");
    }
}
