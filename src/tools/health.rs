//! `portvakt health`: whether a gateway can serve, for containers that have neither a shell nor curl.
//!
//! Invariant: the command asks /readyz of the control listener and nothing else, so a health check changes nothing. Deliberately not here:
//! client certificates of the control listener, which a health check would have to be given a key for.

use crate::{
    causes,
    config::{ConfigFaults, ControlAddress, Secret, Settings},
};
use reqwest::{Certificate, Client, ClientBuilder, StatusCode};
use std::{
    io::{self, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

/// The time-out of the question: below the 10 s after which Docker and Kubernetes ask again.
const DEADLINE: Duration = Duration::from_secs(5);

/// The most bytes of an answer that are shown: the reasons are a few lines.
const SHOWN: usize = 4096;

/// `portvakt health`.
#[derive(Debug, clap::Args)]
pub struct HealthArgs {
    /// The gateway's configuration, which has the address of the control listener and the token of /readyz.
    #[arg(long, value_name = "FILE", required_unless_present = "url")]
    config: Option<PathBuf>,
    /// The control listener, as in http://127.0.0.1:9100, without a configuration.
    #[arg(long, value_name = "URL", conflicts_with = "config")]
    url: Option<String>,
    /// With --url: the file of the token of /readyz, if that has one.
    #[arg(long, value_name = "FILE", requires = "url")]
    token_file: Option<PathBuf>,
    /// With --url https://…: trust these certificates and no others, PEM.
    #[arg(long, value_name = "FILE", requires = "url")]
    cacert: Option<PathBuf>,
}

/// The reason why the question cannot be asked, or has no answer.
#[derive(Debug, thiserror::Error)]
pub enum HealthFault {
    /// The configuration was refused.
    #[error("{0}")]
    Config(ConfigFaults),
    /// The control listener has TLS, and its certificate names a host that only the caller knows.
    #[error("the control listener has TLS: use --url https://NAME:PORT with --cacert")]
    Tls,
    /// A file cannot be read.
    #[error("{} cannot be read: {}", .0.display(), .1)]
    File(PathBuf, io::Error),
    /// The HTTP client cannot be made, such as for a certificate that is none.
    #[error("{}", causes::describe(.0))]
    Client(#[source] reqwest::Error),
    /// Nobody answers.
    #[error("no answer: {}", causes::describe(.0))]
    NoAnswer(#[source] reqwest::Error),
    /// The runtime cannot start, or the output cannot be written.
    #[error(transparent)]
    Output(#[from] io::Error),
}

/// Asks, and writes the answer. Success is 200 of /readyz.
///
/// # Errors
/// [`HealthFault`].
pub fn run(args: &HealthArgs, out: &mut impl Write) -> Result<ExitCode, HealthFault> {
    let question = match (&args.config, &args.url) {
        (Some(config), _) => Question::configured(config)?,
        (None, url) => Question::given(url.as_deref().unwrap_or_default(), args)?,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (status, body) = runtime.block_on(question.ask())?;
    writeln!(out, "{} {}", status.as_u16(), body.trim_end())?;
    Ok(if status == StatusCode::OK {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// One question to a control listener.
struct Question {
    client: ClientBuilder,
    /// Scheme and authority.
    base: String,
    token: Option<Secret>,
}

impl Question {
    /// The question that a configuration leads to.
    fn configured(config: &std::path::Path) -> Result<Self, HealthFault> {
        let settings = Settings::load(config).map_err(HealthFault::Config)?;
        let access = &settings.reloadable.control;
        if access.tls.is_some() {
            return Err(HealthFault::Tls);
        }
        let token = access.readiness_token.clone();
        let client = client([]);
        Ok(match &settings.fixed.control {
            ControlAddress::Unix(path) => Self {
                client: client.unix_socket(path.as_path()),
                base: "http://localhost".to_owned(),
                token,
            },
            ControlAddress::Tcp(address) => {
                let mut address = *address;
                address.set_ip(reachable(address.ip()));
                Self {
                    client,
                    base: format!("http://{address}"),
                    token,
                }
            }
        })
    }

    /// The question that the arguments describe.
    fn given(url: &str, args: &HealthArgs) -> Result<Self, HealthFault> {
        let mut trusted = Vec::new();
        if let Some(path) = &args.cacert {
            let file = |error| HealthFault::File(path.clone(), error);
            let pem = std::fs::read(path).map_err(file)?;
            trusted = Certificate::from_pem_bundle(&pem).map_err(HealthFault::Client)?;
        }
        let token = args.token_file.as_ref().map(|path| {
            let file = |error: crate::private_file::FileFault| {
                HealthFault::File(path.clone(), io::Error::other(error))
            };
            Secret::read(path).map_err(file)
        });
        Ok(Self {
            client: client(trusted),
            base: url.trim_end_matches('/').to_owned(),
            token: token.transpose()?,
        })
    }

    async fn ask(self) -> Result<(StatusCode, String), HealthFault> {
        let client: Client = self.client.build().map_err(HealthFault::Client)?;
        let mut request = client.get(format!("{}/readyz", self.base));
        if let Some(token) = self.token.as_ref().and_then(Secret::text) {
            request = request.bearer_auth(token);
        }
        let mut answer = request.send().await.map_err(HealthFault::NoAnswer)?;
        let mut body = Vec::new();
        while body.len() < SHOWN
            && let Some(part) = answer.chunk().await.map_err(HealthFault::NoAnswer)?
        {
            body.extend_from_slice(&part);
        }
        body.truncate(SHOWN);
        let body = String::from_utf8_lossy(&body).into_owned();
        Ok((answer.status(), body))
    }
}

/// A client for one question, which goes straight to the listener: a proxy or a redirect would answer in its place. It trusts these
/// certificates alone: reqwest cannot read the system's where none are installed, as in an image.
fn client(trusted: impl IntoIterator<Item = Certificate>) -> ClientBuilder {
    // reqwest is built without a provider of its own. A second installation fails, and the first one stays, which is intended.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .http1_only()
        .tls_certs_only(trusted)
        .timeout(DEADLINE)
}

/// An address of this machine where a listener is reached that listens on every address.
fn reachable(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) if address.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(address) if address.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_is_reached_by_loopback() {
        for (listens, asked) in [
            ("0.0.0.0", "127.0.0.1"),
            ("::", "::1"),
            ("192.0.2.7", "192.0.2.7"),
        ] {
            let asked: IpAddr = asked.parse().unwrap();
            assert_eq!(reachable(listens.parse().unwrap()), asked);
        }
    }
}
