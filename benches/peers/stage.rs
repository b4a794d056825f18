//! Certificates and configurations of the peers, and their start.
//!
//! Invariant: in one run, all peers have the same certificate, upstream and number of threads, and all have logs on or off.

use super::{
    peer::{Peer, Setup, lua_modules},
    pool::Signer,
    running::{CONTROL_TOKEN, Running, ask, ending_with_this, free_port},
};
use portvakt::private_file;
use portvakt_development_pki::{self as pki, Ca, CaSpec, Key, LeafSpec};
use serde_json::json;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};
use time::OffsetDateTime;

/// The PSU of the TPP.
pub const PSU: &str = "7a3d5112-3e37-4b8f-8b8b-601a8122ea32";

/// The PSU of the other TPP.
pub const OTHER_PSU: &str = "0d6f2f5e-64a1-4a2c-9a53-7f1b1f0c5d11";

/// The TPP.
const TPP: &str = "PSDNO-FSA-123456";

/// The other TPP.
const OTHER_TPP: &str = "PSDNO-FSA-654321";

/// The number of further TPPs.
const CROWD: u32 = 8;

/// Arguments of `chrt`: higher priority than processes of the default class.
const FIRST: [&str; 2] = ["--fifo", "1"];

/// A TPP with a PSU.
pub struct KnownTpp {
    id: String,
    /// Its PSU.
    pub psu: String,
    /// Its certificate and key.
    pub signer: Signer,
}

/// Certificates and files of the measurement, in a separate folder.
pub struct Stage {
    folder: PathBuf,
    /// The TPP that all peers accept.
    pub signer: Signer,
    /// A TPP of an untrusted CA.
    pub stranger: Signer,
    /// A TPP that may not read accounts.
    pub initiator: Signer,
    /// A second TPP that may do everything.
    pub other: Signer,
    /// Further TPPs that may do everything.
    pub crowd: Vec<KnownTpp>,
    /// The program of Portvakt, if it is not beside this one.
    pub program: Option<PathBuf>,
    /// The upstream; stopped when this is dropped.
    _upstream: Option<Running>,
    /// The ports of the upstream: two without TLS, one with TLS.
    upstream: [u16; 3],
}

impl Stage {
    /// Creates the folder again with a PKI, and starts the upstream on the core of the load generator.
    pub fn new(folder: &Path) -> Self {
        let mut stage = Self::without_upstream(folder);
        let upstream = [free_port(), free_port(), free_port()];
        let text = include_str!("conf/upstream.conf");
        let ports = ["@UPSTREAM@", "@SECOND@", "@WITH_TLS@"];
        let ports: Vec<_> = ports
            .into_iter()
            .zip(upstream.map(|port| port.to_string()))
            .collect();
        let text = fill(text, &stage.folder, &ports);
        let file = stage.write("upstream.conf", &text);
        let mut command = ending_with_this();
        command.args(["taskset", "-c", "1"]);
        // If permitted, the upstream runs before the load generator on their core: otherwise peers would wait for the load.
        if Command::new("chrt")
            .args(FIRST)
            .arg("true")
            .status()
            .is_ok_and(|status| status.success())
        {
            command.arg("chrt").args(FIRST);
        }
        command.args(["nginx", "-c"]).arg(file);
        let log = stage.folder.join("upstream.log");
        stage._upstream = Some(Running::start(command, upstream[0], &log));
        stage.upstream = upstream;
        stage
    }

