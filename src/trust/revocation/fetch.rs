//! Fetches CRLs and OCSP answers, with limits (CRT-11).
//!
//! http and https only; no redirects; no proxy of the environment; 5 s and 5 MiB; only allowed IP addresses: the resolver filters the
//! addresses of a name, and the client connects to those that remain. Connections are not reused.

use super::{SourceFault, network::may_be_called};
use portvakt_base::{causes, network::Network};
use reqwest::{
    Client, Response, Url, dns,
    header::{ACCEPT, CONTENT_TYPE},
    redirect,
};
use std::{
    fmt, io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

/// The longest time of a fetch, from name resolution to the last byte.
const DEADLINE: Duration = Duration::from_secs(5);

/// The longest answer, in bytes.
pub(super) const MOST_BYTES: usize = 5 * 1024 * 1024;

/// The longest address, in characters.
const MOST_CHARACTERS: usize = 2_048;

/// The http or https URL of a source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourceUrl {
    url: Url,
    /// The URL comes from the configuration, so it may lead into the bank's own network.
    configured: bool,
}

impl SourceUrl {
    /// A URL from a certificate; `None` if the text is not a URL of the accepted form.
    pub(super) fn public(text: &str) -> Option<Self> {
        Self::read(text, false)
    }

    /// A URL from the configuration: http or https, with a host, without user and password.
    pub fn configured(text: &str) -> Option<Self> {
        Self::read(text, true)
    }

    fn read(text: &str, configured: bool) -> Option<Self> {
        let url = Url::parse(text)
            .ok()
            .filter(|_| text.len() <= MOST_CHARACTERS)?;
        let is_plain = matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none();
        is_plain.then_some(Self { url, configured })
    }
}

impl fmt::Display for SourceUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.url.fmt(f)
    }
}

