-- What came in and what goes out (section 4.14 of the interface). A row names the
-- transfer that moved its amount; statuses live here and never in the ledger.

CREATE TABLE coin_address (
  account_id TEXT NOT NULL PRIMARY KEY REFERENCES account (id),
  address    TEXT NOT NULL UNIQUE,
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE deposit (
  id           TEXT NOT NULL PRIMARY KEY,
  user_id      TEXT NOT NULL,
  asset_id     INTEGER NOT NULL,
  hi           INTEGER NOT NULL CHECK (hi BETWEEN 0 AND 999999999999999999),
  lo           INTEGER NOT NULL CHECK (lo BETWEEN 0 AND 999999999999999999),
  status       INTEGER NOT NULL,
  tx_id        TEXT NOT NULL,
  to_address   TEXT NOT NULL,
  sender_info  TEXT NOT NULL,
  transfer_id  TEXT UNIQUE REFERENCES transfer (id) DEFERRABLE INITIALLY DEFERRED,
  at           INTEGER NOT NULL,
  version      INTEGER NOT NULL CHECK (version > 0),
  CHECK (hi > 0 OR lo > 0),
  CHECK (status <> 1 OR transfer_id IS NOT NULL)
) STRICT;
CREATE INDEX deposit_user ON deposit (user_id, status, id);
CREATE INDEX deposit_status ON deposit (status, id);

CREATE TABLE withdrawal (
  id           TEXT NOT NULL PRIMARY KEY,
  user_id      TEXT NOT NULL,
  asset_id     INTEGER NOT NULL,
  hi           INTEGER NOT NULL CHECK (hi BETWEEN 0 AND 999999999999999999),
  lo           INTEGER NOT NULL CHECK (lo BETWEEN 0 AND 999999999999999999),
  fee_hi       INTEGER NOT NULL CHECK (fee_hi BETWEEN 0 AND 999999999999999999),
  fee_lo       INTEGER NOT NULL CHECK (fee_lo BETWEEN 0 AND 999999999999999999),
  status       INTEGER NOT NULL,
  to_address   TEXT NOT NULL,
  transfer_id  TEXT UNIQUE REFERENCES transfer (id) DEFERRABLE INITIALLY DEFERRED,
  hold_id      TEXT UNIQUE REFERENCES hold (id) DEFERRABLE INITIALLY DEFERRED,
  at           INTEGER NOT NULL,
  version      INTEGER NOT NULL CHECK (version > 0),
  CHECK (hi > 0 OR lo > 0),
  CHECK (transfer_id IS NOT NULL OR hold_id IS NOT NULL)
) STRICT;
CREATE INDEX withdrawal_user ON withdrawal (user_id, id);
