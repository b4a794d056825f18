//! SIGUSR2: a new process takes the listening sockets over, and no request fails. Sockets of systemd come the same way.

pub(crate) mod load;
mod new_schema;
mod watchdog;

use crate::{
    disk::with_small_disk,
    harness::{
        Call, Connection, Gate, GateBuilder, LIMIT, Over, Program, Protocol, Reply, Wire, ended,
        eventually, signal_to, skipped, to_files,
    },
};
use command_fds::{CommandFdExt, FdMapping};
use load::Load;
use serde_json::Value;
use socket2::{Domain, Socket, Type};
use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    os::{
        fd::OwnedFd,
        unix::{
            fs::PermissionsExt,
            net::{UnixDatagram, UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};
use tempfile::TempDir;

/// The processes of one gate: the program that the test started, and those that took over from it. Dropping this kills them.
pub(crate) struct Family {
    pub(crate) gate: Gate,
    first: Program,
}

impl Family {
    pub(crate) fn start(builder: GateBuilder) -> Self {
        let gate = builder.for_program();
        let program = gate.program();
        Self::of(gate, program)
    }

    /// Starts `program`. All processes write to the same logs.
    fn of(gate: Gate, mut program: Command) -> Self {
        let first = gate.run_with_logs(&mut program);
        Self { gate, first }
    }

    /// The ids of the running processes, the oldest first.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let own = self.gate.folder().join("gateway.yaml");
        let own = own.to_str().unwrap();
        let mut found: Vec<_> = fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
            .filter_map(|id| {
                let line = fs::read(format!("/proc/{id}/cmdline")).ok()?;
                let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
                let fields: Vec<_> = stat.rsplit_once(") ")?.1.split(' ').collect();
                let since: u64 = fields[19].parse().ok()?;
                let mut arguments = line.split(|byte| *byte == 0);
                let is_own = arguments.any(|argument| argument == own.as_bytes());
                (is_own && fields[0] != "Z").then_some((since, id))
            })
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, id)| id).collect()
    }

    /// Sends a signal to the process that was started last.
    pub(crate) fn signal(&self, signal: &str) {
        signal_to(*self.processes().last().unwrap(), signal);
    }

    /// Sends SIGUSR2, and waits until a new process takes over. The one before may still finish its requests.
    pub(crate) fn upgrade(&self) {
        let before = *self.processes().last().unwrap();
        let upgraded = "upgraded: the new process takes over";
        let count = || self.events().matches(upgraded).count();
        let so_far = count();
        self.signal("-USR2");
        eventually("the upgrade", || count() > so_far);
        assert_ne!(*self.processes().last().unwrap(), before);
    }

    pub(crate) fn events(&self) -> String {
        fs::read_to_string(self.gate.folder().join("gateway.events")).unwrap()
    }

    /// Stops the last process, and returns the lines of the access log by request id.
    pub(crate) fn stop(mut self) -> BTreeMap<String, Vec<Value>> {
        self.signal("-TERM");
        eventually("the end", || {
            let _ = self.first.0.try_wait();
            self.processes().is_empty()
        });
        let log = fs::read_to_string(self.gate.folder().join("gateway.log")).unwrap();
        let mut lines = BTreeMap::<_, Vec<_>>::new();
        for line in log.lines() {
            let line: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
            let id = line["request_id"].as_str().unwrap().to_owned();
            lines.entry(id).or_default().push(line);
        }
        lines
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        for id in self.processes() {
            let _ = Command::new("kill")
                .args(["-KILL", &id.to_string()])
                .status();
        }
    }
}

/// A connection to the control listener at a Unix socket.
fn over_socket(socket: &Path) -> Wire<UnixStream> {
    let stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    Wire::new(stream)
}

