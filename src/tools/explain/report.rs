//! The report: the input, each check, the refusal, the signing string, the comparison.

use super::{
    difference::{self, Difference},
    evidence, guess,
    judge::{JudgedRequest, Moment},
    vouched,
};
use crate::{
    admission::{self, Snapshot, Stage, Verdict},
    interface::{FaultPlace, Reason, Refusal, headers::date, operations::AnsweredBy},
    terminal::tame,
    tools::{
        saved::{SavedRequest, Wire},
        visible::visible,
    },
};
use std::io::{self, Write};

/// The column of the evidence.
const INDENT: &str = "                          ";

pub(super) fn write(
    request: &SavedRequest,
    judged: &JudgedRequest,
    snapshot: &Snapshot,
    theirs: Option<&[u8]>,
    out: &mut dyn Write,
) -> io::Result<()> {
    what_was_read(request, judged, snapshot, out)?;
    checks(request, judged, out)?;
    match &judged.verdict {
        _ if judged.is_open => {
            writeln!(
                out,
                "\nundecided: {} has not the body that was sent, and no check before it refuses the request",
                request.form
            )?;
            writeln!(
                out,
                "  save it with curl --trace FILE, which keeps every byte"
            )?;
        }
        Ok(holds) => {
            match holds.answered_by {
                AnsweredBy::Upstream => writeln!(out, "\nadmitted: it would be forwarded")?,
                AnsweredBy::Gateway => writeln!(out, "\nadmitted: the gateway answers it")?,
            }
            for reason in &holds.observed {
                writeln!(out, "  observed, not refused: {}", reason.slug())?;
            }
        }
        Err(refusal) if refusal.reason() == Reason::OperationUnknown => {
            let refusal = admission::unknown_path(&request.target, &snapshot.catalogue);
            refused(request, &refusal, out)?;
        }
        Err(refusal) => refused(request, refusal, out)?,
    }
    not_judged(judged, snapshot, out)?;
    signing_string(judged, out)?;
    let comparison = theirs.zip(judged.signing_string.as_deref());
    if let Some((theirs, ours)) = comparison {
        compared(ours, theirs, request, judged, out)?;
    } else if theirs.is_some() {
        writeln!(
            out,
            "\nthere is no signing string of the gateway's to compare with"
        )?;
    }
    let mismatch = |refusal: &Refusal| refusal.reason() == Reason::SignatureMismatch;
    if judged.verdict.as_ref().is_err_and(mismatch) {
        for found in guess::meant(request, judged, theirs) {
            writeln!(out, "\nfound: {found}")?;
        }
    }
    Ok(())
}

fn what_was_read(
    request: &SavedRequest,
    judged: &JudgedRequest,
    snapshot: &Snapshot,
    out: &mut dyn Write,
) -> io::Result<()> {
    let moment = judged.moment;
    let version = match request.wire {
        Wire::Lines(_) => "HTTP/1.1",
        Wire::Frames(_) => "HTTP/2",
    };
    let target = visible(&request.target);
    writeln!(
        out,
        "{} {target} ({version}, from {})",
        tame(&request.method),
        request.form
    )?;
    for note in request.notes.iter().chain(&vouched::note(request, judged)) {
        writeln!(out, "note: {note}")?;
    }
    let whose = match moment {
        Moment::Asked(_) => "as --at says",
        Moment::OfRequest(_) => {
            "the request's own Date: a saved request is always stale; --at TIME chooses another moment"
        }
        Moment::Present(_) => "now, because the request's Date cannot be read",
    };
    let at = date::format(moment.at());
    let environment = snapshot.policy.environment.name();
    writeln!(out, "judged for the {environment} as of {at} ({whose})\n")
}

fn checks(request: &SavedRequest, judged: &JudgedRequest, out: &mut dyn Write) -> io::Result<()> {
    for check in judged.record.checks() {
        let lines = match check.verdict {
            _ if judged.is_open && check.stage == Stage::Body => {
                vec!["the file has not the body that was sent".to_owned()]
            }
            Verdict::Held => evidence::of(check.stage, request, judged),
            Verdict::Refused(reason) | Verdict::Waived(reason) => vec![reason.slug().to_owned()],
            Verdict::Skipped => vec!["it had nothing to judge by".to_owned()],
        };
        let verdict = match judged.is_open && check.stage == Stage::Body {
            true => Verdict::Skipped,
            false => check.verdict,
        };
        let (name, word) = (check.stage.name(), evidence::word(verdict));
        write!(out, "  {name:<14}{word:<10}")?;
        for (index, line) in lines.iter().enumerate() {
            if index > 0 {
                write!(out, "{INDENT}")?;
            }
            writeln!(out, "{line}")?;
        }
    }
    if judged.verdict.is_ok() {
        for stage in [Stage::Sca, Stage::Claim] {
            let (name, word) = (stage.name(), evidence::word(Verdict::Skipped));
            let text = "it needs the gateway's records, which are not looked at here";
            writeln!(out, "  {name:<14}{word:<10}{text}")?;
        }
    }
    Ok(())
}

