//! The reasons that the state of a PSU or of the service gives: consent, quota, replay, failures.

use super::entry::Guide;
use crate::Reason;

pub(super) const fn state(reason: Reason) -> Guide {
    match reason {
        Reason::ScaRequired => Guide {
            rules: "SCA-1 to SCA-9, SCA-16 to SCA-18, QUO-9, QUO-10",
            when: "The PSU has not authenticated for this: there is no PSU-ID, it is not one that this bank gave to this TPP, the consent is missing, withdrawn or too old, or TPP-Session-ID is not the valid session. The fault says which.",
            remedy: "Send the PSU's browser to the address in _links.scaRedirect. Afterwards the PSU comes back to TPP-Redirect-URI with psu-id; send that in PSU-ID, and the same TPP-Session-ID for an hour.",
            example: "GET /v1/accounts without PSU-ID",
        },
        Reason::AccountUnknown => Guide {
            rules: "SCA-18",
            when: "The PSU's consent names accounts, and the one in the path is none of them. Whether the bank has such an account is not said.",
            remedy: "Take account ids from GET /v1/accounts as this PSU has it. Where the PSU wants to share another account, send POST /v1/consents and the PSU to the link in its answer.",
            example: "GET /v1/accounts/{id}/balances of an account that was not chosen when the PSU consented",
        },
        Reason::QuotaExceeded => Guide {
            rules: "QUO-1 to QUO-3",
            when: "Without PSU-IP-Address an account's balances, transaction list and transaction details can each be read four times in any 24 hours, and four calls were made.",
            remedy: "Wait for the seconds in Retry-After. RateLimit tells with every answer how many calls are left. While the PSU is present, send PSU-IP-Address: there is no such limit then.",
            example: "The fifth GET /v1/accounts/{id}/balances of a day without PSU-IP-Address",
        },
        Reason::RateLimited => Guide {
            rules: "QUO-12",
            when: "More requests came from one address, or from one TPP, than the gateway takes in a second, or more of one TPP that change something, which have a lower limit; or the description of the interface was read more than ten times in a second, by all callers together.",
            remedy: "Wait for the seconds in Retry-After, and spread requests over time.",
            example: "A thousand requests at once",
        },
        _ => Guide {
            rules: "REP-1",
            when: "A request of this TPP with the same X-Request-ID was forwarded: within the last 24 hours where it changed something, as long as its Date could pass where it did not.",
            remedy: "Give each call an X-Request-ID of its own, a repeated one too. A payment that was repeated may have been taken the first time: read its status.",
            example: "A client library that repeats a request as it was",
        },
    }
}

pub(super) const fn failure(reason: Reason) -> Guide {
    match reason {
        Reason::UpstreamError => Guide {
            rules: "ERR-6, FWD-7",
            when: "The service behind the gateway answered with an error that was not JSON: the status is the service's. Or its answer to a GET was not valid HTTP, or exceeded a limit: the status is 502.",
            remedy: "Do what the status says. After a 5xx, a payment that was under way may have been taken: read its status before sending it again. The operator finds the cause in the service.",
            example: "An error page in HTML",
        },
        Reason::UpstreamUnreachable => Guide {
            rules: "ERR-4",
            when: "The service behind the gateway could not be reached, or it broke off while it answered a GET.",
            remedy: "Try again later with a new X-Request-ID: nothing was changed.",
            example: "The service is restarting",
        },
        Reason::UpstreamTimeout => Guide {
            rules: "ERR-4",
            when: "The service behind the gateway did not answer a GET in time.",
            remedy: "Try again later with a new X-Request-ID: nothing was changed.",
            example: "The service is overloaded",
        },
        Reason::OutcomeUnknown => Guide {
            rules: "ERR-4, FWD-4",
            when: "The service behind the gateway got a request that changes something, and its answer was lost: the service broke off, did not answer in time, or sent an answer that was not valid HTTP or exceeded a limit. A payment may have been taken, or not.",
            remedy: "Do not send the request again as it is. Read the status of the payment, if you have its id. If you do not, initiate it with allowLogicalDuplicate=false and a new X-Request-ID, which asks the bank to refuse a payment that it has already. Send any other request anew, with a new X-Request-ID, only if it was not taken.",
            example: "The service restarts while it takes a payment",
        },
        Reason::RegisterStale => Guide {
            rules: "CRT-7",
            when: "The gateway's copy of a register, the EBA's or another one that the bank uses, is older than it may be, and is not to be relied on.",
            remedy: "Try again after the seconds in Retry-After. If it stays so, tell the bank: its operators have to put a newer register in place.",
            example: "The daily download of a register has failed for a week",
        },
        Reason::RevocationUnavailable => Guide {
            rules: "CRT-6, CRT-11",
            when: "The OCSP responder or the CRL of the certificate's issuer, or of a CA above it, has not answered yet; or it cannot be had, or does not know the certificate, and the gateway is not to let requests pass without.",
            remedy: "Try again after the seconds in Retry-After. If it stays so, tell the bank: its operators see which address does not answer.",
            example: "The issuer's responder is down",
        },
        Reason::Overloaded => Guide {
            rules: "ERR-4, QUO-12",
            when: "The gateway is busy or about to stop, or more certificates that it does not know came than it takes in a second. One is known once a request that it signed was verified.",
            remedy: "Try again after the seconds in Retry-After.",
            example: "A restart",
        },
        Reason::TooManyAtOnce => Guide {
            rules: "ERR-4, HTTP-9, QUO-12",
            when: "The TPP has as many requests in progress as it may, the address as many connections, or the connection as many HTTP/2 streams; or the address sent more certificates that the gateway does not know than it takes in a second. Other callers are served.",
            remedy: "Try again after the seconds in Retry-After, keep fewer requests in progress, and send them over few connections that stay open.",
            example: "A hundred requests at the same time",
        },
        Reason::StateUnavailable => Guide {
            rules: "ERR-4, REP-1, SIG-12",
            when: "The gateway cannot reach the records that it judges by: sessions, consents, calls that were made. Or it cannot sign its answer, and the bank has executed nothing.",
            remedy: "Try again after the seconds in Retry-After, with a new X-Request-ID.",
            example: "The gateway's disk is full",
        },
        _ => Guide {
            rules: "ERR-4",
            when: "The gateway failed.",
            remedy: "Tell the bank, with the id of the answer and X-Request-ID.",
            example: "A fault in the gateway",
        },
    }
}