/// Pending requests end in the old process, new ones in the new process, and /readyz is 200 all the time.
//= FWD-4 accepted
#[test]
fn a_new_process_takes_over() {
    let family = Family::start(Gate::builder().upstream("read_timeout: 300s"));
    let gate = &family.gate;
    let mut idle = Connection::open(gate);
    let first = gate.seal(&Call::plain());
    assert_eq!(idle.exchange(&first).unwrap().status, 200);
    let (reply, latch) = Reply::json(200, "{}").held();
    gate.upstream().reply(reply);
    let slow: Vec<_> = (0..8).map(|_| gate.seal(&Call::plain())).collect();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let ends = Over(&over);
        let watching = scope.spawn(|| {
            let mut asked = 0;
            while !over.load(Ordering::Relaxed) {
                let ready = gate.control("/readyz");
                assert_eq!(ready.status, 200, "{:?}", ready.json());
                asked += 1;
            }
            asked
        });
        let answers: Vec<_> = slow
            .iter()
            .zip(Protocol::ALL.into_iter().cycle())
            .map(|(sealed, protocol)| scope.spawn(move || gate.send_sealed(sealed, protocol)))
            .collect();
        latch.arrived(slow.len());
        family.upgrade();
        assert_eq!(family.processes().len(), 2, "the old process has requests");
        assert_eq!(idle.rest(), b"", "an idle connection ends");
        latch.release();
        for answer in answers {
            assert_eq!(answer.join().unwrap().unwrap().status, 200);
        }
        drop(ends);
        assert!(watching.join().unwrap() > 0);
    });
    eventually("the end of the old process", || {
        family.processes().len() == 1
    });
    gate.eventually_metric("portvakt_upgrades_total", &["taken_over"], 1.0);
    gate.upstream().reply(Reply::json(200, "{}"));
    for protocol in Protocol::ALL {
        assert_eq!(gate.send(&Call::payment(), protocol).status, 200);
    }
    let lines = family.stop();
    assert_eq!(lines.len(), 1 + slow.len() + 2);
    assert!(lines.values().all(|lines| lines.len() == 1));
}

