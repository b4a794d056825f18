-- CTL-3: the stream of events for the bank's services. A customer is an HMAC under a key that the bank holds. A transaction with events
-- takes the one row of `outbox` until its commit, so that numbers become visible in their order. `last` is the number of the last event,
-- `pruned` that of the last one that was removed; `stream` is the identity of the stream, which a copy keeps.
CREATE TABLE event (
    sequence bigint PRIMARY KEY,
    at bigint NOT NULL,
    kind text NOT NULL,
    tpp text NOT NULL,
    customer bytea,
    corporate boolean NOT NULL,
    accounts bigint,
    until bigint,
    detail text
);

CREATE TABLE outbox (
    stream bigint NOT NULL,
    last bigint NOT NULL,
    pruned bigint NOT NULL
) WITH (fillfactor = 20);

INSERT INTO outbox VALUES (('x' || left(replace(gen_random_uuid()::text, '-', ''), 12))::bit(48)::bigint, 0, 0);

CREATE VIEW events AS
SELECT sequence, to_timestamp(at) AS at, kind, tpp, encode(customer, 'hex') AS customer, corporate, accounts, to_timestamp(until) AS until,
    detail
FROM event;

-- The customer as events name it, and the last SCA by whose age the end of consents was noted. Consents that ended before this schema have
-- no event.
ALTER TABLE psu ADD COLUMN pseudonym bytea;
ALTER TABLE psu ADD COLUMN ended bigint;

UPDATE psu SET ended = last_sca FROM clock WHERE last_sca < clock.latest - 15552000;

CREATE INDEX psu_ending ON psu (last_sca) WHERE ended IS DISTINCT FROM last_sca;