/// The error body, and the details for the operator.
fn refused(request: &SavedRequest, refusal: &Refusal, out: &mut dyn Write) -> io::Result<()> {
    let reason = refusal.reason();
    let status = refusal.status();
    let code = refusal.code().map_or("_links", |code| code.as_str());
    writeln!(out, "\nrefused: {status} {code} {}", reason.slug())?;
    writeln!(out, "  {}", reason.title())?;
    for fault in refusal.faults() {
        let place = match &fault.place {
            FaultPlace::Request => "the request",
            FaultPlace::Header(name) => name,
            FaultPlace::Query(name) | FaultPlace::Member(name) => name.as_str(),
            FaultPlace::Body => "the body",
        };
        writeln!(
            out,
            "  - {place}: {} ({})",
            tame(&fault.text),
            fault.reason.slug()
        )?;
    }
    for line in request
        .damage
        .iter()
        .filter(|_| reason == Reason::MalformedRequest)
    {
        writeln!(out, "  - {}", tame(line))?;
    }
    if let Some(methods) = refusal.allow() {
        writeln!(out, "  Allow: {methods}")?;
    }
    if let Some(text) = refusal.operator() {
        writeln!(out, "  for the operator only: {}", tame(text))?;
    }
    writeln!(out, "  more: portvakt explain {}", reason.slug())
}

fn not_judged(judged: &JudgedRequest, snapshot: &Snapshot, out: &mut dyn Write) -> io::Result<()> {
    let made = |stage: &Stage| {
        judged
            .record
            .checks()
            .iter()
            .any(|check| check.stage == *stage)
    };
    let left: Vec<_> = Stage::ALL
        .iter()
        // A certificate's revocation is known only for the present, so it is not part of an explanation.
        .filter(|stage| **stage != Stage::Revocation && !made(stage))
        .filter(|stage| **stage != Stage::Register || snapshot.registers.is_some())
        .map(|stage| stage.name())
        .collect();
    if !left.is_empty() {
        writeln!(out, "not judged after that: {}", left.join(", "))?;
    }
    Ok(())
}

fn signing_string(judged: &JudgedRequest, out: &mut dyn Write) -> io::Result<()> {
    let Some(ours) = &judged.signing_string else {
        return writeln!(
            out,
            "\nno signing string: the Signature header is missing or cannot be read"
        );
    };
    let lines = ours.split(|byte| *byte == b'\n');
    let count = lines.clone().count();
    writeln!(
        out,
        "\nthe signing string that the gateway builds ({} bytes, {count} lines; the newline shows as \\n, and the last line has none):",
        ours.len()
    )?;
    for (index, line) in lines.enumerate() {
        let end = if index.saturating_add(1) < count {
            "\\n"
        } else {
            ""
        };
        writeln!(out, "  {}{end}", visible(line))?;
    }
    Ok(())
}

fn compared(
    ours: &[u8],
    theirs: &[u8],
    request: &SavedRequest,
    judged: &JudgedRequest,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Some(found) = difference::first(ours, theirs) else {
        writeln!(
            out,
            "\nyours is the same, byte for byte ({} bytes)",
            ours.len()
        )?;
        if judged.record.holds(Stage::Signature) {
            return Ok(());
        }
        return writeln!(
            out,
            "  so what differs is not the string: {}",
            guess::beyond(request, judged, ours)
        );
    };
    let Difference {
        offset,
        line,
        column,
        ..
    } = found;
    writeln!(
        out,
        "\nyours differs first at byte {offset} (line {line}, column {column}; {} bytes, the gateway's has {}):",
        theirs.len(),
        ours.len()
    )?;
    writeln!(out, "  the gateway's: {}{}", found.before, found.ours)?;
    writeln!(out, "  yours:         {}{}", found.before, found.theirs)?;
    writeln!(
        out,
        "                 {}^",
        " ".repeat(found.before.chars().count())
    )?;
    for hint in difference::hints(ours, theirs) {
        writeln!(out, "  hint: {hint}")?;
    }
    Ok(())
}
