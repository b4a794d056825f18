//! The texts of the page of accesses in both languages. `{}` stands for the name of the TPP.

use super::super::super::language::Language;

/// All texts in one language.
#[derive(Debug)]
pub(super) struct AccessWords {
    pub(super) title: &'static str,
    // The number.
    pub(super) intro: &'static str,
    pub(super) hint: &'static str,
    // The list.
    pub(super) none: &'static str,
    pub(super) registered_as: &'static str,
    pub(super) for_whom: &'static str,
    pub(super) yourself: &'static str,
    pub(super) accounts: &'static str,
    pub(super) since: &'static str,
    pub(super) until: &'static str,
    pub(super) over: &'static str,
    pub(super) last_use: &'static str,
    pub(super) never: &'static str,
    pub(super) unknown: &'static str,
    pub(super) counted: &'static str,
    pub(super) unclear: &'static str,
    // Buttons.
    pub(super) withdraw: &'static str,
    pub(super) withdraw_all: &'static str,
    pub(super) again: &'static str,
    // Messages.
    pub(super) withdrawn: &'static str,
    pub(super) not_withdrawn: &'static str,
    pub(super) outdated: &'static str,
    pub(super) unavailable: &'static str,
}

impl AccessWords {
    /// Those of a language.
    pub(super) const fn of(language: Language) -> &'static Self {
        match language {
            Language::English => &ENGLISH,
            Language::Norwegian => &NORWEGIAN,
        }
    }
}

const ENGLISH: AccessWords = AccessWords {
    title: "Who may read your accounts",
    intro: "See which providers may read your accounts, and take access back.",
    hint: "Enter the number with which you gave access. This is a test bank: the number is not checked.",
    none: "No provider may read your accounts.",
    registered_as: "Registered as",
    for_whom: "On behalf of",
    yourself: "yourself",
    accounts: "Accounts",
    since: "Since",
    until: "Until",
    over: "This time is over. The provider must send you here before it can read again.",
    last_use: "Last use",
    never: "none that the bank knows of",
    unknown: "not known",
    counted: "This access was changed at the bank. The number of accounts is now",
    unclear: "You gave access for several companies, and the bank withdrew some of it. It cannot say for which company.",
    withdraw: "Withdraw access from {}",
    withdraw_all: "Withdraw all access",
    again: "Try again",
    withdrawn: "Access is withdrawn, from the next request of the provider on.",
    not_withdrawn: "Access was not withdrawn, or not all of it: a part of the bank does not answer. Try again in a moment.",
    outdated: "That page was out of date or used before, so this press withdrew nothing. What was withdrawn before it stays so. Begin again to see.",
    unavailable: "The bank cannot say who may read your accounts now: a part of the bank does not answer. Try again in a moment.",
};

const NORWEGIAN: AccessWords = AccessWords {
    title: "Hvem kan lese kontoene dine",
    intro: "Se hvilke tilbydere som får lese kontoene dine, og ta tilgangen tilbake.",
    hint: "Skriv nummeret du ga tilgang med. Dette er en testbank: nummeret blir ikke kontrollert.",
    none: "Ingen tilbyder får lese kontoene dine.",
    registered_as: "Registrert som",
    for_whom: "På vegne av",
    yourself: "deg selv",
    accounts: "Kontoer",
    since: "Siden",
    until: "Til",
    over: "Denne tiden er ute. Tilbyderen må sende deg hit før de kan lese igjen.",
    last_use: "Sist brukt",
    never: "aldri, så vidt banken vet",
    unknown: "ikke kjent",
    counted: "Denne tilgangen er endret i banken. Antallet kontoer er nå",
    unclear: "Du ga tilgang for flere bedrifter, og banken har trukket tilbake noe av den. Den kan ikke si for hvilken bedrift.",
    withdraw: "Trekk tilbake tilgangen til {}",
    withdraw_all: "Trekk tilbake all tilgang",
    again: "Prøv igjen",
    withdrawn: "Tilgangen er trukket tilbake, fra og med neste forespørsel fra tilbyderen.",
    not_withdrawn: "Tilgangen ble ikke trukket tilbake, eller ikke hele: en del av banken svarer ikke. Prøv igjen om litt.",
    outdated: "Den siden var utdatert eller brukt før, så dette trykket trakk ingenting tilbake. Det som ble trukket før, er fortsatt trukket. Begynn på nytt for å se.",
    unavailable: "Banken kan ikke si hvem som får lese kontoene dine nå: en del av banken svarer ikke. Prøv igjen om litt.",
};
