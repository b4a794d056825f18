-- What Portvakt keeps. Hashes are HMAC-SHA-256 cut to 128 bits, under a key in a file of its own, in the form of a uuid; times are
-- seconds since 1970. A TPP is a company, and stands in clear. Rows that are updated in place leave room on their page.

CREATE TABLE meta (
    name text PRIMARY KEY,
    value text NOT NULL
);

-- REP-1: the latest time that a gateway saw.
CREATE TABLE clock (
    latest bigint NOT NULL,
    stepped_back boolean NOT NULL,
    accepted bigint NOT NULL
) WITH (fillfactor = 20);

INSERT INTO clock VALUES (0, false, 0);

-- SCA-3, SCA-19: a PSU is bound to one TPP. SCA-4, SCA-16: it has one session.
CREATE TABLE psu (
    psu uuid PRIMARY KEY,
    tpp text NOT NULL,
    learned boolean NOT NULL,
    last_sca bigint,
    session uuid,
    completed bigint
) WITH (fillfactor = 90);

-- SCA-17, SCA-18: the private context (an empty corporate) and those of corporate agreements. Accounts are hashes side by side;
-- NULL is all of them.
CREATE TABLE context (
    psu uuid NOT NULL,
    corporate bytea NOT NULL,
    last_sca bigint,
    consent bigint,
    accounts bytea,
    PRIMARY KEY (psu, corporate)
);

-- QUO-1: the times of at most four calls.
CREATE TABLE quota (
    key uuid PRIMARY KEY,
    a bigint,
    b bigint,
    c bigint,
    d bigint
) WITH (fillfactor = 80);

-- QUO-13: the call that later pages of a list belong to, and the last entry that was asked for.
CREATE TABLE page (
    key uuid PRIMARY KEY,
    call bigint NOT NULL,
    last bigint NOT NULL
) WITH (fillfactor = 80);

-- REP-1: the last second in which an id counts as used.
CREATE TABLE request (
    key uuid PRIMARY KEY,
    until bigint NOT NULL
);

-- SCA-12: tokens that are spent, and a hash of what was said of their end.
CREATE TABLE token (
    key uuid PRIMARY KEY,
    said uuid NOT NULL,
    until bigint NOT NULL
);

-- The transactions of the last minutes, so that a gateway that lost the connection at COMMIT can ask whether the transaction took
-- effect. Who asks first writes the row: then the transaction can no longer commit.
CREATE TABLE attempt (
    id uuid PRIMARY KEY,
    committed boolean NOT NULL,
    asked integer NOT NULL DEFAULT 0,
    at timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX attempt_at ON attempt USING brin (at);

-- What other gateways may hold in memory and must drop: kind 0 is a PSU, kind 1 a quota. Transactions commit in another order than
-- they write, so readers ask by transaction, not by number.
CREATE TABLE change (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    kind smallint NOT NULL,
    key uuid NOT NULL,
    at timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX change_xid ON change (xid);

-- A row for each connection that proves several times a second that the database commits.
CREATE TABLE heartbeat (
    id uuid PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 20);

CREATE VIEW quota_used AS
SELECT key,
    (SELECT count(*) FROM unnest(ARRAY[a, b, c, d]) AS call WHERE call > extract(epoch FROM now()) - 86400) AS used,
    to_timestamp(a) AS call_a, to_timestamp(b) AS call_b, to_timestamp(c) AS call_c, to_timestamp(d) AS call_d
FROM quota;

CREATE VIEW psu_sessions AS
SELECT psu, tpp,
    CASE WHEN learned THEN 'core' ELSE 'bank' END AS bound_by,
    to_timestamp(last_sca) AS last_sca,
    session,
    to_timestamp(completed) AS completed,
    to_timestamp(completed + 3600) AS expires
FROM psu;

CREATE VIEW psu_consents AS
SELECT context.psu, psu.tpp,
    CASE WHEN corporate = '' THEN 'PRIVATE' ELSE encode(corporate, 'hex') END AS context,
    to_timestamp(context.last_sca) AS last_sca,
    to_timestamp(consent) AS consent,
    CASE WHEN consent IS NULL THEN NULL WHEN accounts IS NULL THEN 'all' ELSE (length(accounts) / 16)::text END AS accounts
FROM context JOIN psu USING (psu);

CREATE VIEW tokens_spent AS SELECT key AS token, to_timestamp(until) AS remembered_until FROM token;

CREATE VIEW requests_claimed AS SELECT key AS request, to_timestamp(until) AS claimed_until FROM request;
