-- CTL-3: the stream of events for the bank's services. A customer is an HMAC under a key that the bank holds. `last` is the number of the
-- last event, `pruned` that of the last one that was removed; `stream` is the identity of the stream, which a copy keeps.
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

INSERT INTO outbox VALUES (random() & 9223372036854775807, 0, 0);

CREATE VIEW events AS
SELECT sequence, strftime('%Y-%m-%dT%H:%M:%SZ', at, 'unixepoch') AS at, kind, tpp, lower(hex(customer)) AS customer, corporate, accounts,
    strftime('%Y-%m-%dT%H:%M:%SZ', until, 'unixepoch') AS until, detail
FROM event;

-- The customer as events name it, and the last SCA by whose age the end of consents was noted. Consents that ended before this schema have
-- no event.
ALTER TABLE psu ADD COLUMN pseudonym BLOB;
ALTER TABLE psu ADD COLUMN ended INTEGER;

UPDATE psu SET ended = last_sca
WHERE last_sca > 0 AND last_sca < (SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'clock_latest') - 15552000;

CREATE INDEX psu_ending ON psu (last_sca) WHERE ended IS NOT last_sca;
