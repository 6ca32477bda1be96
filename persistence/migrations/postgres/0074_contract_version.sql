-- Versions of a contract (D-INT-14): rows of one code, each with its own details. At most one of them is
-- active. name_tr and name_ar are '' where name is used. A draft was never published.

ALTER TABLE contract DROP CONSTRAINT contract_code_key;
ALTER TABLE contract ADD COLUMN name_tr TEXT NOT NULL DEFAULT '';
ALTER TABLE contract ADD COLUMN name_ar TEXT NOT NULL DEFAULT '';
ALTER TABLE contract ADD COLUMN published_at BIGINT;
UPDATE contract SET published_at = created_at WHERE active;
CREATE UNIQUE INDEX contract_version ON contract (code, COALESCE(version, ''));
CREATE UNIQUE INDEX contract_active ON contract (code) WHERE active;
