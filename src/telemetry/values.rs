//! The values of labels that are closed sets, but for those that another module declares where it finds the fact.

use portvakt_base::values;

values! {
    /// Why an attempt to get an answer of the core failed.
    pub enum FailureKind {
        /// The connection was refused.
        Refused = "refused",
        /// No route or no address leads to the endpoint, or none is left.
        Unreachable = "unreachable",
        /// The TLS handshake failed.
        Tls = "tls",
        /// The core took longer than it may.
        Timeout = "timeout",
        /// The connection ended before a byte of an answer.
        Reset = "reset",
        /// It ended within an answer.
        Truncated = "truncated",
        /// What came is no answer.
        Garbage = "garbage",
        /// The caller of a safe request left (FWD-4).
        Abandoned = "abandoned",
    }
}

values! {
    /// Why the gateway ended a connection, a stream or an answer, or did not send a request.
    pub enum CutCause {
        /// The first bytes of HTTP/2 came too slowly.
        SlowPreface = "slow_preface",
        /// A head came too slowly.
        SlowHead = "slow_head",
        /// The caller takes nothing.
        BlockedWrite = "blocked_write",
        /// The caller takes an answer too slowly.
        SlowAnswer = "slow_answer",
        /// The core's answer is too large.
        LargeAnswer = "large_answer",
        /// Too many frames that make no progress.
        FrameFlood = "frame_flood",
        /// A frame that is not well-formed.
        MalformedFrame = "malformed_frame",
        /// A request that is not well-formed.
        MalformedStream = "malformed_stream",
        /// A head beyond the limit.
        LargeHead = "large_head",
        /// More concurrent requests than a connection may have.
        TooManyStreams = "too_many_streams",
        /// A frame that the state of its stream does not allow.
        StreamFault = "stream_fault",
        /// The core has as many requests as it may.
        CoreBusy = "core_busy",
        /// It has as many of this TPP.
        CoreBusyWithTpp = "core_busy_with_tpp",
    }
}

values! {
    /// How a TLS handshake ended.
    pub enum HandshakeOutcome {
        /// With a new session.
        Done = "done",
        /// With a session that was resumed.
        Resumed = "resumed",
        /// With an error.
        Failed = "failed",
        /// It took longer than it may.
        TooSlow = "too_slow",
        /// The trusted proxy sent no header that can be read.
        BadProxyHeader = "bad_proxy_header",
    }
}

values! {
    /// A version of TLS.
    pub enum TlsVersion {
        /// TLS 1.2
        V1_2 = "1.2",
        /// TLS 1.3
        V1_3 = "1.3",
    }
}

values! {
    /// A version of HTTP.
    pub enum HttpVersion {
        /// HTTP/1.0
        V1_0 = "1.0",
        /// HTTP/1.1
        V1_1 = "1.1",
        /// HTTP/2
        V2 = "2",
    }
}

values! {
    /// What an overloaded gateway refuses.
    pub enum Stranger {
        /// A new connection, before its handshake.
        Connection = "connection",
        /// A request on a connection without a verified signature.
        Request = "request",
    }
}

values! {
    /// The connection on which a request was sent to the core.
    pub enum ConnectionUse {
        /// It was opened for the request.
        New = "new",
        /// It was in the pool.
        Reused = "reused",
    }
}

values! {
    /// The position of an inner address in an answer of the core.
    pub enum AddressPlace {
        /// Location.
        Location = "location",
        /// Content-Location.
        ContentLocation = "content-location",
        /// Link.
        Link = "link",
        /// Any other header.
        Other = "other",
        /// The body.
        Body = "body",
    }
}

values! {
    /// The gateway's action on an inner address.
    pub enum AddressAction {
        /// The host was removed, so the address is relative.
        MadeRelative = "made-relative",
        /// The address was removed.
        Removed = "removed",
        /// The address was passed on unchanged.
        Passed = "passed",
    }
}

values! {
    /// The class of a status.
    pub enum StatusClass {
        /// From 100.
        Informational = "1xx",
        /// From 200.
        Successful = "2xx",
        /// From 300.
        Redirection = "3xx",
        /// From 400.
        ClientError = "4xx",
        /// From 500.
        ServerError = "5xx",
    }
}

impl StatusClass {
    /// The class of this status; `None` for one that HTTP does not know.
    pub(super) fn of(status: u16) -> Option<Self> {
        let index = usize::from(status).checked_div(100)?.checked_sub(1)?;
        Self::ALL.get(index).copied()
    }
}

values! {
    /// The direction in which a caller's clock differs.
    pub enum ClockDirection {
        /// It is ahead of the gateway's.
        Ahead = "ahead",
        /// It is behind.
        Behind = "behind",
    }
}

values! {
    /// What a check proves.
    pub enum Proves {
        /// The sender.
        Identity = "identity",
        /// Anything else.
        Other = "other",
    }
}