/// The HTTP client cannot be made. It verifies sources with https by the machine's own CA certificates, which are missing or unreadable.
#[derive(Debug, thiserror::Error)]
#[error(
    "no HTTP client ({}): install the CA certificates of the system (package ca-certificates), or name a PEM file of CA certificates in the environment variable SSL_CERT_FILE",
    causes::describe(.0)
)]
pub struct NoClient(#[from] reqwest::Error);

/// The HTTP clients.
#[derive(Clone, Debug)]
pub(super) struct Fetcher {
    /// For URLs from certificates.
    public: Client,
    /// For URLs from the configuration.
    configured: Client,
    also: Arc<[Network]>,
}

impl Fetcher {
    /// A fetcher that may also call addresses of these networks.
    pub(super) fn new(also: &[Network]) -> Result<Self, NoClient> {
        let also: Arc<[Network]> = also.into();
        let client = |allowed| {
            Client::builder()
                .redirect(redirect::Policy::none())
                .no_proxy()
                .http1_only()
                .timeout(DEADLINE)
                .pool_max_idle_per_host(0)
                .dns_resolver(Resolver { allowed })
                .build()
        };
        Ok(Self {
            public: client(AllowedAddresses::Public(Arc::clone(&also)))?,
            configured: client(AllowedAddresses::Anywhere)?,
            also,
        })
    }

    /// Fetches a CRL.
    pub(super) async fn get(&self, address: &SourceUrl) -> Result<Vec<u8>, SourceFault> {
        let client = self.client(address)?;
        whole(client.get(address.url.clone()).send().await).await
    }

    /// Sends a request to an OCSP responder.
    pub(super) async fn post(
        &self,
        address: &SourceUrl,
        request: Vec<u8>,
    ) -> Result<Vec<u8>, SourceFault> {
        let client = self.client(address)?;
        let asked = client
            .post(address.url.clone())
            .header(CONTENT_TYPE, "application/ocsp-request")
            .header(ACCEPT, "application/ocsp-response")
            .body(request);
        whole(asked.send().await).await
    }

    /// The client for a URL. An IP address in a URL is not resolved, so this function checks it.
    fn client(&self, address: &SourceUrl) -> Result<&Client, SourceFault> {
        if address.configured {
            return Ok(&self.configured);
        }
        let host = address.url.host_str().unwrap_or_default();
        let number = host.trim_matches(['[', ']']).parse::<IpAddr>();
        match number {
            Ok(number) if !may_be_called(number, &self.also) => Err(SourceFault::Forbidden),
            _ => Ok(&self.public),
        }
    }
}

async fn whole(sent: reqwest::Result<Response>) -> Result<Vec<u8>, SourceFault> {
    let mut response = sent.map_err(|error| fault(&error))?;
    if response.status() != reqwest::StatusCode::OK {
        return Err(SourceFault::Status(response.status().as_u16()));
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| fault(&error))? {
        if body.len().saturating_add(chunk.len()) > MOST_BYTES {
            return Err(SourceFault::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn fault(error: &reqwest::Error) -> SourceFault {
    if causes::chain(error).any(|cause| cause.is::<NoAllowedAddress>()) {
        SourceFault::Forbidden
    } else if error.is_timeout() {
        SourceFault::Slow
    } else {
        SourceFault::Unreachable
    }
}

/// The IP addresses that a client may connect to.
#[derive(Clone, Debug)]
enum AllowedAddresses {
    Public(Arc<[Network]>),
    Anywhere,
}

impl AllowedAddresses {
    fn allows(&self, address: IpAddr) -> bool {
        match self {
            Self::Public(also) => may_be_called(address, also),
            Self::Anywhere => true,
        }
    }
}

#[derive(Clone, Debug)]
struct Resolver {
    allowed: AllowedAddresses,
}

/// None of the addresses of a name may be called.
#[derive(Debug, thiserror::Error)]
#[error("the name leads to no address that may be called")]
struct NoAllowedAddress;

impl dns::Resolve for Resolver {
    fn resolve(&self, name: dns::Name) -> dns::Resolving {
        let allowed = self.allowed.clone();
        Box::pin(async move {
            let found: io::Result<Vec<SocketAddr>> = tokio::net::lookup_host((name.as_str(), 0))
                .await
                .map(Iterator::collect);
            Ok(filter(&allowed, found?)?)
        })
    }
}

/// The allowed addresses of a name.
fn filter(
    allowed: &AllowedAddresses,
    found: Vec<SocketAddr>,
) -> Result<dns::Addrs, NoAllowedAddress> {
    let allowed: Vec<_> = found
        .into_iter()
        .filter(|address| allowed.allows(address.ip()))
        .collect();
    if allowed.is_empty() {
        return Err(NoAllowedAddress);
    }
    Ok(Box::new(allowed.into_iter()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for good in [
            "http://ocsp.example/",
            "https://ca.example:8443/a.crl?x=1",
            "http://192.0.2.1",
        ] {
            assert!(SourceUrl::public(good).is_some(), "{good}");
        }
        for bad in [
            "",
            "ocsp.example",
            "/a.crl",
            "ldap://ca.example/cn=a",
            "file:///etc/passwd",
            "ftp://a/b",
            "http://",
            "http://user@a/",
            "http://user:secret@a/",
            "data:,x",
        ] {
            assert!(SourceUrl::public(bad).is_none(), "{bad}");
        }
        assert!(SourceUrl::public(&format!("http://a/{}", "x".repeat(MOST_CHARACTERS))).is_none());
    }

    //= CRT-11 refused
    #[test]
    fn a_name_that_leads_inside_is_not_followed() {
        let at = |text: &str| SocketAddr::new(text.parse().unwrap(), 0);
        let public = AllowedAddresses::Public(Vec::new().into());
        let found = vec![at("10.0.0.1"), at("8.8.8.8"), at("::1")];
        let kept: Vec<_> = filter(&public, found).unwrap().collect();
        assert_eq!(kept, [at("8.8.8.8")]);
        assert!(filter(&public, vec![at("127.0.0.1"), at("fe80::1")]).is_err());
        assert!(filter(&public, vec![at("::ffff:169.254.169.254")]).is_err());
        let also = AllowedAddresses::Public(vec!["10.0.0.0/8".parse().unwrap()].into());
        assert_eq!(
            filter(&also, vec![at("10.0.0.1"), at("127.0.0.1")])
                .unwrap()
                .count(),
            1
        );
        assert_eq!(
            filter(&AllowedAddresses::Anywhere, vec![at("127.0.0.1")])
                .unwrap()
                .count(),
            1
        );
    }

    //= CRT-11 refused
    #[test]
    fn numbers_are_judged_in_every_spelling() {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let fetcher = Fetcher::new(&[]).unwrap();
        for inside in [
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://[::1]/",
            "http://0/",
            "http://[::ffff:10.0.0.1]/",
            "http://169.254.169.254/latest/",
            "http://017700000001/",
        ] {
            let address = SourceUrl::public(inside).unwrap();
            assert_eq!(
                fetcher.client(&address).err(),
                Some(SourceFault::Forbidden),
                "{inside}"
            );
            let own = SourceUrl::configured(inside).unwrap();
            assert!(fetcher.client(&own).is_ok(), "{inside}");
        }
        let outside = SourceUrl::public("http://8.8.8.8/").unwrap();
        assert!(fetcher.client(&outside).is_ok());
    }
}
