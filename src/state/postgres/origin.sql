-- SCA-17, SCA-22: whose word a context rests on: 1 is the bank's by a call, 2 an import, 3 the core's while PSUs were learned. 0 is
-- unknown: a version before this schema wrote the row, and such versions kept whatever agreement a TPP named while they learned.
ALTER TABLE context ADD COLUMN origin bigint NOT NULL DEFAULT 0;

DROP VIEW IF EXISTS psu_consents;

CREATE VIEW psu_consents AS
SELECT context.psu, psu.tpp,
    CASE WHEN corporate = '' THEN 'PRIVATE' ELSE encode(corporate, 'hex') END AS context,
    CASE origin WHEN 1 THEN 'bank' WHEN 2 THEN 'import' WHEN 3 THEN 'core' ELSE 'unknown' END AS origin,
    to_timestamp(context.last_sca) AS last_sca,
    to_timestamp(consent) AS consent,
    CASE WHEN consent IS NULL THEN NULL WHEN accounts IS NULL THEN 'all' ELSE (length(accounts) / 16)::text END AS accounts
FROM context JOIN psu USING (psu);
