-- What came in and what goes out (section 4.14 of the interface). A row names the
-- transfer that moved its amount; statuses live here and never in the ledger.

CREATE TABLE coin_address (
  account_id TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES account (id),
  address    TEXT NOT NULL UNIQUE,
  created_at BIGINT NOT NULL
);

CREATE TABLE deposit (
  id           TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  user_id      TEXT NOT NULL,
  asset_id     BIGINT NOT NULL,
  hi           BIGINT NOT NULL CHECK (hi BETWEEN 0 AND 999999999999999999),
  lo           BIGINT NOT NULL CHECK (lo BETWEEN 0 AND 999999999999999999),
  status       BIGINT NOT NULL,
  tx_id        TEXT NOT NULL,
  to_address   TEXT NOT NULL,
  sender_info  TEXT NOT NULL,
  transfer_id  TEXT COLLATE "C" UNIQUE REFERENCES transfer (id) DEFERRABLE INITIALLY DEFERRED,
  at           BIGINT NOT NULL,
  version      BIGINT NOT NULL CHECK (version > 0),
  CHECK (hi > 0 OR lo > 0),
  CHECK (status <> 1 OR transfer_id IS NOT NULL)
);
CREATE INDEX deposit_user ON deposit (user_id, status, id);
CREATE INDEX deposit_status ON deposit (status, id);

CREATE TABLE withdrawal (
  id           TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  user_id      TEXT NOT NULL,
  asset_id     BIGINT NOT NULL,
  hi           BIGINT NOT NULL CHECK (hi BETWEEN 0 AND 999999999999999999),
  lo           BIGINT NOT NULL CHECK (lo BETWEEN 0 AND 999999999999999999),
  fee_hi       BIGINT NOT NULL CHECK (fee_hi BETWEEN 0 AND 999999999999999999),
  fee_lo       BIGINT NOT NULL CHECK (fee_lo BETWEEN 0 AND 999999999999999999),
  status       BIGINT NOT NULL,
  to_address   TEXT NOT NULL,
  transfer_id  TEXT COLLATE "C" UNIQUE REFERENCES transfer (id) DEFERRABLE INITIALLY DEFERRED,
  hold_id      TEXT COLLATE "C" UNIQUE REFERENCES hold (id) DEFERRABLE INITIALLY DEFERRED,
  at           BIGINT NOT NULL,
  version      BIGINT NOT NULL CHECK (version > 0),
  CHECK (hi > 0 OR lo > 0),
  CHECK (transfer_id IS NOT NULL OR hold_id IS NOT NULL)
);
CREATE INDEX withdrawal_user ON withdrawal (user_id, id);
