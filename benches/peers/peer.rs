//! The peers, and the configuration of a load.
//!
//! Deliberately not here: their files and their start (stage.rs), and their processes (running.rs).

use std::path::{Path, PathBuf};

/// A measured program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Peer {
    /// nginx, no checks.
    Nginx,
    /// haproxy, no checks.
    Haproxy,
    /// nginx with a script that only verifies the signature.
    LuaSignature,
    /// nginx with a script that does the checks that are possible in a script.
    LuaChecks,
    /// Plain pingora.
    Plain,
    /// Plain pingora that parses Signature, verifies, and writes the head by an allow-list.
    Bare,
    /// Portvakt with every check, as in production.
    Portvakt,
}

impl Peer {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Nginx,
        Self::Haproxy,
        Self::Plain,
        Self::Bare,
        Self::LuaSignature,
        Self::LuaChecks,
        Self::Portvakt,
    ];

    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
            Self::LuaSignature => "nginx + Lua, signature only",
            Self::LuaChecks => "nginx + Lua, same checks",
            Self::Plain => "pingora",
            Self::Bare => "bare",
            Self::Portvakt => "Portvakt",
        }
    }

    /// Whether the peer verifies signatures.
    pub const fn verifies(self) -> bool {
        !matches!(self, Self::Nginx | Self::Haproxy | Self::Plain)
    }

    /// The program to look for in the path.
    const fn program(self) -> Option<&'static str> {
        match self {
            Self::Nginx | Self::LuaSignature | Self::LuaChecks => Some("nginx"),
            Self::Haproxy => Some("haproxy"),
            Self::Plain | Self::Bare | Self::Portvakt => None,
        }
    }

    /// Whether the peer is available on this machine.
    pub fn is_there(self) -> bool {
        self.program().is_none_or(has)
            && (!matches!(self, Self::LuaSignature | Self::LuaChecks) || !lua_modules().is_empty())
    }

    /// The name of its files.
    pub const fn file(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
            Self::LuaSignature => "signature",
            Self::LuaChecks => "checks",
            Self::Plain => "plain",
            Self::Bare => "bare",
            Self::Portvakt => "portvakt",
        }
    }
}

/// Whether a program is in the path.
pub fn has(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths)
        .chain([PathBuf::from("/usr/sbin")])
        .any(|folder| folder.join(program).is_file())
}

/// The paths of nginx's Lua module and its dependencies on Debian.
pub fn lua_modules() -> String {
    let folder = Path::new("/usr/lib/nginx/modules");
    let files = ["ndk_http_module.so", "ngx_http_lua_module.so"].map(|file| folder.join(file));
    let is_whole = files.iter().all(|file| file.is_file())
        && Path::new("/usr/share/lua/5.1/openssl/x509.lua").is_file();
    let lines = files.map(|file| format!("load_module {};\n", file.display()));
    if is_whole {
        lines.concat()
    } else {
        String::new()
    }
}

/// The configuration of the peers of one load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Access logs on.
    pub logs: bool,
    /// The server's key is RSA-2048, not ECDSA P-256.
    pub rsa: bool,
    /// Threads, and cores: 1 or 2.
    pub threads: usize,
    /// The way to the upstream; nginx and Portvakt have all of them.
    pub core: Core,
    /// The differences for the comparison under attack (`portvakt-edge`).
    pub edge: Option<Edge>,
}

/// The way to the upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Core {
    /// One endpoint.
    One,
    /// Two endpoints of one group: the same upstream at two ports.
    Two,
    /// One endpoint with TLS, whose certificate is verified.
    Tls,
}

impl Core {
    /// All ways, with their names in tables.
    pub const ALL: [(&str, Self); 3] = [
        ("one endpoint", Self::One),
        ("two endpoints", Self::Two),
        ("one endpoint with TLS", Self::Tls),
    ];

    /// What the names of a peer's files end with: peers with different ways run at the same time.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::One => "",
            Self::Two => "-two",
            Self::Tls => "-tls",
        }
    }

    /// The parts of the configurations, for the ports of the upstream.
    pub fn parts(
        self,
        [first, second, with_tls]: [u16; 3],
        anchor: &str,
    ) -> [(&'static str, String); 4] {
        let [servers, scheme, verified, portvakt] = match self {
            Self::One => [
                format!("server 127.0.0.1:{first};"),
                "http".to_owned(),
                String::new(),
                format!("upstream: {{address: '127.0.0.1:{first}'}}"),
            ],
            Self::Two => [
                format!("server 127.0.0.1:{first}; server 127.0.0.1:{second};"),
                "http".to_owned(),
                String::new(),
                format!(
                    "upstreams: {{core: {{endpoints: [{{address: '127.0.0.1:{first}'}}, {{address: '127.0.0.1:{second}'}}]}}}}"
                ),
            ],
            Self::Tls => [
                format!("server 127.0.0.1:{with_tls};"),
                "https".to_owned(),
                format!(
                    "proxy_ssl_trusted_certificate {anchor}; proxy_ssl_verify on; proxy_ssl_name localhost; proxy_ssl_server_name on;"
                ),
                format!(
                    "upstream: {{address: '127.0.0.1:{with_tls}', tls: {{ca: {anchor}, name: localhost}}}}"
                ),
            ],
        };
        [
            ("@SERVERS@", servers),
            ("@SCHEME@", scheme),
            ("@CORE_TLS@", verified),
            ("@CORE@", portvakt),
        ]
    }
}

/// A peer under attack: nginx and haproxy with the time-outs and limits of an ordinary installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The port of the core, in place of the stage's own upstream.
    pub core: u16,
    /// The soft limit on file descriptors at the start of the peer; `None` keeps this program's limit.
    pub descriptors: Option<u64>,
}
