-- What the house has at other platforms (section 4.9 of the interface). A snapshot is one reading of an account, of the
-- beginning of its slot of five minutes; what is empty has no row. Old snapshots are removed with their balances.

CREATE TABLE provider_account (
  provider TEXT COLLATE "C" NOT NULL,
  account  TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (provider, account)
);

CREATE TABLE provider_snapshot (
  id       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  provider TEXT COLLATE "C" NOT NULL,
  account  TEXT COLLATE "C" NOT NULL,
  at       BIGINT NOT NULL,
  UNIQUE (provider, account, at),
  FOREIGN KEY (provider, account) REFERENCES provider_account (provider, account)
);
CREATE INDEX provider_snapshot_provider ON provider_snapshot (provider, at, account);
CREATE INDEX provider_snapshot_at ON provider_snapshot (at);

CREATE TABLE provider_balance (
  snapshot_id BIGINT NOT NULL REFERENCES provider_snapshot (id) ON DELETE CASCADE,
  asset       TEXT COLLATE "C" NOT NULL,
  free_hi     BIGINT NOT NULL CHECK (free_hi BETWEEN 0 AND 999999999999999999),
  free_lo     BIGINT NOT NULL CHECK (free_lo BETWEEN 0 AND 999999999999999999),
  locked_hi   BIGINT NOT NULL CHECK (locked_hi BETWEEN 0 AND 999999999999999999),
  locked_lo   BIGINT NOT NULL CHECK (locked_lo BETWEEN 0 AND 999999999999999999),
  PRIMARY KEY (snapshot_id, asset)
);
