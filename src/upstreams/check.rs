//! Active checks: a GET to every endpoint of a group, in an interval.
//!
//! pingora's registry counts consecutive results and keeps the health. Its own HTTP check has a TLS client of its own, so the request
//! is sent here on a [`CoreConnection`], with the group's CAs and client certificate.

use super::{connection::CoreConnection, endpoint::Endpoint};
use crate::config::{ActiveCheck, UpstreamGroup};
use async_trait::async_trait;
use http::header;
use pingora::{
    Error, ErrorType, Result, http::RequestHeader, protocols::http::v1::client::HttpSession,
};
use pingora_load_balancing::{
    Backend, HealthCheckService, HealthRegistry, health_check::HealthCheck,
};
use std::{
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};
use tokio::{runtime::Handle, sync::watch, task::AbortHandle, time::timeout};

/// The health of a group's endpoints, which outlives a reload that does not change the check.
pub(super) struct ActiveHealth {
    group: Arc<UpstreamGroup>,
    pub(super) registry: Arc<HealthRegistry>,
    task: AbortHandle,
}

impl fmt::Debug for ActiveHealth {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ActiveHealth")
            .finish_non_exhaustive()
    }
}

impl ActiveHealth {
    /// Starts checking the endpoints that are registered; `None` without a configured check.
    pub(super) fn start(group: &Arc<UpstreamGroup>, runtime: &Handle) -> Option<Arc<Self>> {
        let active = group.health.clone()?;
        // A changed weight does not change an endpoint's health.
        let registry = Arc::new(HealthRegistry::with_equivalence(|backend| {
            let mut hasher = DefaultHasher::new();
            backend.addr.hash(&mut hasher);
            hasher.finish()
        }));
        let mut service = HealthCheckService::new(Arc::clone(&registry));
        service.health_check_frequency = Some(active.interval);
        service.parallel_health_check = true;
        registry.set_health_check(Box::new(Check {
            group: Arc::clone(group),
            active,
        }));
        let running = runtime.spawn(async move {
            let (_never, shutdown) = watch::channel(false);
            service.run(shutdown, None).await;
        });
        Some(Arc::new(Self {
            group: Arc::clone(group),
            registry,
            task: running.abort_handle(),
        }))
    }

    /// Whether a group with these settings is checked in the same way.
    pub(super) fn fits(&self, group: &UpstreamGroup) -> bool {
        let own = &self.group;
        (&own.name, &own.health, &own.tls, &own.host)
            == (&group.name, &group.health, &group.tls, &group.host)
    }
}

impl Drop for ActiveHealth {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The check of one group.
struct Check {
    group: Arc<UpstreamGroup>,
    active: ActiveCheck,
}

#[async_trait]
impl HealthCheck for Check {
    async fn check(&self, target: &Backend) -> Result<()> {
        let Some(endpoint) = target.ext.get::<Arc<Endpoint>>() else {
            return Error::e_explain(ErrorType::InternalError, "no endpoint");
        };
        let checked = timeout(self.active.timeout, self.ask(endpoint)).await;
        let checked = checked
            .unwrap_or_else(|_| Error::e_explain(ErrorType::ReadTimedout, "no answer in time"));
        if let Err(error) = &checked {
            endpoint.tally().keep_reason(error.to_string());
        }
        checked
    }

    async fn health_status_change(&self, target: &Backend, healthy: bool) {
        let Some(endpoint) = target.ext.get::<Arc<Endpoint>>() else {
            return;
        };
        let (upstream, label) = (&self.group.name, &endpoint.named().endpoint);
        let address = endpoint.address();
        if healthy {
            tracing::info!(upstream, endpoint = label, %address, "an endpoint is healthy again");
            return;
        }
        let reason = endpoint.tally().reason();
        tracing::warn!(upstream, endpoint = label, %address, reason, "an endpoint is unhealthy");
    }

    fn health_threshold(&self, success: bool) -> usize {
        match success {
            true => self.active.healthy_after,
            false => self.active.unhealthy_after,
        }
    }
}

impl Check {
    async fn ask(&self, endpoint: &Endpoint) -> Result<()> {
        let limit = self.active.timeout;
        let connection = CoreConnection::open(endpoint.address(), endpoint.tls(), limit).await?;
        let mut session = HttpSession::new(Box::new(connection));
        let mut request = RequestHeader::build("GET", self.active.path.as_bytes(), Some(2))?;
        request.insert_header(header::HOST, self.group.host.clone())?;
        request.insert_header(header::CONNECTION, "close")?;
        session.write_request_header(Box::new(request)).await?;
        session.finish_body().await?;
        let answer = session.read_resp_header_parts().await?;
        if answer.status.as_u16() == self.active.status {
            return Ok(());
        }
        Error::e_explain(
            ErrorType::HTTPStatus(answer.status.as_u16()),
            "another status than that of a healthy endpoint",
        )
    }
}
