//! The labels of metrics, and their values.
//!
//! Invariant: the values are a closed set, or the description says what bounds them. A label is a type, and a metric takes the values of
//! the types of its labels only ([`LabelSet`]): a value outside the set, or of another label, does not compile.

use super::values::{
    AddressAction, AddressPlace, BindingSource, ClockDirection, ConnectionUse, CutCause,
    Degradation, Destination, FailureKind, FolderUse, HandshakeOutcome, LineResult, PollResult,
    Proves, QuotaEvent, ReadinessCondition, RegistrationEvent, ReloadResult, ScaEvent, StateTable,
    StatusClass, Stranger, TlsVersion, UpgradeResult,
};
use crate::{
    admission::{ObservableCheck, OutcomeKind, Stage},
    expiring::Expiring,
    hsm,
    interface::{self, Side, headers::accept_fix, operations},
    trust::{CertificateSource, Tolerated, revocation::FetchResult},
    write_fault::WriteCause,
};
use std::fmt::Debug;

/// A label.
pub(super) trait Label: Clone + Debug + 'static {
    /// A value.
    type Value<'a>;
    /// The name.
    const NAME: &'static str;
    /// All values.
    const VALUES: Values;

    /// The text of a value.
    fn text<'a>(value: Self::Value<'a>) -> &'a str;
}

/// The values of a label.
#[derive(Clone, Copy, Debug)]
pub(super) enum Values {
    /// A closed set: a series for each value exists from the start, so that its first increase is seen.
    Closed(fn() -> Vec<&'static str>),
    /// A closed set, of which series appear with their first sample.
    #[cfg_attr(
        not(test),
        allow(dead_code, reason = "a test makes the document of it")
    )]
    AtFirstUse(fn() -> Vec<&'static str>),
    /// A bounded set, as described.
    #[cfg_attr(
        not(test),
        allow(dead_code, reason = "a test makes the document of it")
    )]
    Bounded(&'static str),
}

/// The labels of a metric: none, one, or several as a tuple, in their order.
pub(super) trait LabelSet: Clone + Debug + 'static {
    /// A value of each.
    type Values<'a>;
    /// Their texts.
    type Texts<'a>: AsRef<[&'a str]>;
    /// The name and the values of each.
    const LABELS: &'static [(&'static str, Values)];

    /// The texts of values.
    fn texts<'a>(values: Self::Values<'a>) -> Self::Texts<'a>;
}

impl<L: Label> LabelSet for L {
    type Values<'a> = L::Value<'a>;
    type Texts<'a> = [&'a str; 1];
    const LABELS: &'static [(&'static str, Values)] = &[(L::NAME, L::VALUES)];

    fn texts<'a>(value: L::Value<'a>) -> [&'a str; 1] {
        [L::text(value)]
    }
}

macro_rules! label_sets {
    ($($count:literal: $($label:ident $value:ident)*;)+) => {
        $(impl<$($label: Label),*> LabelSet for ($($label,)*) {
            type Values<'a> = ($($label::Value<'a>,)*);
            type Texts<'a> = [&'a str; $count];
            const LABELS: &'static [(&'static str, Values)] = &[$(($label::NAME, $label::VALUES)),*];

            fn texts<'a>(($($value,)*): Self::Values<'a>) -> [&'a str; $count] {
                [$($label::text($value)),*]
            }
        })+
    };
}

label_sets! {
    0: ;
    2: A a B b;
    3: A a B b C c;
    4: A a B b C c D d;
}

/// The label of a request that matched no operation, of a status that was not sent, and of no fault.
pub(super) const NONE: &str = "none";

/// The label of everything beyond a bound.
pub(super) const OTHER: &str = "other";

macro_rules! labels {
    ($($id:ident = $name:literal $kind:ident $of:tt;)+) => {
        $(
            #[derive(Clone, Debug)]
            pub(super) enum $id {}

            impl Label for $id {
                const NAME: &'static str = $name;
                labels! { @$kind $of }
            }
        )+
    };
    // Every value of an enum.
    (@Closed ($type:ty)) => { labels! { @Closed ($type, <$type>::ALL.iter().copied(), <$type>::name) } };
    (@AtFirstUse ($type:ty)) => { labels! { @AtFirstUse ($type, <$type>::ALL.iter().copied(), <$type>::name) } };
    // The same, and none of them.
    (@OrNone ($type:ty)) => {
        labels! {
            @AtFirstUse (
                Option<$type>,
                <$type>::ALL.iter().copied().map(Some).chain([None]),
                |value: Option<$type>| value.map_or(NONE, <$type>::name)
            )
        }
    };
    (@Bounded ($bound:literal)) => {
        type Value<'a> = &'a str;
        const VALUES: Values = Values::Bounded($bound);

        fn text<'a>(value: Self::Value<'a>) -> &'a str {
            value
        }
    };
    (@Bounded ($type:ty, $text:expr, $bound:literal)) => {
        labels! { @of $type, $text, Values::Bounded($bound) }
    };
    (@$kind:ident ($type:ty, $all:expr, $text:expr)) => {
        labels! { @of $type, $text, Values::$kind(|| $all.map($text).collect()) }
    };
    (@of $type:ty, $text:expr, $values:expr) => {
        type Value<'a> = $type;
        const VALUES: Values = $values;

        fn text<'a>(value: $type) -> &'a str {
            let text: fn($type) -> &'static str = $text;
            text(value)
        }
    };
}

