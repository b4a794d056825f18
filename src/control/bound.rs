//! The socket of the control listener: bound, inherited, or shared with the process that takes it over.
//!
//! Invariant: a Unix socket never exists with a mode that grants access to other users.

use crate::{config::ControlAddress, private_file};
use std::{
    fs, io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use uuid::Uuid;

/// A bound listener that does not serve yet.
#[derive(Debug)]
pub struct Bound(pub(super) BoundSocket);

#[derive(Debug)]
pub(super) enum BoundSocket {
    Tcp(std::net::TcpListener),
    Unix(std::os::unix::net::UnixListener, SocketFile),
}

impl Bound {
    /// A listener on a bound TCP socket.
    ///
    /// # Errors
    /// The socket cannot be set to non-blocking.
    pub fn inherited_tcp(listener: std::net::TcpListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self(BoundSocket::Tcp(listener)))
    }

    /// A listener on a Unix socket that another process bound to `path`, and whose file therefore stays.
    ///
    /// # Errors
    /// The socket cannot be set to non-blocking.
    pub fn inherited_unix(
        listener: std::os::unix::net::UnixListener,
        path: &Path,
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let file = SocketFile::removed_at_the_end(path);
        file.stays.store(true, Ordering::Release);
        Ok(Self(BoundSocket::Unix(listener, file)))
    }

    /// A copy of the socket.
    ///
    /// # Errors
    /// No file descriptor is left.
    pub fn share(&self) -> io::Result<SharedSocket> {
        Ok(match &self.0 {
            BoundSocket::Tcp(listener) => SharedSocket {
                descriptor: listener.as_fd().try_clone_to_owned()?,
                path: None,
                stays: Arc::default(),
            },
            BoundSocket::Unix(listener, file) => SharedSocket {
                descriptor: listener.as_fd().try_clone_to_owned()?,
                path: Some(file.path.clone()),
                stays: Arc::clone(&file.stays),
            },
        })
    }

    /// Binds an address or creates a socket. A socket without a listener is replaced; any other file at the path stays.
    ///
    /// # Errors
    /// The address cannot be bound, or the socket cannot be created.
    pub fn bind(address: &ControlAddress) -> io::Result<Self> {
        match address {
            ControlAddress::Tcp(address) => {
                let listener = std::net::TcpListener::bind(address)?;
                Self::inherited_tcp(listener)
            }
            ControlAddress::Unix(path) => {
                check_vacant(path)?;
                let listener = make_socket(path)?;
                listener.set_nonblocking(true)?;
                Ok(Self(BoundSocket::Unix(
                    listener,
                    SocketFile::removed_at_the_end(path),
                )))
            }
        }
    }
}

/// Tries to bind an address, and releases it. At the path of a socket nothing is made or removed.
///
/// # Errors
/// The address cannot be bound, or the socket cannot be created.
pub fn try_bind(address: &ControlAddress) -> io::Result<()> {
    match address {
        ControlAddress::Tcp(address) => std::net::TcpListener::bind(address).map(drop),
        ControlAddress::Unix(path) => {
            check_vacant(path)?;
            // The folder of a socket is not created.
            fs::metadata(private_file::folder_of(path))?;
            private_file::try_make(path)
        }
    }
}

/// The file of a socket.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    /// Whether the file stays when its listener is dropped: another process has bound it, or uses it from now on.
    stays: Arc<AtomicBool>,
}

impl SocketFile {
    fn removed_at_the_end(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            stays: Arc::default(),
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if !self.stays.load(Ordering::Acquire) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A copy of the listening socket, for the process that takes it over.
#[derive(Debug)]
pub struct SharedSocket {
    /// The socket.
    pub descriptor: OwnedFd,
    /// The file of a Unix socket.
    pub path: Option<PathBuf>,
    stays: Arc<AtomicBool>,
}

impl SharedSocket {
    /// Leaves the file of the socket to the process that took the socket over.
    pub fn leave_file(&self) {
        self.stays.store(true, Ordering::Release);
    }
}

/// Succeeds if the path is free, or has a socket without a listener.
fn check_vacant(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    if !found.file_type().is_socket() {
        let text = "something else than a socket is there";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Ok(_) => Err(io::ErrorKind::AddrInUse.into()),
        Err(_) => Ok(()),
    }
}

/// Creates the socket in a private folder, and moves it to its path once its mode is right.
fn make_socket(path: &Path) -> io::Result<std::os::unix::net::UnixListener> {
    // Not the process id: in a container it is the same at each start, and a crash may leave the folder.
    let name = format!(".{:08x}", Uuid::new_v4().as_fields().0);
    let folder = path.parent().unwrap_or(Path::new("")).join(name);
    fs::DirBuilder::new().mode(0o700).create(&folder)?;
    let inside = folder.join("s");
    let made = std::os::unix::net::UnixListener::bind(&inside).and_then(|listener| {
        fs::set_permissions(&inside, fs::Permissions::from_mode(0o600))?;
        fs::rename(&inside, path)?;
        Ok(listener)
    });
    let _ = fs::remove_file(&inside);
    let _ = fs::remove_dir(&folder);
    made
}
