//! The public listener as a service that says when it accepts: until then the gateway is not ready.
//!
//! pingora binds when it starts the service, and tries again for a while where the port is taken. What it has bound shows
//! in the table that it hands from one process to the next. Deliberately not here: what is done with a connection.

use async_trait::async_trait;
use pingora::{
    apps::ServerApp,
    server::{ListenFds, RuntimeOpts, ShutdownWatch},
    services::{Service as ServiceTrait, listening::Service},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// How often is looked whether the port is bound.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// The public listener.
pub(super) struct Public<A> {
    service: Service<A>,
    address: String,
    accepting: Arc<AtomicBool>,
}

impl<A> Public<A> {
    /// A service that listens on this address alone; `accepting` is true for as long as it does.
    pub(super) const fn new(
        service: Service<A>,
        address: String,
        accepting: Arc<AtomicBool>,
    ) -> Self {
        Self {
            service,
            address,
            accepting,
        }
    }
}

#[async_trait]
impl<A: ServerApp + Send + Sync + 'static> ServiceTrait for Public<A> {
    async fn start_service(
        &mut self,
        fds: Option<ListenFds>,
        shutdown: ShutdownWatch,
        listeners_per_fd: usize,
    ) {
        let bound = bound(fds.clone(), &self.address);
        let accepting = async {
            bound.await;
            self.accepting.store(true, Ordering::Release);
            std::future::pending::<()>().await;
        };
        let serving = self.service.start_service(fds, shutdown, listeners_per_fd);
        tokio::select! {
            () = serving => {}
            () = accepting => {}
        }
        self.accepting.store(false, Ordering::Release);
    }

    fn name(&self) -> &str {
        ServiceTrait::name(&self.service)
    }

    fn threads(&self) -> Option<usize> {
        ServiceTrait::threads(&self.service)
    }

    fn runtime_opts_override(&self, global: &RuntimeOpts) -> Option<RuntimeOpts> {
        self.service.runtime_opts_override(global)
    }

    fn listen_addresses(&self) -> Option<Vec<String>> {
        self.service.listen_addresses()
    }
}

/// Returns when an address is bound.
async fn bound(fds: Option<ListenFds>, address: &str) {
    let is_bound = || {
        let fds = fds.as_ref();
        fds.is_some_and(|fds| fds.lock().get(address).is_some())
    };
    while !is_bound() {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
