//! The reasons that a request's own form gives: its line and framing, its headers, its query, its body.

use super::entry::Guide;
use crate::Reason;

pub(super) const fn transport(reason: Reason) -> Guide {
    match reason {
        Reason::OperationUnknown => Guide {
            rules: "HTTP-1",
            when: "No operation has this path in this environment. Paths are compared in their letter case, and what stands under /v1/sandbox exists in the sandbox only.",
            remedy: "The fault names the path of the interface that is nearest, where one is near. Compare with the interface's list of operations, the version in front included.",
            example: "GET /v1/account instead of GET /v1/accounts",
        },
        Reason::MethodNotAllowed => Guide {
            rules: "HTTP-2",
            when: "The path is known, but not with this method.",
            remedy: "Use one of the methods in the Allow header of the answer, which the fault names too. A method stands in capitals.",
            example: "DELETE /v1/accounts, which is answered with Allow: GET",
        },
        Reason::ProductUnknown => Guide {
            rules: "HTTP-3",
            when: "The payment product in the path is none that the bank has.",
            remedy: "Use norwegian-domestic-credit-transfers, norwegian-cross-border-credit-transfers, instant-norwegian-credit-transfers-straks, or one that the bank's description (openapi.json) lists besides.",
            example: "POST /v1/payments/gold-transfers",
        },
        Reason::MediaTypeUnsupported => Guide {
            rules: "HTTP-4",
            when: "The body is announced as something other than JSON in UTF-8, or with a content coding.",
            remedy: "Send Content-Type: application/json, and neither another charset nor Content-Encoding.",
            example: "Content-Type: application/xml",
        },
        Reason::NotAcceptable => Guide {
            rules: "HTTP-5",
            when: "The Accept header allows no JSON, and nothing else is ever answered.",
            remedy: "Accept application/json, or leave the header out.",
            example: "Accept: text/html",
        },
        Reason::BodyTooLarge => Guide {
            rules: "HTTP-6",
            when: "The body has more bytes than the limit, which the fault names.",
            remedy: "Send a smaller body. Bodies of this interface stay far below the limit.",
            example: "65537 bytes where 65536 pass",
        },
        Reason::ExpectationFailed => Guide {
            rules: "HTTP-7",
            when: "The request has an Expect header with another value than 100-continue.",
            remedy: "Send Expect: 100-continue, or leave the header out.",
            example: "Expect: 200-ok",
        },
        Reason::BodyUnexpected => Guide {
            rules: "HTTP-8",
            when: "The operation takes no body, and the request has one other than an empty JSON object.",
            remedy: "Send no body, or Content-Length: 0 where your client insists on a length.",
            example: "A GET with a body",
        },
        Reason::RequestTimeout => Guide {
            rules: "HTTP-9",
            when: "The head or the body did not arrive within the gateway's time limit.",
            remedy: "Send the whole head at once, and the body after it. If it keeps happening, look at the network between.",
            example: "Content-Length: 500, after which 200 bytes follow",
        },
        Reason::HeadersTooLarge => Guide {
            rules: "HTTP-9",
            when: "TPP-Signature-Certificate is longer than 16 KiB, or the head has more bytes or fields than the gateway takes: 32 KiB and 100 by default.",
            remedy: "Send the base64 of the DER certificate and nothing else: it has under 4 KiB. Send no headers that the interface does not have.",
            example: "A PEM text with a whole bundle of CAs",
        },
        _ => Guide {
            rules: "HTTP-7, HTTP-10, FWD-2",
            when: "Two servers could read the request in two ways: its framing, its path, or a Connection header that takes away what must arrive. Where the HTTP/2 library itself refuses a stream, the answer has no body.",
            remedy: "The fault says what is ambiguous. Mostly a path was put together carelessly: no empty or dot segments, no trailing slash, no percent-encoding of letters, digits and - . _ ~, and ids as the bank gave them out, without white space, percent signs or semicolons",
            example: "GET /v1//accounts, or Content-Length beside Transfer-Encoding",
        },
    }
}

