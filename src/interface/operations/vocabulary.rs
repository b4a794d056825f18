//! The terms in which an operation is declared. Those with names are also the words of a catalogue file.

use super::{named::named, path_id::PathId};
use crate::headers::Header;

/// The environments of the interface (§What the service does). One process serves one (CRT-9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Environment {
    /// Real PSU data and real transactions.
    Production,
    /// Fake users and simulated transactions.
    Sandbox,
}

impl Environment {
    /// The name in the configuration, in answers and upstream.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Production => "production",
            Self::Sandbox => "sandbox",
        }
    }
}

named! {
    /// Where an operation exists.
    Environments {
        /// In both environments.
        Both = "both",
        /// In the sandbox only: mock data.
        SandboxOnly = "sandbox",
    }
}

named! {
    /// The PSD2 role that an operation needs (CRT-5).
    Role {
        /// PSP_AI
        AccountInformation = "PSP_AI",
        /// PSP_PI
        PaymentInitiation = "PSP_PI",
        /// PSP_AI or PSP_PI
        Either = "either",
    }
}

named! {
    /// Which headers of the table an operation takes.
    Takes {
        /// All of them.
        Whole = "whole",
        /// Content negotiation, Host, X-Request-ID and the signature's only; others are dropped (HDR-3).
        Signing = "signing",
    }
}

named! {
    /// The body that an operation takes (HTTP-8).
    Body {
        /// None; an empty JSON object passes.
        None = "none",
        /// JSON, with a Digest (DIG-2).
        Json = "json",
        /// Any, and none of it is looked at.
        Ignored = "ignored",
    }
}

named! {
    /// The schema of a JSON body.
    Schema {
        /// That it is JSON (PAY-1).
        Any = "any",
        /// §Payment creation request, the cross-border payment (PAY-3 to PAY-12).
        CrossBorderPayment = "cross-border-payment",
        /// The members that all payments share, where they are present (PAY-14).
        Payment = "payment",
        /// §Signing basket request (PAY-13).
        Basket = "basket",
    }
}

named! {
    /// The requirement of an operation on the PSU (SCA-8).
    Sca {
        /// Nothing.
        None = "none",
        /// A PSU-ID bound to the TPP, or X-PSU-IDENTITY on initiation.
        Identified = "identified",
        /// A live consent, and a session where the PSU is present and old history is asked for.
        Consent = "consent",
    }
}

named! {
    /// The subject of an operation, as a catalogue file declares it. [`Operation::about`](super::Operation::about) turns it into fields.
    About {
        /// Neither a payment nor a basket.
        Other = "other",
        /// A payment that was made, or information about payments.
        Payment = "payment",
        /// A payment to be made.
        Initiation = "payment-initiation",
        /// A signing basket.
        Basket = "basket",
    }
}

/// The object that a PSU signs in an SCA that an operation starts (SCA-12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signs {
    /// No payment and no basket.
    Nothing,
    /// The payment that the path names.
    Payment,
    /// The basket that the path names.
    Basket,
}

impl Signs {
    /// The id in the path that names it.
    pub(super) const fn id(self) -> Option<PathId> {
        match self {
            Self::Nothing => None,
            Self::Payment => Some(PathId::Payment),
            Self::Basket => Some(PathId::Basket),
        }
    }
}

/// Whether a request in a corporate context must name the corporate agreement (HDR-14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// It must.
    Named,
    /// It need not: agreements, registration and consent are where the PSU chooses one.
    Open,
}

named! {
    /// Whether calls without the PSU are limited.
    Quota {
        /// They are not.
        None = "none",
        /// Four in 24 hours for each TPP, PSU and account (QUO-1 to QUO-3).
        FourInADay = "four-in-a-day",
    }
}

named! {
    /// The part of an account's transactions that an operation shows: the history that it may reach depends on the PSU
    /// (SCA-8, QUO-8 to QUO-10).
    Transactions {
        /// Nothing.
        None = "none",
        /// The list, from a date on.
        List = "list",
        /// The details of one.
        Details = "details",
    }
}

named! {
    /// Who answers an operation.
    AnsweredBy {
        /// The core.
        Upstream = "upstream",
        /// The gateway itself (SCA-20).
        Gateway = "gateway",
    }
}

/// Headers that an operation requires: all of these, or one of two.
#[derive(Clone, Copy, Debug)]
pub enum Required {
    /// This header.
    One(&'static Header),
    /// One of the two (HDR-1: on B X-PSU-IDENTITY may stand for PSU-ID).
    Either(&'static Header, &'static Header),
}
