-- SCA-17, SCA-22: whose word a context rests on: 1 is the bank's by a call, 2 an import, 3 the core's while PSUs were learned. 0 is
-- unknown: a version before this schema wrote the row, and such versions kept whatever agreement a TPP named while they learned.
ALTER TABLE context ADD COLUMN origin INTEGER NOT NULL DEFAULT 0;

DROP VIEW IF EXISTS psu_consents;

CREATE VIEW psu_consents AS
SELECT lower(hex(context.psu)) AS psu,
    tpp.name AS tpp,
    iif(context.corporate = x'', 'PRIVATE', lower(hex(context.corporate))) AS context,
    CASE context.origin WHEN 1 THEN 'bank' WHEN 2 THEN 'import' WHEN 3 THEN 'core' ELSE 'unknown' END AS origin,
    strftime('%Y-%m-%dT%H:%M:%SZ', nullif(context.last_sca, 0), 'unixepoch') AS last_sca,
    strftime('%Y-%m-%dT%H:%M:%SZ', context.consent, 'unixepoch') AS consent,
    iif(context.consent IS NULL, NULL, coalesce(length(context.accounts) / 16, 'all')) AS accounts
FROM context JOIN psu ON psu.psu = context.psu JOIN tpp ON tpp.id = psu.tpp;
