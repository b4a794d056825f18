//! Prometheus as a process, with the repository's rules and shorter times, before a gateway.

use crate::{
    dashboards,
    harness::{Answer, Gate, Program, Wire, eventually, free_address},
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use std::{
    fs,
    io::{self, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    process::{Command, Stdio},
};
use tempfile::TempDir;

/// The ranges of the rules, and those of the test: a fault shows within seconds, and is forgotten within seconds.
const RANGES: [(&str, &str); 15] = [
    ("[2m]", "[4s]"),
    ("[5m]", "[4s]"),
    ("[10m]", "[4s]"),
    ("[15m]", "[4s]"),
    ("[30m]", "[4s]"),
    ("[1h]", "[5s]"),
    ("[2h]", "[5s]"),
    ("[6h]", "[5s]"),
    ("[1d]", "[6s]"),
    ("[3d]", "[6s]"),
    (" offset 30m", " offset 10s"),
    (" offset 1d", " offset 30s"),
    (" offset 5h30m", " offset 5s"),
    (" offset 22h", " offset 5s"),
    (" offset 66h", " offset 5s"),
];

/// An alert that is pending or firing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Active {
    pub(super) name: String,
    /// Whether its severity is `page`.
    pub(super) is_page: bool,
    /// Whether it fires, and is not only pending.
    pub(super) fires: bool,
}

/// A running Prometheus.
pub(super) struct Prometheus {
    address: SocketAddr,
    _program: Program,
    _folder: TempDir,
}

impl Prometheus {
    /// Starts it, with a scrape of each job's gateway and an evaluation each second.
    pub(super) fn start(jobs: &[(&str, &Gate)]) -> Self {
        let folder = TempDir::new().unwrap();
        for file in ["rules.yml", "alerts.yml"] {
            let text = fs::read_to_string(dashboards::folder().join(file)).unwrap();
            fs::write(folder.path().join(file), shortened(&text)).unwrap();
        }
        let mut config =
            "global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\n\
             rule_files: [rules.yml, alerts.yml]\nscrape_configs:\n"
                .to_owned();
        for (job, gate) in jobs {
            let (target, token) = (gate.control_address(), gate.folder().join("control.token"));
            config.push_str(&format!(
                "- job_name: {job}\n  authorization: {{credentials_file: '{}'}}\n  static_configs: [{{targets: ['{target}']}}]\n",
                token.display()
            ));
        }
        fs::write(folder.path().join("prometheus.yml"), config).unwrap();
        let address = free_address();
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let program = Command::new("prometheus")
            .args(["--config.file=prometheus.yml", "--storage.tsdb.path=data"])
            .arg(format!("--web.listen-address={address}"))
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let prometheus = Self {
            address,
            _program: Program(program),
            _folder: folder,
        };
        eventually("Prometheus starts", || {
            prometheus.is_ready() && prometheus.query("up == 1").len() == jobs.len()
        });
        prometheus
    }

    /// Its address as a URL.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The samples of a query now.
    pub(super) fn query(&self, expr: &str) -> Vec<Value> {
        let encoded = utf8_percent_encode(expr, NON_ALPHANUMERIC);
        let answer = self.get(&format!("/api/v1/query?query={encoded}"));
        assert_eq!(answer["status"], "success", "{expr}: {answer}");
        answer["data"]["result"].as_array().unwrap().clone()
    }

    /// The values of a label of the series that a selector finds.
    pub(super) fn label_values(&self, selector: &str, label: &str) -> Vec<String> {
        let encoded = utf8_percent_encode(selector, NON_ALPHANUMERIC);
        let answer = self.get(&format!("/api/v1/label/{label}/values?match[]={encoded}"));
        let values = answer["data"].as_array().unwrap().iter();
        values
            .map(|value| value.as_str().unwrap().to_owned())
            .collect()
    }

    /// The alerts that are pending or firing.
    pub(super) fn active(&self) -> Vec<Active> {
        let answer = self.get("/api/v1/alerts");
        let alerts = answer["data"]["alerts"].as_array().unwrap();
        for alert in alerts {
            let summary = alert["annotations"]["summary"].as_str().unwrap();
            assert!(!summary.contains("<error"), "{summary}");
        }
        let mut active: Vec<_> = alerts
            .iter()
            .map(|alert| Active {
                name: alert["labels"]["alertname"].as_str().unwrap().to_owned(),
                is_page: alert["labels"]["severity"] == "page",
                fires: alert["state"] == "firing",
            })
            .collect();
        active.sort();
        active.dedup();
        active
    }

    /// Rules whose last evaluation failed.
    pub(super) fn broken_rules(&self) -> Vec<Value> {
        let answer = self.get("/api/v1/rules");
        let groups = answer["data"]["groups"].as_array().unwrap().clone();
        let rules = groups
            .into_iter()
            .flat_map(|group| group["rules"].as_array().unwrap().clone());
        rules.filter(|rule| rule["health"] != "ok").collect()
    }

    fn is_ready(&self) -> bool {
        let answer = self.ask("/-/ready");
        answer.is_ok_and(|answer| answer.status == 200)
    }

    fn get(&self, path: &str) -> Value {
        self.ask(path).unwrap().json()
    }

    fn ask(&self, path: &str) -> io::Result<Answer> {
        let mut wire = Wire::new(TcpStream::connect(self.address)?);
        let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        wire.reader.stream.write_all(head.as_bytes())?;
        wire.answer("GET")
    }
}

/// Rules with the ranges of the test, and alerts that wait for two seconds.
fn shortened(rules: &str) -> String {
    let mut text = rules.to_owned();
    for (range, short) in RANGES {
        text = text.replace(range, short);
    }
    let lines = text.lines().map(|line| {
        let indent = line.len() - line.trim_start().len();
        let is_for = line.trim_start().starts_with("for: ");
        let line = if is_for {
            format!("{}for: 2s", &line[..indent])
        } else {
            line.to_owned()
        };
        // A range that the table lacks would make the test wait for it.
        let ranges = line
            .split('[')
            .skip(1)
            .filter_map(|rest| rest.split_once(']'));
        for (range, _) in ranges {
            let is_duration = range.starts_with(|c: char| c.is_ascii_digit());
            let is_short = RANGES
                .iter()
                .any(|(_, short)| *short == format!("[{range}]"));
            assert!(!is_duration || is_short, "{line}");
        }
        line + "\n"
    });
    lines.collect()
}

/// `promtool` with the repository's files.
pub(super) fn promtool(arguments: &[&str], input: Option<&Path>) {
    let mut tool = Command::new("promtool");
    tool.args(arguments).current_dir(dashboards::folder());
    if let Some(input) = input {
        tool.stdin(fs::File::open(input).unwrap());
    }
    let output = tool.output().unwrap();
    let said = [output.stdout, output.stderr].map(|said| String::from_utf8(said).unwrap());
    assert!(output.status.success(), "{arguments:?}: {said:?}");
}