labels! {
    Operation = "operation" Bounded("an operation of the catalogue, `none` for an unknown path and for a request that was refused before its path was read, or `other` beyond a bound");
    Group = "group" Bounded("a group of operations, or `none`");
    Outcome = "outcome" AtFirstUse(OutcomeKind);
    Status = "status" OrNone(StatusClass);
    CoreStatus = "status" AtFirstUse(StatusClass);
    Fault = "fault" OrNone(Side);
    Reason = "reason" Bounded(interface::Reason, interface::Reason::slug, "a reason of [refusals.md](refusals.md)");
    OperationReason = "reason" Bounded("a reason of [refusals.md](refusals.md), or `other` beyond a bound");
    TimedCheck = "check" Closed(Stage, Stage::timed(), Stage::name);
    ObservedCheck = "check" AtFirstUse(ObservableCheck);
    Proven = "proves" Closed(Proves);
    Direction = "direction" Closed(ClockDirection);
    ToleratedFault = "fault" Closed(Tolerated);
    Fix = "fix" Closed(&'static accept_fix::Fix, accept_fix::TABLE.iter(), |fix: &'static accept_fix::Fix| fix.name);
    Tpp = "tpp" Bounded("the first TPPs that it counted whose signature verified: 100, or 40 for unsigned targets and for calls without a session; then `other`");
    Handshake = "outcome" AtFirstUse(HandshakeOutcome);
    Tls = "version" OrNone(TlsVersion);
    Cut = "cause" Closed(CutCause);
    Shed = "who" Closed(Stranger);
    Failure = "kind" Closed(FailureKind);
    Upstream = "upstream" Bounded("a group of endpoints of the configuration, or `other`");
    Endpoint = "endpoint" Bounded("one of the first 4 endpoints of the configuration, or `other` for the rest");
    Use = "kind" Closed(ConnectionUse);
    Place = "place" AtFirstUse(AddressPlace);
    Done = "done" AtFirstUse(AddressAction);
    Cache = "cache" Closed(CertificateSource);
    Ends = "of" AtFirstUse(Expiring, Expiring::ALL.iter().copied().filter(|of| of.is_certificate()), Expiring::name);
    ExpiringKind = "of" Closed(Expiring);
    Serial = "serial" Bounded("the serial number in hexadecimal");
    Fetch = "result" Closed(FetchResult);
    Issuer = "issuer" Bounded("the name of the CA");
    Register = "register" Bounded("`eba`, a name in registers.lists (16 at most), or `local`, the bank's own list");
    Source = "from" Bounded("an address, or `file`");
    Quota = "event" Closed(QuotaEvent);
    Sca = "event" Closed(ScaEvent);
    Registration = "event" Closed(RegistrationEvent);
    Poll = "result" Closed(PollResult);
    Consumer = "consumer" Bounded("the first 16 callers of /events: the name of a client certificate in control.clients, `token` or `socket`");
    BoundBy = "by" Closed(BindingSource);
    Key = "key" Bounded("the id of a key");
    Table = "table" AtFirstUse(StateTable);
    Condition = "cause" Closed(ReadinessCondition);
    KeyPurpose = "purpose" Closed(hsm::Purpose);
    HsmCause = "cause" Closed(hsm::Cause);
    Degraded = "cause" Closed(Degradation);
    Written = "of" AtFirstUse(Destination);
    Why = "why" OrNone(WriteCause);
    Reload = "result" Closed(ReloadResult);
    Upgrade = "result" Closed(UpgradeResult);
    Lines = "result" Closed(LineResult);
    Folder = "folder" AtFirstUse(FolderUse);
    Build = "version" Bounded("the version of the program");
    Commit = "commit" Bounded("the commit, or `not recorded`");
    Hash = "hash" Bounded("the first 16 digits of the SHA-256 of its text with all defaults, as `portvakt config show` prints it");
    Files = "files" Bounded("those of the SHA-256 over the public files that it names: certificates, anchors and the catalogue, not registers, bundles, CRLs and OCSP responses");
    Environment = "environment" AtFirstUse(
        operations::Environment,
        [operations::Environment::Sandbox, operations::Environment::Production].into_iter(),
        operations::Environment::name
    );
}
