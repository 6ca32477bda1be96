-- What administrators find accounts by (section 4.12 of the interface). An index
-- for each filter has the order of the list; only a part of a name is looked for in
-- one row after the other. identity_hash is the keyed hash of the identity number,
-- full_name the folded name, birth_date YYYY-MM-DD; each is '' where it is not
-- known. last_login_day is the day of the last login, in days since 1970 (UTC); 0:
-- none.

ALTER TABLE users ADD COLUMN identity_hash TEXT NOT NULL DEFAULT '';
ALTER TABLE users ADD COLUMN tax_number TEXT NOT NULL DEFAULT '';
ALTER TABLE users ADD COLUMN birth_date TEXT NOT NULL DEFAULT '';
ALTER TABLE users ADD COLUMN full_name TEXT NOT NULL DEFAULT '';
ALTER TABLE users ADD COLUMN last_login_day BIGINT NOT NULL DEFAULT 0;
ALTER TABLE users ADD COLUMN kyc_approved BOOLEAN
  GENERATED ALWAYS AS (kyc_confirm IN ('manuelApproved', 'ocrOrNfcApproved')) STORED;
UPDATE users SET full_name = lower(name || ' ' || surname);

CREATE INDEX users_identity ON users (identity_hash, id) WHERE identity_hash <> '';
CREATE INDEX users_tax_number ON users (tax_number, id) WHERE tax_number <> '';
CREATE INDEX users_birth_date ON users (birth_date, id) WHERE birth_date <> '';
CREATE INDEX users_status ON users (status, id);
CREATE INDEX users_type ON users (type, id);
CREATE INDEX users_kyc_approved ON users (kyc_approved, id);
CREATE INDEX users_created ON users (created_at, id);
CREATE INDEX users_last_login ON users (last_login_day, id) WHERE last_login_day > 0;
