//! A program that writes to a ledger is killed repeatedly: every confirmed change is stored, and the balances are consistent.

use super::{assert_double_entry, open};
use crate::core::bank::BankFault;
use crate::core::payment::DOMESTIC;
use crate::core::payment::order::Ordered;
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The number of kills.
const KILLS: usize = 8;

/// How many payments are confirmed before each.
const LINES: usize = 4;

/// The environment variable with the ledger's path for the killed program: this test, as another process.
const LEDGER: &str = "PORTVAKT_KILLED_LEDGER";

const TPP: &str = "PSDNO-FSA-1";

/// Orders, signs and books payments until it is killed, and reports each completed one.
fn write(file: &Path) {
    let (bank, _) = open(Some(file));
    let mut out = std::io::stdout();
    loop {
        let done = bank.atomically(|bank| {
            let kari = bank.customer("01010112345")?;
            let accounts = bank.accounts_of(&kari.id)?;
            let body = json!({
                "instructedAmount": {"amount": "0.01", "currency": "NOK"}, "creditorName": "a",
                "creditorAccount": {"bban": accounts[1].bban}, "debtorAccount": {"bban": accounts[0].bban}});
            let body = body.to_string();
            let ordered = Ordered {
                tpp: TPP,
                customer: &kari.id,
                agreement: None,
                product: DOMESTIC,
                body: body.as_bytes(),
            };
            let payment = bank.order(&ordered)?.unwrap();
            bank.keep(&payment)?;
            bank.sign(&payment.id)?;
            bank.run_now()?;
            Ok::<_, BankFault>(payment.path())
        });
        writeln!(out, "done {}", done.unwrap()).unwrap();
        out.flush().unwrap();
    }
}

//= SBX-15 accepted
#[test]
fn what_was_answered_survives_kill_9() {
    if let Some(file) = std::env::var_os(LEDGER) {
        return write(Path::new(&file));
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ledger.db");
    let mut answered: Vec<String> = Vec::new();
    for pause in (20..).step_by(13).take(KILLS) {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "core::model_tests::killed::what_was_answered_survives_kill_9",
                "--nocapture",
            ])
            .env(LEDGER, &file)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut lines = lines.map_while(Result::ok);
        // The first lines mean that the program works; it is killed at a random point of its work.
        let first = lines.by_ref();
        let first = first.filter_map(|line| Some(line.split_once("done ")?.1.to_owned()));
        answered.extend(first.take(LINES));
        std::thread::sleep(Duration::from_millis(pause));
        child.kill().unwrap();
        child.wait().unwrap();
        // The complete lines that it wrote before it was killed.
        let said = lines.filter_map(|line| line.strip_prefix("done ").map(str::to_owned));
        let whole = answered[0].len();
        answered.extend(said.filter(|path| path.len() == whole));

        let (bank, _) = open(Some(&file));
        for path in &answered {
            let payment = bank.payment_at(TPP, path).unwrap().unwrap();
            assert_eq!(payment.status().word(), "ACSC", "{path}");
        }
        assert_double_entry(&bank);
        // Every payment is complete: the amount left one account and reached the other.
        let kari = bank.customer("01010112345").unwrap();
        let accounts = bank.accounts_of(&kari.id).unwrap();
        let booked = |at: usize| bank.booked(&accounts[at].id).unwrap();
        let payments: i64 = bank
            .db
            .query_row("SELECT count(*) FROM payment", [], |row| row.get(0))
            .unwrap();
        assert_eq!(
            (booked(0), booked(1)),
            (4_380_100 - payments, 5_012_550 + payments)
        );
        assert!(payments >= i64::try_from(answered.len()).unwrap());
    }
    assert!(answered.len() >= LINES * KILLS, "{}", answered.len());
}
