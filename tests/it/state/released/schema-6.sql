CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE tpp (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE psu (
    psu BLOB PRIMARY KEY,
    tpp INTEGER NOT NULL,
    last_sca INTEGER NOT NULL,
    session BLOB,
    completed INTEGER
, learned INTEGER NOT NULL DEFAULT 0, customer BLOB, pseudonym BLOB, ended INTEGER) STRICT, WITHOUT ROWID;
CREATE TABLE context (
    psu BLOB NOT NULL,
    corporate BLOB NOT NULL,
    last_sca INTEGER NOT NULL,
    consent INTEGER,
    accounts BLOB, origin INTEGER NOT NULL DEFAULT 0, used INTEGER,
    PRIMARY KEY (psu, corporate)
) STRICT, WITHOUT ROWID;
CREATE TABLE quota (
    key BLOB PRIMARY KEY,
    a INTEGER,
    b INTEGER,
    c INTEGER,
    d INTEGER
) STRICT, WITHOUT ROWID;
CREATE TABLE page (
    key BLOB PRIMARY KEY,
    call INTEGER NOT NULL,
    last INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE request (
    key BLOB PRIMARY KEY,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE token (
    key BLOB PRIMARY KEY,
    said BLOB NOT NULL,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE change (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    kind INTEGER NOT NULL,
    key BLOB NOT NULL
) STRICT;
CREATE VIEW quota_used AS
SELECT lower(hex(key)) AS key,
    (coalesce(a, 0) > unixepoch() - 86400) + (coalesce(b, 0) > unixepoch() - 86400)
        + (coalesce(c, 0) > unixepoch() - 86400) + (coalesce(d, 0) > unixepoch() - 86400) AS used,
    strftime('%Y-%m-%dT%H:%M:%SZ', a, 'unixepoch') AS call_a,
    strftime('%Y-%m-%dT%H:%M:%SZ', b, 'unixepoch') AS call_b,
    strftime('%Y-%m-%dT%H:%M:%SZ', c, 'unixepoch') AS call_c,
    strftime('%Y-%m-%dT%H:%M:%SZ', d, 'unixepoch') AS call_d
FROM quota;
CREATE VIEW tokens_spent AS
SELECT lower(hex(key)) AS token, strftime('%Y-%m-%dT%H:%M:%SZ', until, 'unixepoch') AS remembered_until FROM token;
CREATE VIEW requests_claimed AS
SELECT lower(hex(key)) AS request, strftime('%Y-%m-%dT%H:%M:%SZ', until, 'unixepoch') AS claimed_until FROM request;
CREATE VIEW psu_sessions AS
SELECT lower(hex(psu.psu)) AS psu,
    tpp.name AS tpp,
    iif(psu.learned, 'core', 'bank') AS bound_by,
    strftime('%Y-%m-%dT%H:%M:%SZ', nullif(psu.last_sca, 0), 'unixepoch') AS last_sca,
    lower(hex(psu.session)) AS session,
    strftime('%Y-%m-%dT%H:%M:%SZ', psu.completed, 'unixepoch') AS completed,
    strftime('%Y-%m-%dT%H:%M:%SZ', psu.completed + 3600, 'unixepoch') AS expires
FROM psu JOIN tpp ON tpp.id = psu.tpp;
CREATE TABLE block (
    key BLOB PRIMARY KEY,
    tpp TEXT NOT NULL,
    scope TEXT NOT NULL,
    psu BLOB,
    reason TEXT NOT NULL,
    since INTEGER NOT NULL,
    until INTEGER
) STRICT, WITHOUT ROWID;
CREATE VIEW tpp_blocks AS
SELECT tpp, scope, lower(hex(psu)) AS psu, reason,
    strftime('%Y-%m-%dT%H:%M:%SZ', since, 'unixepoch') AS since,
    strftime('%Y-%m-%dT%H:%M:%SZ', until, 'unixepoch') AS until
FROM block;
CREATE VIEW psu_consents AS
SELECT lower(hex(context.psu)) AS psu,
    tpp.name AS tpp,
    iif(context.corporate = x'', 'PRIVATE', lower(hex(context.corporate))) AS context,
    CASE context.origin WHEN 1 THEN 'bank' WHEN 2 THEN 'import' WHEN 3 THEN 'core' ELSE 'unknown' END AS origin,
    strftime('%Y-%m-%dT%H:%M:%SZ', nullif(context.last_sca, 0), 'unixepoch') AS last_sca,
    strftime('%Y-%m-%dT%H:%M:%SZ', context.consent, 'unixepoch') AS consent,
    iif(context.consent IS NULL, NULL, coalesce(length(context.accounts) / 16, 'all')) AS accounts
FROM context JOIN psu ON psu.psu = context.psu JOIN tpp ON tpp.id = psu.tpp;
CREATE INDEX psu_customer ON psu (customer) WHERE customer IS NOT NULL;
CREATE TABLE moved (
    key BLOB PRIMARY KEY,
    tpp TEXT NOT NULL,
    now TEXT NOT NULL,
    since INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE VIEW tpp_moves AS
SELECT tpp, now, strftime('%Y-%m-%dT%H:%M:%SZ', since, 'unixepoch') AS since FROM moved;
CREATE TABLE event (
    sequence INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    tpp TEXT NOT NULL,
    customer BLOB,
    corporate INTEGER NOT NULL,
    accounts INTEGER,
    until INTEGER,
    detail TEXT
) STRICT;
CREATE TABLE outbox (
    stream INTEGER NOT NULL,
    last INTEGER NOT NULL,
    pruned INTEGER NOT NULL
) STRICT;
CREATE VIEW events AS
SELECT sequence, strftime('%Y-%m-%dT%H:%M:%SZ', at, 'unixepoch') AS at, kind, tpp, lower(hex(customer)) AS customer, corporate, accounts,
    strftime('%Y-%m-%dT%H:%M:%SZ', until, 'unixepoch') AS until, detail
FROM event;
CREATE INDEX psu_ending ON psu (last_sca) WHERE ended IS NOT last_sca;
INSERT INTO meta VALUES ('clock_latest', '1767225600');
INSERT INTO meta VALUES ('key_check', '8189c1478a58fc9984803e3ce10e40b7');
INSERT INTO meta VALUES ('written_at', '1767225600');
INSERT INTO tpp VALUES (1, 'PSDNO-FSA-123456');
INSERT INTO psu VALUES (X'9FDAC9276520AC972EC4F12BD756E4B9', 1, 1767225600, X'4E5D1780A2E10C983182DB2EE9D8A080', 1767225600, 0, NULL, NULL, NULL);
INSERT INTO context VALUES (X'9FDAC9276520AC972EC4F12BD756E4B9', X'', 1767225600, 1767225600, NULL, 1, NULL);
INSERT INTO quota VALUES (X'9E3779B97F4A7C15F39CC0605CEDC835', 1767225600, 1767225600, 1767225600, 1767225600);
INSERT INTO request VALUES (X'3C6EF372FE94F82BE73980C0B9DB906A', 1767312000);
INSERT INTO token VALUES (X'9E3779B97F4A7C15F39CC0605CEDC835', X'9E3779B97F4A7C15F39CC0605CEDC835', 1767226500);
INSERT INTO change VALUES (1, 0, X'9FDAC9276520AC972EC4F12BD756E4B9');
INSERT INTO change VALUES (2, 3, X'00000000000000000000000000000000');
INSERT INTO event VALUES (1, 1767225600, 'consent-given', 'PSDNO-FSA-123456', NULL, 0, NULL, NULL, NULL);
INSERT INTO outbox VALUES (7138153560287440556, 1, 0);
PRAGMA application_id = 1349938036;
PRAGMA user_version = 6;
