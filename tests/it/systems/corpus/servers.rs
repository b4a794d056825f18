//! Servers that log each request that they see: real programs as child processes, and hyper within this process.

use crate::harness::{Program, eventually, free_address};
use hyper::{
    Request, Response,
    body::{Body, Incoming},
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use std::{
    convert::Infallible,
    fs::{self, File},
    future::poll_fn,
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    pin::pin,
    process::{Command, Stdio},
    sync::{Arc, Mutex},
};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

/// A running server. It ends when it is dropped.
pub(super) struct Server {
    name: &'static str,
    address: SocketAddr,
    log: Log,
    _running: Running,
    _folder: TempDir,
}

enum Log {
    File(PathBuf),
    Memory(Arc<Mutex<Vec<String>>>),
}

enum Running {
    Program { _program: Program },
    Within { _runtime: Runtime },
}

impl Server {
    pub(super) fn nginx() -> Self {
        Self::configured("nginx", "nginx.conf", |config| {
            let mut nginx = Command::new("/usr/sbin/nginx");
            nginx.arg("-c").arg(config);
            nginx
        })
    }

    pub(super) fn apache() -> Self {
        Self::configured("Apache", "apache.conf", |config| {
            let mut apache = Command::new("/usr/sbin/apache2");
            // One process, so that it ends with this test.
            apache.args(["-X", "-f"]).arg(config);
            apache
        })
    }

    pub(super) fn haproxy() -> Self {
        Self::configured("HAProxy", "haproxy.cfg", |config| {
            let mut haproxy = Command::new("/usr/sbin/haproxy");
            haproxy.args(["-db", "-f"]).arg(config);
            haproxy
        })
    }

    pub(super) fn node() -> Self {
        Self::script("Node", "node", "server.js")
    }

    pub(super) fn python() -> Self {
        Self::script("Python", "python3", "server.py")
    }

    /// A program with a configuration, in which PORT and FOLDER are replaced.
    fn configured(
        name: &'static str,
        config: &str,
        program: impl FnOnce(&Path) -> Command,
    ) -> Self {
        let (folder, address) = (open_folder(), free_address());
        let text = fs::read_to_string(source(config)).unwrap();
        let text = text.replace("PORT", &address.port().to_string());
        let text = text.replace("FOLDER", folder.path().to_str().unwrap());
        let path = folder.path().join(config);
        fs::write(&path, text).unwrap();
        Self::start(name, program(&path), address, folder)
    }

    fn script(name: &'static str, program: &str, script: &str) -> Self {
        let address = free_address();
        let mut program = Command::new(program);
        program.arg(source(script)).arg(address.port().to_string());
        Self::start(name, program, address, open_folder())
    }

    /// Starts a program whose log is `seen` in the folder, or its standard output.
    fn start(
        name: &'static str,
        mut program: Command,
        address: SocketAddr,
        folder: TempDir,
    ) -> Self {
        let log = folder.path().join("seen");
        let output = File::options().create(true).append(true).open(&log);
        let errors = File::create(folder.path().join("errors")).unwrap();
        program.stdin(Stdio::null());
        program.stdout(output.unwrap()).stderr(errors);
        let started = program.spawn();
        let mut program = Program(started.unwrap_or_else(|fault| {
            panic!("{name}: {fault}: .ci/needs.sh systems installs it");
        }));
        eventually(&format!("{name} listens"), || {
            let ended = program.0.try_wait().unwrap();
            let errors = fs::read_to_string(folder.path().join("errors"));
            assert!(ended.is_none(), "{name}: {errors:?}");
            TcpStream::connect(address)
        });
        Self {
            name,
            address,
            log: Log::File(log),
            _running: Running::Program { _program: program },
            _folder: folder,
        }
    }

    /// hyper, with its HTTP/1.1 parser as it comes.
    pub(super) fn hyper() -> Self {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let log = Arc::new(Mutex::new(Vec::new()));
        let lines = Arc::clone(&log);
        runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                let (seen, refused) = (Arc::clone(&lines), Arc::clone(&lines));
                tokio::spawn(async move {
                    let service = service_fn(move |request: Request<Incoming>| {
                        seen.lock().unwrap().push(line(&request));
                        answer(request)
                    });
                    let served = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                    if served.is_err_and(|fault| fault.is_parse()) {
                        refused.lock().unwrap().push("? ? ?".to_owned());
                    }
                });
            }
        });
        Self {
            name: "hyper",
            address,
            log: Log::Memory(log),
            _running: Running::Within { _runtime: runtime },
            _folder: open_folder(),
        }
    }

    pub(super) const fn name(&self) -> &'static str {
        self.name
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Method, target and X-Request-ID of each request so far.
    pub(super) fn seen(&self) -> Vec<(String, String, String)> {
        let lines = match &self.log {
            Log::File(path) => {
                let text = fs::read(path).unwrap();
                let text = String::from_utf8_lossy(&text);
                text.lines().map(str::to_owned).collect()
            }
            Log::Memory(lines) => lines.lock().unwrap().clone(),
        };
        let words = |line: &String| {
            let mut words = line.splitn(3, ' ').map(str::to_owned);
            let mut word = || words.next().unwrap_or_default();
            (word(), word(), word())
        };
        lines.iter().map(words).collect()
    }
}

/// Reads the body and answers {}.
async fn answer(request: Request<Incoming>) -> Result<Response<String>, Infallible> {
    let mut body = pin!(request.into_body());
    let mut is_read = false;
    while !is_read {
        let frame = poll_fn(|context| body.as_mut().poll_frame(context)).await;
        is_read = frame.is_none_or(|frame| frame.is_err());
    }
    Ok(Response::new("{}".to_owned()))
}

fn line(request: &Request<Incoming>) -> String {
    let id = request.headers().get("x-request-id");
    let id = id.and_then(|id| id.to_str().ok()).unwrap_or_default();
    format!("{} {} {id}", request.method(), request.uri())
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/edge/servers")
        .join(name)
}

/// A folder that a server may enter which gives up root's rights.
fn open_folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    folder
}