/// A bad configuration, or a program that does not start, must not end the service.
#[test]
fn a_failed_upgrade_changes_nothing() {
    let gate = Gate::builder().for_program();
    // The program is found by its name, as a new version is put in place.
    let program = gate.folder().join("portvakt");
    let real = gate.program().get_program().to_owned();
    std::os::unix::fs::symlink(&real, &program).unwrap();
    let mut command = Command::new(&program);
    let config = gate.folder().join("gateway.yaml");
    command.args(["serve", "--config"]).arg(&config);
    let family = Family::of(gate, command);
    let gate = &family.gate;
    let first = family.processes();

    fs::write(&config, format!("{}colour: red\n", gate.yaml())).unwrap();
    family.signal("-USR2");
    gate.eventually_metric("portvakt_upgrades_total", &["failed"], 1.0);
    assert!(
        family.events().contains("colour: unknown key"),
        "{}",
        family.events()
    );
    fs::write(&config, gate.yaml()).unwrap();

    fs::remove_file(&program).unwrap();
    family.signal("-USR2");
    gate.eventually_metric("portvakt_upgrades_total", &["failed"], 2.0);
    assert_eq!(family.processes(), first);
    assert_eq!(gate.control("/readyz").status, 200);
    assert_eq!(gate.send(&Call::payment(), Protocol::Http2).status, 200);

    // A replaced program is started.
    let script = format!(
        "#!/bin/sh\ntouch '{}/replaced'\nexec '{}' \"$@\"\n",
        gate.folder().display(),
        real.display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    family.upgrade();
    assert!(gate.folder().join("replaced").exists());
    // Until then the process before may take a connection, and end it.
    gate.eventually_metric("portvakt_upgrades_total", &["taken_over"], 1.0);
    assert_eq!(gate.send(&Call::payment(), Protocol::Http2).status, 200);
}

/// SIGTERM during an upgrade ends both processes, also where the new one hangs: it would keep the sockets, from which nobody accepts.
#[test]
fn a_stop_ends_the_upgrade() {
    for trap in ["", "trap '' INT TERM\n"] {
        let gate = Gate::builder()
            .line("shutdown: {lame_duck: 0s, finish: 1s}")
            .upstream("connect_timeout: 200ms\n  read_timeout: 500ms")
            .for_program();
        let program = gate.folder().join("portvakt");
        std::os::unix::fs::symlink(gate.program().get_program(), &program).unwrap();
        let mut command = Command::new(&program);
        command
            .args(["serve", "--config"])
            .arg(gate.folder().join("gateway.yaml"));
        let mut family = Family::of(gate, command);
        let first = family.processes()[0];
        fs::remove_file(&program).unwrap();
        // Before its trap a shell would end at once.
        let trapped = family.gate.folder().join("trapped");
        let script = format!(
            "#!/bin/sh\n{trap}touch '{}'\nwhile :; do sleep 1; done\n",
            trapped.display()
        );
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        family.signal("-USR2");
        eventually("the new process", || {
            family.events().contains("the new process starts")
                && family.processes().len() == 2
                && trapped.exists()
        });
        signal_to(first, "-TERM");
        assert!(ended(&mut family.first.0).success());
        eventually("the end of the new process", || {
            family.processes().is_empty()
        });
        let is_killed = family.events().contains("did not end and was killed");
        assert!(is_killed || trap.is_empty());
    }
}

/// The file of a Unix socket stays through upgrades, and a call over it reaches the process that serves.
#[test]
fn a_unix_socket_is_handed_over() {
    let gate = Gate::builder().for_program();
    let socket = gate.folder().join("control.sock");
    let control = format!("address: {}", gate.control_address());
    let yaml = gate.yaml().replace(&control, "socket: control.sock");
    fs::write(gate.folder().join("gateway.yaml"), yaml).unwrap();
    let mut program = gate.program();
    let program = to_files(&mut program, &gate.folder().join("gateway")).spawn();
    let family = Family {
        first: Program(program.unwrap()),
        gate,
    };
    let get = |path: &str| {
        let mut wire = over_socket(&socket);
        write!(
            wire.reader.stream,
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        wire.answer("GET").unwrap()
    };
    eventually("it starts", || UnixStream::connect(&socket).is_ok());
    for _ in 0..2 {
        eventually("it is ready", || get("/readyz").status == 200);
        family.upgrade();
        eventually("one process", || family.processes().len() == 1);
        assert_eq!(get("/readyz").status, 200);
        let metrics = String::from_utf8(get("/metrics").body).unwrap();
        assert!(metrics.contains("portvakt_upgrades_total{result=\"taken_over\"} 1"));
    }
}

/// Socket activation: the program gets both sockets by the protocol of sd_listen_fds(3).
#[test]
fn sockets_of_systemd_are_used() {
    let gate = Gate::builder().for_program();
    let socket = gate.folder().join("control.sock");
    let control = format!("address: {}", gate.control_address());
    let yaml = gate.yaml().replace(&control, "socket: control.sock");
    let config = gate.folder().join("gateway.yaml");
    fs::write(&config, &yaml).unwrap();
    let public = TcpListener::bind(gate.address()).unwrap();
    let unix = UnixListener::bind(&socket).unwrap();
    let start = |sockets: Vec<OwnedFd>| {
        let mut program = Command::new("sh");
        let script = "export LISTEN_PID=$$; exec \"$0\" \"$@\"";
        let (count, real) = (sockets.len(), gate.program());
        let mappings = sockets.into_iter().zip(3..);
        let mappings = mappings.map(|(parent_fd, child_fd)| FdMapping {
            parent_fd,
            child_fd,
        });
        program
            .args(["-c", script])
            .arg(real.get_program())
            .args(real.get_args())
            .env("LISTEN_FDS", count.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .fd_mappings(mappings.collect())
            .unwrap();
        program.spawn().unwrap()
    };
    let both = || {
        vec![
            public.try_clone().unwrap().into(),
            unix.try_clone().unwrap().into(),
        ]
    };
    let program = Program(start(both()));
    eventually("ready", || {
        let mut wire = over_socket(&socket);
        write!(
            wire.reader.stream,
            "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        wire.answer("GET").is_ok_and(|answer| answer.status == 200)
    });
    let sealed = gate.seal(&Call::plain());
    let answer = Connection::open(&gate).exchange(&sealed).unwrap();
    assert_eq!(answer.status, 200);
    program.stop();
    assert!(socket.exists(), "the socket is systemd's");

    // A socket that nobody accepts from would let its clients wait.
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    let mut sockets = both();
    sockets.push(other.into());
    let mut refused = Program(start(sockets));
    assert_eq!(ended(&mut refused.0).code(), Some(1));
    let mut said = String::new();
    let mut stderr = refused.0.stderr.take().unwrap();
    stderr.read_to_string(&mut said).unwrap();
    assert!(said.contains(&address), "{said}");

    // A datagram socket does not hide such a socket, and a socket that stands twice is named as that.
    let datagram = UnixDatagram::bind(gate.folder().join("datagram")).unwrap();
    for (socket, expected) in [
        (OwnedFd::from(datagram), "a datagram socket"),
        (OwnedFd::from(public.try_clone().unwrap()), " a second time"),
    ] {
        let mut sockets = both();
        sockets.push(socket);
        let mut refused = Program(start(sockets));
        assert_eq!(ended(&mut refused.0).code(), Some(1), "{expected}");
        let mut said = String::new();
        let mut stderr = refused.0.stderr.take().unwrap();
        stderr.read_to_string(&mut said).unwrap();
        assert!(said.contains(expected), "{said}");
    }

    // A socket that is bound, and on which nobody listens yet.
    let unix = unix.try_clone().unwrap();
    drop(public);
    let silent = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    silent.set_reuse_address(true).unwrap();
    // A child that another thread starts has a copy of the public socket until it executes its program.
    eventually("the address is free", || {
        silent.bind(&gate.address().into()).is_ok()
    });
    let _program = Program(start(vec![silent.into(), unix.into()]));
    eventually("callers are accepted", || {
        TcpStream::connect(gate.address()).is_ok()
    });
    let answer = Connection::open(&gate).exchange(&gate.seal(&Call::plain()));
    assert_eq!(answer.unwrap().status, 200);
}

/// The new process finds that a disk takes no write: the old one serves every read and says why. Once there is space, the new one takes
/// over. (The state's log may still have space for the first write, and then the new process serves at once.)
fn upgrade_onto_a_full_disk(line: &str, folder: &str) {
    let tried = with_small_disk(2, TempDir::new().unwrap().path(), &Command::new("true")).output();
    if !tried.as_ref().is_ok_and(|output| output.status.success()) {
        skipped(&format!("a file system cannot be mounted here: {tried:?}"));
        return;
    }
    let gate = Gate::builder().line(line).for_program();
    let place = gate.folder().join(folder);
    fs::create_dir_all(&place).unwrap();
    let program = with_small_disk(2, &place, &gate.program());
    let family = Family::of(gate, program);
    let gate = &family.gate;
    eventually("the first writes", || gate.control("/readyz").status == 200);
    // The path in the mount namespace of the programs.
    let filler = |process: &u32| {
        let seen = PathBuf::from(format!("/proc/{process}/root"));
        seen.join(place.strip_prefix("/").unwrap()).join("filler")
    };
    let mut file = File::create(filler(&family.processes()[0])).unwrap();
    while file.write_all(&[0; 512]).is_ok() {}
    drop(file);
    let read = || {
        let answer = Connection::open(gate).exchange(&gate.seal(&Call::plain()));
        let answer = answer.unwrap();
        assert_eq!(answer.status, 200, "{}", answer.reason());
    };
    read();
    family.signal("-USR2");
    let upgraded = "upgraded: the new process takes over";
    eventually("the old process says why, or the new one serves", || {
        read();
        let events = family.events();
        events.contains("the new process cannot serve yet")
            || (folder == "state" && events.contains(upgraded))
    });
    (0..20).for_each(|_| read());
    let mut processes = family.processes().into_iter();
    assert!(
        processes.any(|process| fs::remove_file(filler(&process)).is_ok()),
        "one of the processes has the disk"
    );
    eventually("the new process takes over", || {
        read();
        family.events().contains(upgraded)
    });
    (0..50).for_each(|_| read());
}

//= FWD-4 accepted
#[test]
fn an_upgrade_onto_a_full_disk_of_the_audit_fails_no_read() {
    let audit = "audit: {write: on, folder: audit, required: true}";
    upgrade_onto_a_full_disk(audit, "audit");
}

//= FWD-4 accepted
#[test]
fn an_upgrade_onto_a_full_disk_of_the_state_fails_no_read() {
    upgrade_onto_a_full_disk("", "state");
}

/// Upgrades under load, HTTP/1.1 and HTTP/2: no request fails, and each has one line. `systems::upgrade` does more of them.
//= FWD-4 accepted
#[test]
fn upgrades_under_load() {
    many_upgrades(4);
}

pub(crate) fn many_upgrades(count: usize) {
    let rates = "rates: {per_address: off, per_tpp: off, unsafe_per_tpp: off, chains_per_address: off, chains: off}";
    let family = Family::start(Gate::builder().line(rates).threads(2));
    let load = Load::start(&family.gate);
    for _ in 0..count {
        let before = load.answered();
        family.upgrade();
        eventually("requests", || load.answered() > before + 50);
        eventually("the old process ends", || family.processes().len() == 1);
    }
    let answered = load.end();
    let lines = family.stop();
    println!("{count} upgrades, {} requests", answered.len());
    for id in &answered {
        assert_eq!(lines.get(id).map(Vec::len), Some(1), "{id}");
    }
    assert_eq!(lines.len(), answered.len());
}
