//! The listening sockets: bound by this process, or inherited from systemd or from the process that this one replaces.
//!
//! Both pass them by the protocol of sd_listen_fds(3). A socket belongs to the listener whose address it has. Invariant: the process
//! does not start with a socket of systemd that no listener uses, because clients would connect to it and wait.

use super::checked::Ports;
use crate::{
    config::{ControlAddress, Fixed},
    control::{Bound, SharedSocket},
};
use listenfd::ListenFd;
use socket2::{Domain, SockRef, Socket, Type};
use std::{
    io,
    net::{SocketAddr, TcpListener},
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::{UnixDatagram, UnixListener},
    },
    path::{Path, PathBuf},
};

/// The most connections that wait to be accepted. The kernel has its own limit, usually 4096.
const BACKLOG: i32 = 4096;

/// The environment variable with the path of the control socket that an upgrade hands over: the socket itself was bound at another
/// path, and then moved.
pub(super) const CONTROL_SOCKET: &str = "PORTVAKT_CONTROL_SOCKET";

/// The sockets that this process was started with.
#[derive(Debug, Default)]
pub struct Inherited {
    tcp: Vec<TcpListener>,
    unix: Vec<UnixListener>,
    /// Sockets on which nobody can listen, and other files.
    others: Vec<String>,
    /// The addresses of sockets that a listener uses.
    used: Vec<String>,
    control_socket: Option<PathBuf>,
    /// The process that this one replaces. It waits for a message.
    pub(super) predecessor: Option<UnixDatagram>,
}

impl Inherited {
    /// Takes the sockets that the environment names. Call it before any thread starts, since it changes the environment.
    pub fn take() -> Self {
        let mut sockets = ListenFd::from_env();
        let mut inherited = Self {
            control_socket: std::env::var_os(CONTROL_SOCKET).map(PathBuf::from),
            ..Self::default()
        };
        for index in 0..sockets.len() {
            if let Ok(Some(socket)) = sockets.take_tcp_listener(index) {
                inherited.tcp.push(socket);
            } else if let Ok(Some(socket)) = sockets.take_unix_listener(index) {
                inherited.unix.push(socket);
            } else {
                inherited.take_other(index, sockets.take_unix_datagram(index));
            }
        }
        inherited
    }

    /// Takes a file that is no stream socket. The predecessor's end is one of a pair, which has no name; systemd's sockets have one.
    fn take_other(&mut self, index: usize, datagram: io::Result<Option<UnixDatagram>>) {
        match datagram {
            Ok(Some(socket)) if socket.local_addr().is_ok_and(|at| at.is_unnamed()) => {
                self.predecessor = Some(socket);
            }
            Ok(Some(socket)) => {
                let address = socket.local_addr();
                let address = address.map_or_else(|_| String::new(), |at| format!(" {at:?}"));
                self.others.push(format!("a datagram socket{address}"));
            }
            _ => self.others.push(format!(
                "file {index} of LISTEN_FDS, which is no stream socket"
            )),
        }
    }

    /// The addresses to bind: those for which there is no socket.
    pub fn ports(&self, settings: &Fixed) -> Ports {
        Ports {
            public: !self.has_public(settings.listener.address),
            control: !self.has_control(&settings.control),
        }
    }

    /// Whether there is a socket for this address of the public listener.
    fn has_public(&self, address: SocketAddr) -> bool {
        self.tcp_index(address).is_some()
    }

    /// Whether there is a socket for this address of the control listener.
    fn has_control(&self, address: &ControlAddress) -> bool {
        match address {
            ControlAddress::Tcp(address) => self.tcp_index(*address).is_some(),
            ControlAddress::Unix(path) => self.unix_index(path).is_some(),
        }
    }

    /// The socket of the public listener: an inherited one, or a new one.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub(super) fn public(&mut self, address: SocketAddr) -> io::Result<TcpListener> {
        let socket = match self.tcp(address) {
            Some(socket) => listening(socket)?,
            None => bind(address)?,
        };
        socket.set_nonblocking(true)?;
        Ok(socket)
    }

    /// The socket of the control listener: an inherited one, or a new one.
    ///
    /// # Errors
    /// The address cannot be bound, or the socket cannot be created.
    pub(super) fn control(&mut self, address: &ControlAddress) -> io::Result<Bound> {
        match address {
            ControlAddress::Tcp(address) => match self.tcp(*address) {
                Some(socket) => Bound::inherited_tcp(listening(socket)?),
                None => Bound::bind(&ControlAddress::Tcp(*address)),
            },
            ControlAddress::Unix(path) => match self.unix_index(path) {
                Some(index) => {
                    let socket = listening(self.unix.swap_remove(index))?;
                    self.used.push(format!("{:?}", socket.local_addr()?));
                    Bound::inherited_unix(socket, path)
                }
                None => Bound::bind(address),
            },
        }
    }

    /// The addresses of sockets that no listener uses. After an upgrade with another address, the old one is closed.
    pub(super) fn unused(&self) -> Vec<String> {
        if self.predecessor.is_some() {
            return Vec::new();
        }
        let tcp = self
            .tcp
            .iter()
            .filter_map(|socket| socket.local_addr().ok());
        let unix = self
            .unix
            .iter()
            .filter_map(|socket| socket.local_addr().ok());
        let tcp = tcp.map(|address| address.to_string());
        let addresses = tcp.chain(unix.map(|address| format!("{address:?}")));
        let named = addresses.map(|address| match self.used.contains(&address) {
            true => format!("{address} a second time"),
            false => address,
        });
        named.chain(self.others.iter().cloned()).collect()
    }

    fn tcp(&mut self, address: SocketAddr) -> Option<TcpListener> {
        let index = self.tcp_index(address)?;
        self.used.push(address.to_string());
        Some(self.tcp.swap_remove(index))
    }

    fn tcp_index(&self, address: SocketAddr) -> Option<usize> {
        let is_here = |socket: &TcpListener| socket.local_addr().is_ok_and(|at| at == address);
        self.tcp.iter().position(is_here)
    }

    fn unix_index(&self, path: &Path) -> Option<usize> {
        let is_handed_over = self.control_socket.as_deref() == Some(path);
        let is_here = |socket: &UnixListener| {
            let bound = socket.local_addr().ok();
            is_handed_over || bound.and_then(|at| Some(at.as_pathname()? == path)) == Some(true)
        };
        self.unix.iter().position(is_here)
    }
}

/// Makes an inherited socket listen, if nobody did that: callers would be refused while the gateway is ready.
///
/// # Errors
/// It cannot, as one that is connected.
fn listening<S: AsFd>(socket: S) -> io::Result<S> {
    SockRef::from(&socket).listen(BACKLOG)?;
    Ok(socket)
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Copies of the listening sockets, for the next process. A socket is closed when its copy is dropped too.
#[derive(Debug, Default)]
pub(super) struct OpenSockets {
    pub(super) public: Option<OwnedFd>,
    pub(super) control: Option<SharedSocket>,
}

impl OpenSockets {
    /// Copies both sockets.
    ///
    /// # Errors
    /// No file descriptor is left.
    pub(super) fn of(public: &TcpListener, control: &Bound) -> io::Result<Self> {
        Ok(Self {
            public: Some(public.as_fd().try_clone_to_owned()?),
            control: Some(control.share()?),
        })
    }
}