    /// Creates the folder again with a PKI.
    pub fn without_upstream(folder: &Path) -> Self {
        let _ = fs::remove_dir_all(folder);
        for part in ["", "anchors", "intermediates", "crls"] {
            fs::create_dir_all(folder.join(part)).unwrap();
        }
        let folder = folder.canonicalize().unwrap();
        let write = |name: &str, text: &[u8]| fs::write(folder.join(name), text).unwrap();
        let now = OffsetDateTime::now_utc();
        let dated = |spec: CaSpec| CaSpec {
            not_before: now - time::Duration::days(1),
            not_after: now + time::Duration::days(365),
            ..spec
        };
        let root = Ca::root(&dated(CaSpec::development_root())).unwrap();
        let issuing = root.issue_ca(&dated(CaSpec::default())).unwrap();
        write("anchors/root.pem", root.pem().as_bytes());
        write("intermediates/issuing.pem", issuing.pem().as_bytes());
        for (name, ca) in [("crls/root.crl", &root), ("crls/issuing.crl", &issuing)] {
            let from = now - time::Duration::hours(1);
            write(
                name,
                &ca.crl(&[], from, now + time::Duration::days(7)).unwrap(),
            );
        }
        for (name, key) in [("ec", Key::EcP256), ("rsa", Key::Rsa2048)] {
            let until = now + time::Duration::days(30);
            let server = root
                .issue_server(&key, now - time::Duration::HOUR, until)
                .unwrap();
            write(&format!("{name}.crt"), server.pem.as_bytes());
            let key_file = folder.join(format!("{name}.key"));
            private_file::make(&key_file, server.key_pem.as_bytes()).unwrap();
            write(
                &format!("{name}.pem"),
                format!("{}{}", server.pem, server.key_pem).as_bytes(),
            );
        }
        let leaf = |ca: &Ca, roles: Option<Vec<pki::Role>>| {
            let mut spec = LeafSpec::default();
            if let Some(roles) = roles {
                spec.roles = Some(roles);
            }
            let issued = ca.issue(&spec).unwrap();
            Signer::new(&issued.pem, &issued.key_pem)
        };
        let foreign = Ca::root(&dated(CaSpec {
            common_name: "Somebody Else's Root".into(),
            ..CaSpec::development_root()
        }))
        .unwrap();
        let of_tpp = |id: &str| {
            let issued = issuing.issue(&LeafSpec {
                organization_identifier: Some(id.into()),
                ..LeafSpec::default()
            });
            let issued = issued.unwrap();
            Signer::new(&issued.pem, &issued.key_pem)
        };
        let crowd: Vec<_> = (0..CROWD)
            .map(|number| {
                let id = format!("PSDNO-FSA-70000{number}");
                KnownTpp {
                    psu: format!("1c5b4f0e-0000-4000-8000-00000000000{number}"),
                    signer: of_tpp(&id),
                    id,
                }
            })
            .collect();
        let allowed: String = [TPP, OTHER_TPP]
            .into_iter()
            .chain(crowd.iter().map(|known| known.id.as_str()))
            .map(|id| format!("- {{tpp: {id}, roles: [PSP_AI, PSP_PI]}}\n"))
            .collect();
        write("allowed.yaml", format!("allow:\n{allowed}").as_bytes());
        Self {
            signer: leaf(&issuing, None),
            stranger: leaf(&foreign, None),
            initiator: leaf(&issuing, Some(vec![pki::Role::PaymentInitiation])),
            other: of_tpp(OTHER_TPP),
            crowd,
            program: None,
            _upstream: None,
            upstream: [0; 3],
            folder,
        }
    }

    /// Where its files are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts a peer and waits until it listens.
    pub fn start(&self, peer: Peer, setup: Setup) -> Running {
        let port = free_port();
        let [first, second, with_tls] = self.upstream;
        let core = setup.edge.map_or(first, |edge| edge.core);
        let name = format!("{}{}", peer.file(), setup.core.suffix());
        let state = self.folder.join(format!("state{}", setup.core.suffix()));
        let key = if setup.rsa { "rsa" } else { "ec" };
        let at = |name: String| self.folder.join(name).display().to_string();
        let mut parts = vec![
            ("@UPSTREAM@", core.to_string()),
            ("@PORT@", port.to_string()),
            ("@NAME@", name.clone()),
            ("@THREADS@", setup.threads.to_string()),
            ("@CERTIFICATE@", at(format!("{key}.crt"))),
            ("@KEY@", at(format!("{key}.key"))),
            ("@PEM@", at(format!("{key}.pem"))),
            ("@ANCHOR@", at("anchors/root.pem".into())),
            ("@ISSUING@", at("intermediates/issuing.pem".into())),
            ("@STATE@", state.display().to_string()),
        ];
        parts.extend(
            setup
                .core
                .parts([core, second, with_tls], &at("anchors/root.pem".into())),
        );
        let mut command = ending_with_this();
        if let Some(descriptors) = setup.edge.and_then(|edge| edge.descriptors) {
            command.args(["prlimit", &format!("--nofile={descriptors}:")]);
        }
        let cores = if setup.threads == 1 { "0" } else { "0,1" };
        command.args(["taskset", "-c", cores]);
        // A profiler: PORTVAKT_BENCH_UNDER="valgrind --tool=callgrind".
        if !matches!(peer, Peer::Nginx | Peer::Haproxy) {
            let under = std::env::var("PORTVAKT_BENCH_UNDER").unwrap_or_default();
            command.args(under.split_whitespace());
        }
        match peer {
            Peer::Nginx | Peer::LuaSignature | Peer::LuaChecks => {
                // The log is buffered, as Portvakt does by default.
                parts.push((
                    "@LOG@",
                    match setup.logs {
                        true => at(format!("{name}.access")) + " combined buffer=64k flush=1s",
                        false => "off".into(),
                    },
                ));
                parts.extend(self.script(peer));
                let text = match setup.edge {
                    None => include_str!("conf/nginx.conf"),
                    Some(_) => include_str!("../edge/conf/nginx.conf"),
                };
                let text = fill(text, &self.folder, &parts);
                let file = self.write(&format!("{name}.conf"), &text);
                command.arg("nginx").arg("-c").arg(file);
            }
            Peer::Haproxy => {
                parts.push((
                    "@LOG@",
                    match setup.logs {
                        true => "option httplog\n  log stdout format raw daemon".into(),
                        false => String::new(),
                    },
                ));
                let text = match setup.edge {
                    None => include_str!("conf/haproxy.cfg"),
                    Some(_) => include_str!("../edge/conf/haproxy.cfg"),
                };
                let text = fill(text, &self.folder, &parts);
                command
                    .args(["haproxy", "-db", "-f"])
                    .arg(self.write("haproxy.cfg", &text));
            }
            Peer::Plain | Peer::Bare => {
                command.arg(beside("portvakt-bare"));
                let address = format!("127.0.0.1:{port}");
                let upstream = format!("127.0.0.1:{core}");
                let [certificate, key] = ["crt", "key"].map(|end| at(format!("{key}.{end}")));
                command.args([&address, &upstream, &certificate, &key]);
                command.arg(setup.threads.to_string());
                command.arg(if peer == Peer::Bare { "verify" } else { "pass" });
            }
            Peer::Portvakt => {
                let control = free_port();
                parts.push(("@CONTROL@", control.to_string()));
                parts.push(("@LOG@", setup.logs.to_string()));
                let text = fill(include_str!("conf/gateway.yaml"), &self.folder, &parts);
                let token_file = self.folder.join("control.token");
                private_file::replace(&token_file, CONTROL_TOKEN.as_bytes()).unwrap();
                let file = self.write(&format!("gateway{}.yaml", setup.core.suffix()), &text);
                // Every run starts with empty counters.
                let _ = fs::remove_dir_all(&state);
                command
                    .arg(self.program.clone().unwrap_or_else(|| beside("portvakt")))
                    .args(["serve", "--config"])
                    .arg(file);
                let mut running =
                    Running::start(command, port, &self.folder.join(format!("{name}.log")));
                introduce(control, TPP, PSU);
                introduce(control, OTHER_TPP, OTHER_PSU);
                for known in &self.crowd {
                    introduce(control, &known.id, &known.psu);
                }
                running.control = Some(control);
                return running;
            }
        }
        Running::start(command, port, &self.folder.join(format!("{name}.log")))
    }