pub(super) const fn headers(reason: Reason) -> Guide {
    match reason {
        Reason::HeaderMissing => Guide {
            rules: "HDR-1 to HDR-5, HDR-13, DIG-2",
            when: "Headers that the operation requires are missing or empty. All of them are named at once.",
            remedy: "Add each header that the faults name.",
            example: "A payment without PSU-IP-Address",
        },
        Reason::CorporateIdMissing => Guide {
            rules: "HDR-13, HDR-14",
            when: "PSU-Context is CORPORATE and PSU-ID is sent, but PSU-Corporate-ID is not, so that it is open for which corporation the PSU acts; or neither context nor agreement is named for a PSU who has corporate contexts only; or PSU-Context is CORPORATE with X-PSU-IDENTITY in place of PSU-ID, which is for private customers.",
            remedy: "Send the psu-corporate-id that came with the redirect after SCA, with its PSU-ID; GET /v1/agreements lists the PSU's agreements.",
            example: "GET /v1/accounts with PSU-ID and PSU-Context: CORPORATE only",
        },
        Reason::HeaderDuplicated => Guide {
            rules: "HDR-15",
            when: "A header stands twice that decides who asks for what.",
            remedy: "Send it once. A proxy of your own may be adding one.",
            example: "Two X-Request-ID headers",
        },
        Reason::DateSkewed => Guide {
            rules: "DAT-2",
            when: "The Date header is more than 60 seconds from the gateway's clock when the head has come, or when the whole body has.",
            remedy: "Compare with the Date of the answer. Synchronise the clock, sign requests when they are sent, not before, and send the body at once.",
            example: "A request that waited 61 seconds in a queue",
        },
        Reason::DigestMismatch => Guide {
            rules: "DIG-1",
            when: "The Digest header is not the digest of the body that was received.",
            remedy: "Digest exactly the bytes that are sent: nothing may format the JSON anew afterwards. The value is base64, not hexadecimal.",
            example: "A body with a newline that the digest does not know of",
        },
        Reason::DigestUnsupported => Guide {
            rules: "DIG-1",
            when: "The Digest header names neither SHA-256 nor SHA-512.",
            remedy: "Send Digest: SHA-256=<base64 of the hash>.",
            example: "Digest: MD5=...",
        },
        _ => Guide {
            rules: "HDR-5, HDR-7 to HDR-12, HDR-14, HDR-16, DAT-1",
            when: "Headers do not have the form that the interface gives them. All of them are named at once.",
            remedy: "Each fault says what would pass.",
            example: "Date: Sunday, 06-Nov-94 08:49:37 GMT",
        },
    }
}

pub(super) const fn query(reason: Reason) -> Guide {
    match reason {
        Reason::HistoryTooOld => Guide {
            rules: "QUO-8",
            when: "PSU-IP-Address is missing, and the transactions that are asked for begin more than 90 days ago.",
            remedy: "Ask for 90 days or less, or ask while the PSU is present and send PSU-IP-Address.",
            example: "dateFrom=2020-01-01 without PSU-IP-Address",
        },
        Reason::PeriodInverted => Guide {
            rules: "QRY-2",
            when: "The first day of the period is after its last.",
            remedy: "Exchange the two, or leave one out.",
            example: "dateFrom=2026-02-01&dateTo=2026-01-01",
        },
        Reason::QueryMissing => Guide {
            rules: "QRY-4",
            when: "Query parameters that the operation requires are missing. No operation of the interface requires one; those that a bank adds may.",
            remedy: "Add each parameter that the faults name.",
            example: "An operation of the bank's own without its parameter",
        },
        _ => Guide {
            rules: "QRY-1, QRY-3",
            when: "Query parameters do not have the form that the interface gives them, a name stands twice or is nearly one of the interface's, a semicolon stands in the query, or a parameter is not taken without the PSU. All of them are named at once.",
            remedy: "Each fault says what would pass. Names are compared in their letter case; a semicolon in a value is written %3B.",
            example: "dateFrom=01.02.2026, datefrom=2026-02-01, or limit=0",
        },
    }
}

pub(super) const fn payload(reason: Reason) -> Guide {
    match reason {
        Reason::PayloadMalformed => Guide {
            rules: "PAY-1",
            when: "The body is not one JSON value in UTF-8: its syntax, something behind it, a byte order mark, half a surrogate pair. Or two servers could read it in two ways: an object has two members of one name. Or it is nested more than 32 levels deep.",
            remedy: "The fault gives line and column. Write the body with a JSON library, in UTF-8.",
            example: "{\"amount\": \"1.00\", \"amount\": \"2.00\"}",
        },
        _ => Guide {
            rules: "PAY-2 to PAY-14, PAY-17",
            when: "Members of the body are missing or do not have the values that the interface gives them. All of them are named at once, with their paths. So are members whose names some servers would read as one of the interface's (InstructedAmount), and texts with control characters or bidirectional overrides. A requestedExecutionDate that is wrong or has passed has the code EXECUTION_DATE_INVALID.",
            remedy: "Each fault says what would pass. Leave out what you have no value for: null is no value.",
            example: "{\"amount\": \"100\", \"currency\": \"NOK\"}: NOK has 2 fraction digits, 100.00",
        },
    }
}