values! {
    /// What happened to a call of a quota.
    pub enum QuotaEvent {
        /// A request took it.
        Taken = "taken",
        /// None was left.
        Refused = "refused",
        /// It was given back (QUO-5).
        GivenBack = "given_back",
    }
}

values! {
    /// An event of an SCA.
    pub enum ScaEvent {
        /// Its link was made.
        Link = "link",
        /// The bank's service read its link for the first time.
        Started = "started",
        /// The bank reported that it was completed.
        Completed = "completed",
        /// The bank reported that it failed.
        Failed = "failed",
        /// The bank's service called with an expired link.
        Expired = "expired",
    }
}

values! {
    /// A change in who may call.
    pub enum RegistrationEvent {
        /// The signature of a TPP verified for the first time in 30 days.
        FirstSeen = "first_seen",
        /// The registers took a role from a TPP that calls, and left it another one.
        RoleLost = "role_lost",
        /// The registers took every role from a TPP that calls.
        AuthorisationLost = "authorisation_lost",
    }
}

values! {
    /// How a call for events ended (CTL-3).
    pub enum PollResult {
        /// With events.
        Events = "events",
        /// Without one, at the end of its wait.
        Empty = "empty",
        /// Its cursor is older than the oldest event that is kept.
        TooOld = "too_old",
        /// Its cursor is of a time before the state was restored from a backup.
        Restored = "restored",
        /// Too many calls wait already.
        TooMany = "too_many",
        /// The store was unavailable.
        Failed = "failed",
        /// Its query or its cursor was wrong.
        Invalid = "invalid",
    }
}

values! {
    /// Who asked to bind a PSU-ID.
    pub enum BindingSource {
        /// The completion of an SCA.
        Completion = "completion",
        /// A call of the bank.
        Bind = "bind",
        /// Learning from an answer of the core (SCA-19).
        Learning = "learning",
    }
}

values! {
    /// A table of the state.
    pub enum StateTable {
        /// Bound PSUs.
        Psu = "psu",
        /// Quotas with a call.
        Quota = "quota",
        /// Lists that are read page by page.
        Page = "page",
        /// Request ids.
        Request = "request",
        /// Spent tokens.
        Token = "token",
        /// Blocks of TPPs.
        Block = "block",
    }
}

values! {
    /// A condition of readiness.
    pub enum ReadinessCondition {
        /// The gateway is not stopping.
        Stopping = "stopping",
        /// The public listener accepts connections.
        Listener = "listener",
        /// The state can be written.
        State = "state",
        /// SCAs can be started.
        Sca = "sca",
        /// The core has a healthy endpoint.
        Upstreams = "upstreams",
        /// An audit that is required can be written.
        Audit = "audit",
        /// The keys in an HSM can be used.
        Hsm = "hsm",
    }
}

values! {
    /// A fault with which requests are served nevertheless.
    pub enum Degradation {
        /// The access log cannot be written.
        AccessLog = "access_log",
        /// The log of events cannot be written.
        EventLog = "event_log",
        /// An audit that is not required cannot be written.
        Audit = "audit",
        /// The state has recorded another key for customers in events.
        CustomerKey = "customer_key",
    }
}

values! {
    /// Where lines and records are written to.
    pub enum Destination {
        /// The access log.
        AccessLog = "access_log",
        /// The log of events.
        EventLog = "event_log",
        /// The audit.
        Audit = "audit",
    }
}

values! {
    /// Whether a reload was taken into use.
    pub enum ReloadResult {
        /// It was.
        Taken = "taken",
        /// It was not.
        Refused = "refused",
    }
}

values! {
    /// How an upgrade ended.
    pub enum UpgradeResult {
        /// This process took the listeners of another one over.
        TakenOver = "taken_over",
        /// The successor of this process did not start.
        Failed = "failed",
    }
}

values! {
    /// What became of a line of a log, or of a record of the audit.
    pub enum LineResult {
        /// It was written.
        Written = "written",
        /// It was dropped, because too many waited.
        Dropped = "dropped",
        /// Its destination refused it.
        Failed = "failed",
    }
}

values! {
    /// The purpose of a folder that the gateway writes to.
    pub enum FolderUse {
        /// The state.
        State = "state",
        /// The audit.
        Audit = "audit",
        /// The logs.
        Logs = "logs",
        /// The copies of revocation answers.
        Copies = "copies",
    }
}

values! {
    /// What a line of a log is about.
    pub enum LineKind {
        /// A request.
        Access = "access",
        /// An event.
        Event = "event",
        /// Lines that were left out (FWD-8).
        LeftOut = "left-out",
    }
}

values! {
    /// The service of PSD2 that an operation belongs to.
    pub enum Psd2Service {
        /// Account information.
        AccountInformation = "ais",
        /// Payment initiation.
        PaymentInitiation = "pis",
        /// Both.
        Both = "both",
    }
}