    /// The configuration of nginx for a script.
    fn script(&self, peer: Peer) -> [(&'static str, String); 3] {
        let (name, text) = match peer {
            Peer::LuaSignature => ("signature", include_str!("conf/signature.lua")),
            Peer::LuaChecks => ("checks", include_str!("conf/checks.lua")),
            _ => return ["@MODULES@", "@PATHS@", "@LUA@"].map(|part| (part, String::new())),
        };
        let parts = [
            ("@ANCHOR@", "anchors/root.pem"),
            ("@ISSUING@", "intermediates/issuing.pem"),
        ];
        let parts = parts.map(|(part, file)| (part, self.folder.join(file).display().to_string()));
        self.write(&format!("{name}.lua"), &fill(text, &self.folder, &parts));
        let folder = self.folder.display();
        let paths = format!(
            "lua_package_path \"/usr/share/lua/5.1/?.lua;{folder}/?.lua;;\";\n  \
             lua_package_cpath \"/usr/lib/x86_64-linux-gnu/lua/5.1/?.so;;\";\n  \
             lua_shared_dict seen 512m;\n  \
             init_by_lua_block {{ check = require \"{name}\" }}"
        );
        [
            ("@MODULES@", lua_modules()),
            ("@PATHS@", paths),
            ("@LUA@", "access_by_lua_block { check.run() }".into()),
        ]
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let file = self.folder.join(name);
        fs::write(&file, text).unwrap();
        file
    }
}

/// A program of the same build.
fn beside(name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let file = own.with_file_name(name);
    assert!(file.is_file(), "{} is not built", file.display());
    file
}

fn fill(text: &str, folder: &Path, parts: &[(&str, String)]) -> String {
    // A replaced part may contain another placeholder.
    let once = |text: String| {
        parts
            .iter()
            .fold(text, |text, (part, value)| text.replace(part, value))
    };
    once(once(text.to_owned())).replace("@DIR@", &folder.display().to_string())
}

/// Binds the PSU to the TPP, with a consent.
fn introduce(control: u16, tpp: &str, psu: &str) {
    let now = jiff::Timestamp::now();
    let body = json!({"tpp": tpp, "psu_id": psu, "last_sca": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        "consent_at": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()})
    .to_string();
    let answer = ask(
        control,
        &format!(
            "POST /psu/bind HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: {}",
            body.len()
        ),
        &body,
    );
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}
