-- What the simulated bank keeps. Amounts are whole minor units, of at most 18 digits; balances and the states of payments and
-- baskets that consist of others are never stored: they follow from bookings and parts.

CREATE TABLE IF NOT EXISTS setting (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

CREATE TABLE IF NOT EXISTS customer (
    id TEXT PRIMARY KEY,
    context TEXT NOT NULL CHECK (context IN ('PRIVATE', 'CORPORATE')),
    -- A mocked national identity number, or an organisation number.
    identity TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL
) STRICT;

CREATE TABLE IF NOT EXISTS account (
    id TEXT PRIMARY KEY,
    -- The order in which accounts were opened, by which they are listed.
    number INTEGER NOT NULL UNIQUE,
    -- None for an account of the bank's own.
    customer TEXT REFERENCES customer ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('CURRENT', 'SAVINGS', 'CARD', 'BANK')),
    name TEXT NOT NULL,
    bban TEXT UNIQUE,
    currency TEXT NOT NULL,
    credit_line INTEGER NOT NULL CHECK (credit_line >= 0),
    -- Whether payments to it need a KID: MOD10, MOD11 or none.
    kid TEXT
) STRICT;
CREATE INDEX IF NOT EXISTS account_of_customer ON account (customer, number);

-- An account that the bank lets nobody pay from any more. It can be read as before.
CREATE TABLE IF NOT EXISTS payment_stop (
    account TEXT PRIMARY KEY REFERENCES account ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- A representative's access to a corporation. Its id is PSU-Corporate-ID.
CREATE TABLE IF NOT EXISTS agreement (
    id TEXT PRIMARY KEY,
    representative TEXT NOT NULL REFERENCES customer ON DELETE CASCADE,
    corporation TEXT NOT NULL REFERENCES customer ON DELETE CASCADE,
    UNIQUE (representative, corporation)
) STRICT;

-- An account of the corporation that is not granted to the representative.
CREATE TABLE IF NOT EXISTS withheld (
    agreement TEXT NOT NULL REFERENCES agreement ON DELETE CASCADE,
    account TEXT NOT NULL REFERENCES account ON DELETE CASCADE,
    PRIMARY KEY (agreement, account)
) STRICT, WITHOUT ROWID;

-- A PSU-ID: one for each pair of TPP and customer.
CREATE TABLE IF NOT EXISTS psu (
    id TEXT PRIMARY KEY,
    tpp TEXT NOT NULL,
    customer TEXT NOT NULL REFERENCES customer ON DELETE CASCADE,
    UNIQUE (tpp, customer)
) STRICT;

-- An account that a PSU has opened to a TPP. agreement is empty in the private context.
CREATE TABLE IF NOT EXISTS consent (
    psu TEXT NOT NULL REFERENCES psu ON DELETE CASCADE,
    agreement TEXT NOT NULL,
    account TEXT NOT NULL REFERENCES account ON DELETE CASCADE,
    PRIMARY KEY (psu, agreement, account)
) STRICT, WITHOUT ROWID;

-- When a PSU opened accounts to a TPP, and when the TPP read one of them last, in seconds of Unix time. Whether it may read them still
-- is the gateway's to say. agreement is empty in the private context.
CREATE TABLE IF NOT EXISTS access (
    psu TEXT NOT NULL REFERENCES psu ON DELETE CASCADE,
    agreement TEXT NOT NULL,
    since INTEGER,
    used INTEGER,
    PRIMARY KEY (psu, agreement)
) STRICT, WITHOUT ROWID;

-- The name of a TPP in the certificate by which it asked last for an SCA that a PSU approved.
CREATE TABLE IF NOT EXISTS tpp_name (
    tpp TEXT PRIMARY KEY,
    name TEXT NOT NULL
) STRICT;

-- One business event: bookings of the sum zero in each currency.
CREATE TABLE IF NOT EXISTS posting (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    booked TEXT NOT NULL,
    valued TEXT NOT NULL,
    -- What transaction details say beside ids, dates and amount: a JSON object, with the exchange of the creditor's side apart.
    details TEXT NOT NULL
) STRICT;

-- An amount in one account of one posting; less than nothing where it leaves the account.
CREATE TABLE IF NOT EXISTS booking (
    account TEXT NOT NULL REFERENCES account,
    posting INTEGER NOT NULL REFERENCES posting,
    amount INTEGER NOT NULL CHECK (amount <> 0),
    PRIMARY KEY (account, posting)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS booking_of_posting ON booking (posting);

CREATE TABLE IF NOT EXISTS payment (
    id TEXT PRIMARY KEY,
    number INTEGER NOT NULL UNIQUE,
    tpp TEXT NOT NULL,
    product TEXT NOT NULL,
    form TEXT NOT NULL CHECK (form IN ('SINGLE', 'BULK', 'PERIODIC')),
    customer TEXT NOT NULL REFERENCES customer,
    -- Empty in the private context.
    agreement TEXT NOT NULL,
    debtor TEXT NOT NULL REFERENCES account,
    created TEXT NOT NULL,
    -- The day that was asked for, and the bank day on which it is carried out.
    requested TEXT,
    due TEXT NOT NULL,
    body TEXT NOT NULL
) STRICT;

-- What a payment consists of: one part, or as many as a bulk has.
CREATE TABLE IF NOT EXISTS part (
    payment TEXT NOT NULL REFERENCES payment ON DELETE CASCADE,
    number INTEGER NOT NULL,
    status TEXT NOT NULL,
    amount INTEGER NOT NULL CHECK (amount > 0),
    currency TEXT NOT NULL,
    -- The payment's own, so that what is pending in an account is found without all that ever was. It never changes.
    debtor TEXT NOT NULL REFERENCES account,
    -- In the debtor account's currency: what leaves it, and the fee on top.
    debit INTEGER NOT NULL CHECK (debit > 0),
    fee INTEGER NOT NULL CHECK (fee >= 0),
    -- Where the creditor's account is in this bank: its id, and the amount in its currency.
    creditor TEXT REFERENCES account,
    credit INTEGER,
    -- What transaction details say of it: a JSON object.
    details TEXT NOT NULL,
    -- How many runs of the batch found no funds.
    attempts INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (payment, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS part_by_status ON part (status);
CREATE INDEX IF NOT EXISTS payment_of_debtor ON payment (debtor, number);
CREATE INDEX IF NOT EXISTS part_of_debtor ON part (debtor, status);
CREATE INDEX IF NOT EXISTS part_of_creditor ON part (creditor, status);

CREATE TABLE IF NOT EXISTS basket (
    id TEXT PRIMARY KEY,
    tpp TEXT NOT NULL,
    customer TEXT NOT NULL REFERENCES customer,
    agreement TEXT NOT NULL
) STRICT;

CREATE TABLE IF NOT EXISTS basket_payment (
    basket TEXT NOT NULL REFERENCES basket ON DELETE CASCADE,
    position INTEGER NOT NULL,
    payment TEXT NOT NULL UNIQUE REFERENCES payment ON DELETE CASCADE,
    PRIMARY KEY (basket, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS contact (
    tpp TEXT PRIMARY KEY,
    email TEXT NOT NULL
) STRICT;

-- An SCA that the PSU approved, until the gateway and this ledger both know it, and for an hour more.
CREATE TABLE IF NOT EXISTS ending (
    -- The hash of the request's token.
    request TEXT PRIMARY KEY,
    -- What is to be done next: the gateway completes the SCA, the gateway withdraws a consent, or nothing.
    step TEXT NOT NULL CHECK (step IN ('COMPLETE', 'WITHDRAW', 'ENDED')),
    -- When the PSU approved it, in seconds of Unix time.
    approved INTEGER NOT NULL,
    tpp TEXT NOT NULL,
    psu TEXT NOT NULL,
    -- Empty in the private context.
    agreement TEXT NOT NULL,
    -- The accounts that are open from now on, as a JSON array; none where the SCA asks for no consent.
    accounts TEXT,
    -- The payments that are signed, as a JSON array of their ids.
    payments TEXT NOT NULL,
    -- What the gateway is told, with the token; null when it has been told.
    completion TEXT NOT NULL,
    redirect_uri TEXT NOT NULL
) STRICT;
