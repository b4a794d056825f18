//! Random operations on a bank in memory, compared with a model that stores only numbers.

use super::{assert_double_entry, open};
use crate::core::bank::{Bank, BankFault};
use crate::core::payment::order::Ordered;
use crate::core::payment::{CROSS_BORDER, DOMESTIC, INSTANT, Payment, Status};
use portvakt_base::clock::Timestamp;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The number of operations.
const OPERATIONS: u32 = 20_000;

/// The interval of full checks, in operations.
const LOOK: u32 = 2_000;

const TPP: &str = "PSDNO-FSA-1";

/// Pseudorandom numbers, the same in each run (xorshift64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(most).unwrap()).unwrap()
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// A payment in any state, and its basket.
struct Known {
    id: String,
    status: Status,
}

/// The model: the expected balance of each account.
#[derive(Default)]
struct Model {
    balances: BTreeMap<String, i64>,
    payments: Vec<Known>,
    baskets: Vec<(String, Vec<String>)>,
}

/// A customer and the accounts they can pay from.
struct Payer {
    customer: String,
    agreement: Option<uuid::Uuid>,
    account: String,
    bban: String,
    currency: String,
}

fn payers(bank: &Bank) -> Vec<Payer> {
    let mut payers = Vec::new();
    for customer in bank.customers().unwrap() {
        let mut contexts = vec![None];
        let agreements = bank.agreements_of(&customer.id).unwrap();
        contexts.extend(agreements.into_iter().map(|agreement| Some(agreement.id)));
        for agreement in contexts {
            if customer.context == "CORPORATE" {
                continue;
            }
            let accounts = bank.accounts_in(&customer.id, agreement).unwrap().unwrap();
            for account in accounts {
                payers.push(Payer {
                    customer: customer.id.clone(),
                    agreement,
                    account: account.id,
                    bban: account.bban,
                    currency: account.currency,
                });
            }
        }
    }
    payers
}

/// A random order, of any product and form, valid or not.
fn body(dice: &mut Dice, payers: &[Payer], payer: &Payer, product: &str) -> Value {
    let currency = match product {
        CROSS_BORDER => *dice.pick(&["NOK", "EUR", "USD", "JPY", "BHD"]),
        _ => "NOK",
    };
    let mut transfer = || {
        let digits = match currency {
            "JPY" => 0,
            "BHD" => 3,
            _ => 2,
        };
        let most = *dice.pick(&[10_000, 1_000_000, 90_000_000]);
        let amount = i64::try_from(dice.below(most) + 1).unwrap();
        let elsewhere = json!({"bban": "86011117947"});
        let creditor = match dice.below(10) {
            0..5 => json!({"bban": dice.pick(payers).bban}),
            // A number of this bank without an account.
            5 => json!({"bban": "97100999901"}),
            _ => elsewhere,
        };
        json!({
            "instructedAmount": {"amount": crate::core::money::written(amount, digits), "currency": currency},
            "creditorName": "a",
            "creditorAccount": creditor,
            "regulatoryReportingCode": "14",
            "regulatoryReportingInformation": "a",
        })
    };
    let mut body = transfer();
    let more: Vec<Value> = (0..3).map(|_| transfer()).collect();
    let members = body.as_object_mut().unwrap();
    match dice.below(10) {
        0 => {
            members.insert("frequency".into(), json!("Monthly"));
            members.insert("startDate".into(), json!("2026-04-01"));
        }
        1 => *members = Map::from_iter([("payments".to_owned(), json!(more))]),
        2 => {
            let day = *dice.pick(&["2026-03-14", "2026-06-01", "2026-12-24"]);
            members.insert("requestedExecutionDate".into(), json!(day));
        }
        _ => {}
    }
    members.insert(
        "debtorAccount".into(),
        json!({"bban": payer.bban, "currency": payer.currency}),
    );
    body
}

