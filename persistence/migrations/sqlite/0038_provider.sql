-- What the house has at other platforms (section 4.9 of the interface). A snapshot is one reading of an account, of the
-- beginning of its slot of five minutes; what is empty has no row. Old snapshots are removed with their balances.

CREATE TABLE provider_account (
  provider TEXT NOT NULL,
  account  TEXT NOT NULL,
  PRIMARY KEY (provider, account)
) STRICT;

CREATE TABLE provider_snapshot (
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  provider TEXT NOT NULL,
  account  TEXT NOT NULL,
  at       INTEGER NOT NULL,
  UNIQUE (provider, account, at),
  FOREIGN KEY (provider, account) REFERENCES provider_account (provider, account)
) STRICT;
CREATE INDEX provider_snapshot_provider ON provider_snapshot (provider, at, account);
CREATE INDEX provider_snapshot_at ON provider_snapshot (at);

CREATE TABLE provider_balance (
  snapshot_id INTEGER NOT NULL REFERENCES provider_snapshot (id) ON DELETE CASCADE,
  asset       TEXT NOT NULL,
  free_hi     INTEGER NOT NULL CHECK (free_hi BETWEEN 0 AND 999999999999999999),
  free_lo     INTEGER NOT NULL CHECK (free_lo BETWEEN 0 AND 999999999999999999),
  locked_hi   INTEGER NOT NULL CHECK (locked_hi BETWEEN 0 AND 999999999999999999),
  locked_lo   INTEGER NOT NULL CHECK (locked_lo BETWEEN 0 AND 999999999999999999),
  PRIMARY KEY (snapshot_id, asset)
) STRICT;
