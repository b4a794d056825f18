//! Do the claims decide, or the headers beside them, which nothing protects?
//!
//! Each fact is sent with one value as its claim and another one as a header, in each disguise, and as a header without a claim. The core
//! takes it from the header if it answers with success and with words that only the answers to the header's value have. Words that are
//! new in each answer do not count. Where its answers do not depend on the fact, the check says so and passes.

use super::marks::{Marks, View};
use super::owner;
use super::plant::{Disguise, Fact, PSU, ROLES, SCA, TPP, another_tpp};
use super::report::{ASSERTION as AREA, Check, NAMED};
use super::request::{Example, Request};
use super::session::{Outcome, Session, listed};
use axum::http::Method;
use uuid::Uuid;

/// The number of answers that must show the header's value: one alone may do so by chance.
const CONFIRMED: usize = 2;

/// All checks of the origin of facts.
pub(super) fn checks(session: &Session) -> Vec<Check> {
    let psu = session.gateway.psu.unwrap_or_else(Uuid::new_v4);
    let text = |values: [&str; 2]| values.map(str::to_owned);
    vec![
        from_claim(session, &TPP, &|| {
            [session.gateway.tpp.clone(), another_tpp()]
        }),
        owner::check(session),
        from_claim(session, &PSU, &|| {
            [psu, Uuid::new_v4()].map(|id| id.to_string())
        }),
        from_claim(session, &SCA, &|| text(["none", "session"])),
        from_claim(session, &ROLES, &|| text(["PSP_PI", "PSP_PI,PSP_AI"])),
        invented(session),
    ]
}

/// The check of a fact, by two values that a core should tell apart.
fn from_claim(session: &Session, fact: &Fact, values: &dyn Fn() -> [String; 2]) -> Check {
    let (mut depends, mut deceived) = (false, Vec::new());
    let examples = [session.read.clone(), agreements(), session.write.clone()];
    for example in &examples {
        if let Some(compared) = Compared::new(session, fact, example, values()) {
            depends = true;
            deceived.extend(compared.deceived());
        }
    }
    let passed = deceived.is_empty();
    deceived.truncate(NAMED);
    let found = match (depends, passed) {
        (true, false) => listed(&deceived),
        (true, true) => "the claim decides".to_owned(),
        (false, _) => format!("no answer depends on {}", fact.header),
    };
    Check::new(AREA, fact.check, found, passed, fact.mend)
}

/// An operation, two values of a fact, and the answers to each of them as claim and header.
struct Compared<'a> {
    session: &'a Session,
    fact: &'a Fact,
    example: &'a Example,
    values: [String; 2],
    views: [View; 2],
    /// Whether any of these answers is a success: only such an answer can show whose it is.
    succeeds: bool,
}

impl<'a> Compared<'a> {
    /// `None` where no answer is a success, or the answers do not depend on the fact.
    fn new(
        session: &'a Session,
        fact: &'a Fact,
        example: &'a Example,
        values: [String; 2],
    ) -> Option<Self> {
        let mut compared = Self {
            session,
            fact,
            example,
            values,
            views: Default::default(),
            succeeds: false,
        };
        compared.sample();
        let [first, second] = &compared.views;
        if !compared.succeeds || first == second {
            return None;
        }
        // Asked in turn: a change of the core between two answers is in the answers to both values.
        compared.sample();
        let [first, second] = &compared.views;
        let differ = !first.marks(second).is_empty() || !second.marks(first).is_empty();
        differ.then_some(compared)
    }

    /// Asks once with each value.
    fn sample(&mut self) {
        for (value, view) in self.values.iter().zip(&mut self.views) {
            let request = self.fact.right(self.session, self.example, value);
            let what = format!("{} {}", self.example.method, self.example.target);
            let outcome = self.session.ask(&what, &request);
            self.succeeds |= outcome.is_success();
            view.add(&outcome);
        }
    }

    /// An answer for each disguise in which the header decides.
    fn deceived(&self) -> Vec<Outcome> {
        let nobody = self.without();
        let ([a, b], [of_a, of_b]) = (&self.values, &self.views);
        let mut deceived = Vec::new();
        let (a, b) = (a.as_str(), b.as_str());
        for (values, of_claim, of_header) in [([a, b], of_a, of_b), ([b, a], of_b, of_a)] {
            for disguise in self.fact.disguises() {
                let beside = match disguise {
                    Disguise::Unclaimed => &nobody,
                    _ => of_claim,
                };
                let marks = of_header.marks(beside);
                deceived.extend(self.decided(disguise, values, marks));
            }
        }
        deceived
    }

    /// The answers to requests with neither claim nor header.
    fn without(&self) -> View {
        let mut view = View::default();
        for _ in 0..CONFIRMED {
            let request = self.fact.absent(self.session, self.example);
            let what = format!("{} without {}", self.example.method, self.fact.header);
            view.add(&self.session.ask(&what, &request));
        }
        view
    }

    /// The answer to a planted header, if this header decides: then each answer is a success with the same marks.
    fn decided(&self, disguise: Disguise, values: [&str; 2], mut marks: Marks) -> Option<Outcome> {
        let Example { method, target, .. } = self.example;
        let mut last = None;
        for _ in 0..CONFIRMED {
            if marks.is_empty() {
                return None;
            }
            let request = self
                .fact
                .planted(self.session, self.example, disguise, values);
            let what = format!("{method} {target}, {} {disguise}", self.fact.header);
            let outcome = self.session.ask(&what, &request);
            if !outcome.is_success() {
                return None;
            }
            marks = marks.within(&outcome);
            last = Some(outcome);
        }
        last.filter(|_| !marks.is_empty())
    }
}

/// SCA-19, SCA-22: whether the core confirms ids that nobody gave out. A core that is not learned from confirms nothing, and passes.
fn invented(session: &Session) -> Check {
    let id = || Uuid::new_v4().to_string();
    let unknown_psu = |request: Request| {
        let request = request.with("PSU-ID", id());
        request.with("Gateway-Psu-Bound", "no")
    };
    let unknown_agreement = |request: Request| {
        let request = request.with("PSU-Corporate-ID", id());
        request.with("Gateway-Psu-Corporate-Bound", "no")
    };
    let confirms = |request, name| {
        let outcome = session.ask(name, &session.gateway.vouch(request));
        let answer = outcome.answer.as_ref().ok();
        let yes = answer.and_then(|answer| answer.head.text(name)) == Some("yes");
        yes.then_some(outcome)
    };
    let mut confirmed = Vec::new();
    for example in [&session.read, &agreements()] {
        let forwarded = || session.gateway.forwarded(example);
        confirmed.extend(confirms(unknown_psu(forwarded()), "gateway-psu-bound"));
        let agreement = "gateway-psu-corporate-bound";
        confirmed.extend(confirms(
            unknown_agreement(unknown_psu(forwarded())),
            agreement,
        ));
        if session.gateway.psu.is_some() {
            confirmed.extend(confirms(unknown_agreement(forwarded()), agreement));
        }
    }
    let found = match confirmed.is_empty() {
        true => "no invented id is confirmed".to_owned(),
        false => listed(&confirmed),
    };
    let mend = "answer Gateway-Psu-Bound: yes only for a PSU-ID that the bank gave to this TPP, and Gateway-Psu-Corporate-Bound: yes only for an agreement of this PSU";
    Check::new(AREA, "invented", found, confirmed.is_empty(), mend)
}

/// An operation that needs a PSU.
fn agreements() -> Example {
    Example {
        operation: "agreement-list".into(),
        method: Method::GET,
        target: "/v1/agreements".into(),
        body: Vec::new(),
    }
}