impl Model {
    /// Applies the change of a payment: for each part booked since, the ordered amounts.
    fn follow(&mut self, before: &Payment, after: &Payment) {
        for (old, new) in before.parts.iter().zip(&after.parts) {
            assert!(
                !old.status.is_booked() || new.status.is_booked(),
                "what is booked goes back no more"
            );
            if old.status.is_booked() || !new.status.is_booked() {
                continue;
            }
            *self.balances.get_mut(&after.debtor).unwrap() -= new.debit + new.fee;
            if let Some(creditor) = &new.creditor {
                *self.balances.get_mut(creditor).unwrap() += new.credit;
            }
        }
    }

    fn look(&self, bank: &Bank) {
        assert_double_entry(bank);
        for (account, balance) in &self.balances {
            assert_eq!(bank.booked(account).unwrap(), *balance, "{account}");
        }
        for (id, payments) in &self.baskets {
            let basket = bank.basket(TPP, id).unwrap().unwrap();
            let ids: Vec<_> = basket
                .payments
                .iter()
                .map(|payment| payment.id.clone())
                .collect();
            assert_eq!(ids, *payments);
            let states: Vec<_> = payments
                .iter()
                .map(|id| bank.payment(id).unwrap().unwrap().status())
                .collect();
            let worst = match states.as_slice() {
                states
                    if states
                        .iter()
                        .any(|status| matches!(status, Status::Rejected | Status::Cancelled)) =>
                {
                    "RJCT"
                }
                states if states.contains(&Status::Received) => "RCVD",
                states
                    if states.iter().all(|status| {
                        matches!(
                            status,
                            Status::Signed
                                | Status::InSettlement
                                | Status::WithoutPosting
                                | Status::Settled
                        )
                    }) =>
                {
                    "ACTC"
                }
                _ => "PATC",
            };
            assert_eq!(basket.status(), worst);
        }
    }
}

#[test]
fn double_entry_holds_after_twenty_thousand_operations() {
    let (bank, clock) = open(None);
    let payers = payers(&bank);
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    let mut model = Model::default();
    for payer in &payers {
        model
            .balances
            .insert(payer.account.clone(), bank.booked(&payer.account).unwrap());
    }
    let mut done = BTreeMap::<&str, u32>::new();
    for number in 0..OPERATIONS {
        let did = bank
            .atomically(|bank| step(bank, &mut dice, &mut model, &payers))
            .unwrap();
        *done.entry(did).or_default() += 1;
        if number % 400 == 0 {
            clock.set(Timestamp::from_unix(clock.now().unix() + 3_600));
        }
        if number % LOOK == 0 {
            model.look(&bank);
        }
    }
    model.look(&bank);
    let names: Vec<_> = done.keys().copied().collect();
    assert_eq!(
        names,
        [
            "adjusted",
            "basket",
            "batch",
            "cancelled",
            "ordered",
            "read",
            "refused",
            "signed"
        ],
        "{done:?}"
    );
    println!("{done:?}");
}

/// Performs one operation; returns its name.
fn step(
    bank: &Bank,
    dice: &mut Dice,
    model: &mut Model,
    payers: &[Payer],
) -> Result<&'static str, BankFault> {
    match dice.below(100) {
        _ if dice.below(250) == 0 => run(bank, model),
        0..30 => order(bank, dice, model, payers),
        30..55 => touch(bank, dice, model, Bank::sign, "signed"),
        55..62 => touch(
            bank,
            dice,
            model,
            |bank, id| match bank.payment(id)? {
                Some(payment) => bank.cancel(&payment).map(|_| ()),
                None => Ok(()),
            },
            "cancelled",
        ),
        62..72 => group(bank, dice, model),
        72..80 => {
            let payer = dice.pick(payers);
            let amount = i64::try_from(dice.below(2_000_000)).unwrap() - 900_000;
            let amount = if amount == 0 { 1 } else { amount };
            bank.adjust(&payer.account, &payer.currency, amount, Map::new())?;
            *model.balances.get_mut(&payer.account).unwrap() += amount;
            Ok("adjusted")
        }
        _ => {
            // Reading changes nothing.
            let payer = dice.pick(payers);
            let balance = bank.balance(&payer.account)?;
            assert_eq!(balance.booked, model.balances[&payer.account]);
            if !model.payments.is_empty() {
                let known = dice.pick(&model.payments);
                let payment = bank.payment(&known.id)?.unwrap();
                assert_eq!(payment.status(), known.status);
            }
            Ok("read")
        }
    }
}

