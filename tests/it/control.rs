//! SCA-10 to SCA-12, SCA-19, ERR-7: the control listener.

/// A control listener with a store, and its clients.
mod bank;

/// Authentication, transport and limits of the listener.
mod doors;

/// Records of calls in the audit, whatever happens to the disk, the caller or the listener.
mod audited;

/// Checks of Host and Origin.
mod hosts;

/// The end of an SCA.
mod sca;

/// PSUs, one by one and from a file.
mod psu;

/// CTL-1: the permissions of one customer, and the next requests of the TPPs.
mod permissions;

/// CTL-1: the key of a customer at the control listener.
mod customers;

/// CTL-3: the stream of events.
mod events;

/// The page in examples/permissions.
mod permissions_page;

/// The counter of tokens that each key has sealed.
mod seals;

/// The command `portvakt health`.
mod health;

/// The commands `portvakt sca` and `portvakt psu`.
mod program;

/// Who may block TPPs.
mod operate;

/// What operators look at.
mod look;
