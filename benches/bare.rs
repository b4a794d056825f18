//! The baseline of the comparison: plain pingora that forwards requests (`pass`), or that parses Signature, verifies the signature and
//! writes the upstream's head by an allow-list (`verify`), and nothing else. It shares no code with Portvakt.
//!
//! `portvakt-bare LISTEN UPSTREAM CERTIFICATE KEY THREADS pass|verify`
#![allow(
    clippy::unwrap_used,
    reason = "a program of the benchmark, with no caller but it"
)]

use async_trait::async_trait;
use aws_lc_rs::signature::{ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256};
use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use pingora::{
    Error, ErrorType, Result,
    apps::HttpServerOptions,
    http::RequestHeader,
    listeners::tls::TlsSettings,
    modules::http::HttpModules,
    proxy::{ProxyHttp, Session, http_proxy},
    server::{
        RunArgs, Server,
        configuration::{Opt, ServerConf},
    },
    services::listening::Service,
    upstreams::peer::HttpPeer,
};
use std::{
    net::SocketAddr,
    sync::{Arc, RwLock},
};
use x509_parser::prelude::{FromDer, X509Certificate};

/// The headers that go upstream.
const ALLOWED: [HeaderName; 12] = [
    header::ACCEPT,
    header::CONTENT_TYPE,
    header::DATE,
    header::USER_AGENT,
    HeaderName::from_static("digest"),
    HeaderName::from_static("psu-id"),
    HeaderName::from_static("psu-ip-address"),
    HeaderName::from_static("signature"),
    HeaderName::from_static("tpp-redirect-uri"),
    HeaderName::from_static("tpp-session-id"),
    HeaderName::from_static("tpp-signature-certificate"),
    HeaderName::from_static("x-request-id"),
];

struct Bare {
    upstream: SocketAddr,
    verifies: bool,
    /// The last certificate and its key, cached.
    last: RwLock<Option<(HeaderValue, Arc<ParsedPublicKey>)>>,
}

impl Bare {
    fn key(&self, certificate: &HeaderValue) -> Option<Arc<ParsedPublicKey>> {
        if let Some((known, key)) = &*self.last.read().unwrap()
            && known == certificate
        {
            return Some(Arc::clone(key));
        }
        let der = BASE64_STANDARD.decode(certificate).ok()?;
        let (_, parsed) = X509Certificate::from_der(&der).ok()?;
        let key = &parsed.public_key().subject_public_key.data;
        let key = Arc::new(ParsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key).ok()?);
        *self.last.write().unwrap() = Some((certificate.clone(), Arc::clone(&key)));
        Some(key)
    }

    fn holds(&self, head: &RequestHeader) -> Option<()> {
        let headers: &HeaderMap = &head.headers;
        let part = |name: &str| {
            let given = headers.get("signature")?.to_str().ok()?;
            let (_, rest) = given.split_once(name)?;
            Some(rest.strip_prefix("=\"")?.split_once('"')?.0)
        };
        let key = self.key(headers.get("tpp-signature-certificate")?)?;
        let mut text = Vec::with_capacity(512);
        for name in part("headers")?.split(' ') {
            if !text.is_empty() {
                text.push(b'\n');
            }
            text.extend_from_slice(name.as_bytes());
            text.extend_from_slice(b": ");
            text.extend_from_slice(headers.get(name)?.as_bytes());
        }
        let signature = BASE64_STANDARD.decode(part(",signature")?).ok()?;
        key.verify_sig(&text, &signature).ok()
    }
}

#[async_trait]
impl ProxyHttp for Bare {
    type CTX = ();

    fn new_ctx(&self) {}

    fn init_downstream_modules(&self, _modules: &mut HttpModules) {}

    async fn request_filter(&self, session: &mut Session, _ctx: &mut ()) -> Result<bool> {
        if self.verifies && self.holds(session.req_header()).is_none() {
            session.respond_error(401).await?;
            return Ok(true);
        }
        Ok(false)
    }

    async fn upstream_peer(&self, _session: &mut Session, _ctx: &mut ()) -> Result<Box<HttpPeer>> {
        Ok(Box::new(HttpPeer::new(self.upstream, false, String::new())))
    }

    async fn upstream_request_filter(
        &self,
        session: &mut Session,
        upstream: &mut RequestHeader,
        _ctx: &mut (),
    ) -> Result<()> {
        if !self.verifies {
            return Ok(());
        }
        let head = session.req_header();
        let allowed = ALLOWED.len() + 2;
        let mut written =
            RequestHeader::build_no_case(head.method.clone(), head.raw_path(), Some(allowed))?;
        written.set_version(http::Version::HTTP_11);
        for name in [header::HOST, header::CONTENT_LENGTH]
            .iter()
            .chain(&ALLOWED)
        {
            if let Some(value) = head.headers.get(name) {
                written.append_header(name, value)?;
            }
        }
        // HTTP/2 names the host in :authority.
        if let Some(authority) = head.uri.authority()
            && !written.headers.contains_key(header::HOST)
        {
            written.insert_header(header::HOST, authority.as_str())?;
        }
        *upstream = written;
        Ok(())
    }

    fn suppress_error_log(&self, _session: &Session, _ctx: &(), _error: &Error) -> bool {
        true
    }
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [listen, upstream, certificate, key, threads, mode] = words.as_slice() else {
        let usage = "portvakt-bare LISTEN UPSTREAM CERTIFICATE KEY THREADS pass|verify";
        return Error::e_explain(ErrorType::InternalError, usage);
    };
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .unwrap();
    let conf = ServerConf {
        threads: threads.parse().unwrap(),
        upstream_keepalive_pool_size: 1024,
        ..ServerConf::default()
    };
    let mut server = Server::new_with_opt_and_conf(Some(Opt::default()), conf);
    server.bootstrap();
    let gate = Bare {
        upstream: upstream.parse().unwrap(),
        verifies: mode == "verify",
        last: RwLock::new(None),
    };
    let mut proxy = http_proxy(&server.configuration, gate);
    proxy.server_options = Some(HttpServerOptions::default());
    let mut service = Service::new("bare".to_owned(), proxy);
    let mut tls = TlsSettings::intermediate(certificate, key)?;
    tls.enable_h2();
    service.add_tls_with_settings(listen, None, tls);
    server.add_service(service);
    server.run(RunArgs::default());
    Ok(())
}