fn order(
    bank: &Bank,
    dice: &mut Dice,
    model: &mut Model,
    payers: &[Payer],
) -> Result<&'static str, BankFault> {
    let payer = dice.pick(payers);
    let product = *dice.pick(&[DOMESTIC, CROSS_BORDER, INSTANT]);
    let body = body(dice, payers, payer, product).to_string();
    let ordered = Ordered {
        tpp: TPP,
        customer: &payer.customer,
        agreement: payer.agreement,
        product,
        body: body.as_bytes(),
    };
    let Ok(payment) = bank.order(&ordered)? else {
        return Ok("refused");
    };
    bank.keep(&payment)?;
    model.payments.push(Known {
        id: payment.id.clone(),
        status: payment.status(),
    });
    // Old payments are dropped, so that some hundred are pending.
    if model.payments.len() > 400 {
        let at = dice.below(model.payments.len());
        model.payments.swap_remove(at);
    }
    assert_eq!(bank.payment(&payment.id)?, Some(payment));
    Ok("ordered")
}

fn touch(
    bank: &Bank,
    dice: &mut Dice,
    model: &mut Model,
    act: impl Fn(&Bank, &str) -> Result<(), BankFault>,
    did: &'static str,
) -> Result<&'static str, BankFault> {
    if model.payments.is_empty() {
        return Ok(did);
    }
    let at = dice.below(model.payments.len());
    let id = model.payments[at].id.clone();
    let before = bank.payment(&id)?.unwrap();
    act(bank, &id)?;
    let after = bank.payment(&id)?.unwrap();
    model.follow(&before, &after);
    model.payments[at].status = after.status();
    Ok(did)
}

fn run(bank: &Bank, model: &mut Model) -> Result<&'static str, BankFault> {
    let mut open = bank.db.prepare_cached(
        "SELECT DISTINCT payment FROM part WHERE status NOT IN ('RCVD', 'ACSC', 'RJCT', 'CANC')",
    )?;
    let ids = open.query_map([], |row| row.get::<_, String>(0))?;
    let ids: Vec<String> = ids.collect::<Result<_, _>>()?;
    let mut before = Vec::new();
    for id in ids {
        before.extend(bank.payment(&id)?);
    }
    bank.run_now()?;
    let mut states = BTreeMap::new();
    for payment in before {
        let after = bank.payment(&payment.id)?.unwrap();
        model.follow(&payment, &after);
        states.insert(payment.id, after.status());
    }
    for known in &mut model.payments {
        // A payment unsigned for a week is refused; other unsigned payments do not change.
        let after = bank.payment(&known.id)?.unwrap().status();
        if known.status == Status::Received {
            assert!(matches!(after, Status::Received | Status::Rejected));
            known.status = after;
        }
        known.status = states.get(&known.id).copied().unwrap_or(known.status);
    }
    Ok("batch")
}

fn group(bank: &Bank, dice: &mut Dice, model: &mut Model) -> Result<&'static str, BankFault> {
    let mut chosen: Vec<Payment> = Vec::new();
    for _ in 0..4 {
        if model.payments.is_empty() {
            break;
        }
        let payment = bank.payment(&dice.pick(&model.payments).id)?.unwrap();
        let is_new = chosen
            .iter()
            .all(|other| other.id != payment.id && other.customer == payment.customer);
        if is_new && !bank.is_in_a_basket(&payment.id)? {
            chosen.push(payment);
        }
    }
    if let Some(first) = chosen.first() {
        let customer = bank.customer_by_id(&first.customer)?;
        let id = bank.new_basket(TPP, &customer, first.agreement, &chosen)?;
        let ids = chosen.into_iter().map(|payment| payment.id).collect();
        model.baskets.push((id, ids));
    }
    Ok("basket")
}
