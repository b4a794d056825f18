//! The peers under attack, their cores, and the runtimes of attackers and cores.

use crate::{
    core_server::Core,
    honest::{self, Served},
    peers::{
        peer::{self, Edge, Peer, Setup},
        running::Running,
        stage::Stage,
    },
    table::{Better, Metric, PEERS},
    wire::Dialer,
};
use std::{path::PathBuf, thread::JoinHandle, time::Duration};
use tokio::runtime::Runtime;

/// The columns of the table.
pub const COLUMNS: [Peer; PEERS] = [Peer::Portvakt, Peer::Nginx, Peer::Haproxy];

/// The calls of the honest client in a measurement. Of 100 calls the 99th percentile would be the second slowest, which other load on the
/// machine decides.
pub const CALLS: usize = 300;

/// The interval of its calls while nobody attacks.
const QUIET_EVERY: Duration = Duration::from_millis(20);

/// Everything that a row needs.
pub struct Arena {
    /// Certificates and configurations.
    pub stage: Stage,
    /// Opens connections.
    pub dialer: Dialer,
    /// Runs the attackers.
    pub attackers: Runtime,
    /// Whether only Portvakt is attacked.
    pub is_alone: bool,
    /// The number of connections of a crowd.
    pub crowd: usize,
    cores: Runtime,
}

/// A peer with its core.
pub struct Attacked {
    /// The column.
    pub column: usize,
    /// The process.
    pub running: Running,
    /// The core behind it.
    pub core: Core,
}

impl Arena {
    /// Creates certificates in a folder beside this program.
    pub fn new(program: Option<PathBuf>, is_alone: bool, crowd: usize) -> Self {
        let own = std::env::current_exe().unwrap();
        let mut stage = Stage::without_upstream(&own.with_file_name("edge"));
        stage.program = program;
        let dialer = Dialer::new(&stage.folder().join("anchors/root.pem"));
        let runtime = |is_preferred: bool| {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            builder.worker_threads(1).enable_all();
            if is_preferred {
                builder.on_thread_start(honest::prefer_this_thread);
            }
            builder.build().unwrap()
        };
        Self {
            stage,
            dialer,
            attackers: runtime(false),
            is_alone,
            crowd,
            cores: runtime(true),
        }
    }

    /// Starts the peer of a column; `None` if it is not available.
    pub fn start(&self, column: usize, descriptors: Option<u64>) -> Option<Attacked> {
        let peer = COLUMNS[column];
        if !peer.is_there() || (self.is_alone && peer != Peer::Portvakt) {
            return None;
        }
        let core = Core::start(self.cores.handle());
        let setup = Setup {
            logs: false,
            rsa: false,
            core: peer::Core::One,
            threads: 1,
            edge: Some(Edge {
                core: core.port,
                descriptors,
            }),
        };
        Some(Attacked {
            column,
            running: self.stage.start(peer, setup),
            core,
        })
    }

    /// The peers, one after the other, each started anew.
    pub fn each(&self) -> impl Iterator<Item = Attacked> + '_ {
        (0..PEERS).filter_map(|column| self.start(column, None))
    }

    /// Begins the calls of the honest client.
    pub fn honest(&self, attacked: &Attacked, count: usize, every: Duration) -> JoinHandle<Served> {
        honest::begin(&self.stage, &self.dialer, &attacked.running, count, every)
    }

    /// The honest client's calls while nobody attacks, after some that fill the caches.
    pub fn quiet(&self, attacked: &Attacked) -> Served {
        self.warm(attacked);
        self.honest(attacked, CALLS, QUIET_EVERY).join().unwrap()
    }

    /// Some calls that fill the caches.
    pub fn warm(&self, attacked: &Attacked) {
        let warming = self.honest(attacked, 20, Duration::from_millis(5));
        warming.join().unwrap();
    }
}

/// The figures of the honest client: the answered calls, the 99th percentile, its ratio to the quiet one, the longest probe, and the
/// calls that did not count, if any.
pub fn honest_metrics() -> Vec<Metric> {
    let calls = f64::from(u32::try_from(CALLS).unwrap());
    vec![
        Metric {
            name: "answered",
            unit: "",
            digits: 0,
            better: Better::Higher,
            bar: Some(calls),
            slack: Some(0.0),
        },
        Metric {
            name: "p99",
            unit: " ms",
            digits: 1,
            better: Better::Lower,
            bar: None,
            slack: Some(0.5),
        },
        Metric {
            name: "of quiet",
            unit: " ×",
            digits: 1,
            better: Better::Lower,
            bar: Some(3.0),
            slack: None,
        },
        Metric {
            name: "/readyz",
            unit: " ms",
            digits: 1,
            better: Better::Lower,
            bar: Some(100.0),
            slack: None,
        },
        Metric {
            name: "left out",
            unit: "",
            digits: 0,
            better: Better::Lower,
            bar: None,
            slack: None,
        },
    ]
}

/// The values of [`honest_metrics`].
pub fn honest_values(served: &Served, quiet: &Served) -> Vec<Option<f64>> {
    vec![
        Some(f64::from(u32::try_from(served.answered).unwrap())),
        Some(served.p99),
        Some(served.p99 / quiet.p99),
        served.ready,
        (served.left_out > 0).then(|| figure(served.left_out)),
    ]
}

/// Whether a program of this name is installed.
pub fn has(program: &str) -> bool {
    peer::has(program)
}

/// A count as a figure.
pub fn figure(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
