-- The ledger (docs/ledger.md). An amount is hi whole units and lo parts of
-- 10^-18; a negative one has a negative hi and still lo >= 0. One transfer is one
-- movement with two sides, so it cannot be out of balance. A balance is the sum
-- of what its account was credited with, less what it was debited with.
--
-- The tables are STRICT, so that an overflow is an error and never a float.
-- REPLACE would delete a row without its trigger; the triggers "…_once" stop it.

-- An asset is a currency of a network (currency_of_network.id), without a foreign
-- key: that table is another slice's. One row for each precision that the asset
-- ever had; unit = 10^(18 - decimals).
CREATE TABLE asset (
  id   INTEGER NOT NULL,
  unit INTEGER NOT NULL CHECK (unit IN (1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000,
    10000000000, 100000000000, 1000000000000, 10000000000000, 100000000000000, 1000000000000000, 10000000000000000,
    100000000000000000, 1000000000000000000)),
  PRIMARY KEY (id, unit)
) STRICT;

CREATE TABLE account (
  id       TEXT NOT NULL PRIMARY KEY,
  kind     TEXT NOT NULL CHECK (kind IN ('user', 'treasury', 'fee', 'deposit', 'adjustment', 'suspense')),
  owner    TEXT NOT NULL,
  asset_id INTEGER NOT NULL,
  bounded  INTEGER NOT NULL CHECK (bounded IN (0, 1)),
  UNIQUE (kind, owner, asset_id),
  UNIQUE (id, asset_id),
  UNIQUE (id, bounded)
) STRICT;
CREATE INDEX account_asset ON account (asset_id, id);

CREATE TABLE balance (
  account_id TEXT NOT NULL PRIMARY KEY,
  bounded    INTEGER NOT NULL,
  posted_hi  INTEGER NOT NULL DEFAULT 0 CHECK (posted_hi BETWEEN -999999999999999999 AND 999999999999999999),
  posted_lo  INTEGER NOT NULL DEFAULT 0 CHECK (posted_lo BETWEEN 0 AND 999999999999999999),
  locked_hi  INTEGER NOT NULL DEFAULT 0 CHECK (locked_hi BETWEEN 0 AND 999999999999999999),
  locked_lo  INTEGER NOT NULL DEFAULT 0 CHECK (locked_lo BETWEEN 0 AND 999999999999999999),
  seq        INTEGER NOT NULL DEFAULT 0 CHECK (seq >= 0),
  version    INTEGER NOT NULL DEFAULT 1 CHECK (version > 0),
  CHECK (NOT bounded OR posted_hi >= 0),
  CHECK (bounded OR (locked_hi = 0 AND locked_lo = 0)),
  FOREIGN KEY (account_id, bounded) REFERENCES account (id, bounded)
) STRICT;

-- An id begins with its instant. The numbers of a bounded account are 1, 2, 3 …
-- over both of its sides; those of an unbounded one are NULL.
CREATE TABLE transfer (
  id           TEXT NOT NULL PRIMARY KEY,
  group_id     TEXT NOT NULL,
  kind         TEXT NOT NULL CHECK (kind <> ''),
  ref          TEXT NOT NULL CHECK (ref <> ''),
  digest       BLOB NOT NULL CHECK (length(digest) = 32),
  asset_id     INTEGER NOT NULL,
  unit         INTEGER NOT NULL,
  debit_id     TEXT NOT NULL,
  credit_id    TEXT NOT NULL,
  hi           INTEGER NOT NULL CHECK (hi BETWEEN 0 AND 999999999999999999),
  lo           INTEGER NOT NULL CHECK (lo BETWEEN 0 AND 999999999999999999),
  reverses     TEXT,
  reason       TEXT NOT NULL,
  actor_id     TEXT NOT NULL,
  at           INTEGER NOT NULL,
  effective_at INTEGER NOT NULL,
  debit_seq    INTEGER CHECK (debit_seq > 0),
  credit_seq   INTEGER CHECK (credit_seq > 0),
  CHECK (debit_id <> credit_id),
  CHECK (hi > 0 OR lo > 0),
  CHECK (lo % unit = 0),
  UNIQUE (kind, ref),
  UNIQUE (id, debit_id, credit_id, asset_id, hi, lo),
  FOREIGN KEY (asset_id, unit) REFERENCES asset (id, unit),
  FOREIGN KEY (debit_id, asset_id) REFERENCES account (id, asset_id),
  FOREIGN KEY (credit_id, asset_id) REFERENCES account (id, asset_id),
  FOREIGN KEY (reverses, credit_id, debit_id, asset_id, hi, lo)
    REFERENCES transfer (id, debit_id, credit_id, asset_id, hi, lo)
) STRICT;
CREATE UNIQUE INDEX transfer_reverses ON transfer (reverses) WHERE reverses IS NOT NULL;
CREATE UNIQUE INDEX transfer_debit_seq ON transfer (debit_id, debit_seq) WHERE debit_seq IS NOT NULL;
CREATE UNIQUE INDEX transfer_credit_seq ON transfer (credit_id, credit_seq) WHERE credit_seq IS NOT NULL;
-- Statements and verification read an account's side in this order, from the index alone.
CREATE INDEX transfer_debit ON transfer (debit_id, id, debit_seq, hi, lo);
CREATE INDEX transfer_credit ON transfer (credit_id, id, credit_seq, hi, lo);

-- A settled hold names the transfer that took the amount; both are of one transaction.
CREATE TABLE hold (
  id          TEXT NOT NULL PRIMARY KEY,
  account_id  TEXT NOT NULL REFERENCES account (id),
  source      TEXT NOT NULL CHECK (source <> ''),
  source_ref  TEXT NOT NULL CHECK (source_ref <> ''),
  type        TEXT NOT NULL,
  hi          INTEGER NOT NULL CHECK (hi BETWEEN 0 AND 999999999999999999),
  lo          INTEGER NOT NULL CHECK (lo BETWEEN 0 AND 999999999999999999),
  state       TEXT NOT NULL CHECK (state IN ('active', 'released', 'settled')),
  transfer_id TEXT REFERENCES transfer (id) DEFERRABLE INITIALLY DEFERRED,
  version     INTEGER NOT NULL CHECK (version > 0),
  CHECK (hi > 0 OR lo > 0),
  CHECK ((state = 'settled') = (transfer_id IS NOT NULL)),
  UNIQUE (source, source_ref)
) STRICT;
CREATE INDEX hold_active ON hold (account_id, id, hi, lo) WHERE state = 'active';
CREATE INDEX hold_account ON hold (account_id, id);

-- A closed day of an account, in UTC: day = floor(instant / 24 h), posted and seq
-- at its end, in and out within it.
CREATE TABLE day (
  account_id TEXT NOT NULL REFERENCES account (id),
  day        INTEGER NOT NULL,
  posted_hi  INTEGER NOT NULL CHECK (posted_hi BETWEEN -999999999999999999 AND 999999999999999999),
  posted_lo  INTEGER NOT NULL CHECK (posted_lo BETWEEN 0 AND 999999999999999999),
  in_hi      INTEGER NOT NULL CHECK (in_hi BETWEEN 0 AND 999999999999999999),
  in_lo      INTEGER NOT NULL CHECK (in_lo BETWEEN 0 AND 999999999999999999),
  out_hi     INTEGER NOT NULL CHECK (out_hi BETWEEN 0 AND 999999999999999999),
  out_lo     INTEGER NOT NULL CHECK (out_lo BETWEEN 0 AND 999999999999999999),
  seq        INTEGER NOT NULL CHECK (seq > 0),
  PRIMARY KEY (account_id, day)
) STRICT;

CREATE TRIGGER asset_fixed BEFORE UPDATE ON asset BEGIN SELECT RAISE(ABORT, 'ledger: assets are append only'); END;
CREATE TRIGGER asset_kept BEFORE DELETE ON asset BEGIN SELECT RAISE(ABORT, 'ledger: assets are append only'); END;
CREATE TRIGGER asset_finer BEFORE INSERT ON asset
WHEN EXISTS (SELECT 1 FROM asset WHERE id = NEW.id AND unit <= NEW.unit)
BEGIN SELECT RAISE(ABORT, 'ledger: the decimals of an asset grow and never shrink'); END;

CREATE TRIGGER account_fixed BEFORE UPDATE ON account BEGIN SELECT RAISE(ABORT, 'ledger: accounts never change'); END;
CREATE TRIGGER account_kept BEFORE DELETE ON account BEGIN SELECT RAISE(ABORT, 'ledger: accounts never end'); END;
CREATE TRIGGER account_of_asset BEFORE INSERT ON account
WHEN NOT EXISTS (SELECT 1 FROM asset WHERE id = NEW.asset_id)
BEGIN SELECT RAISE(ABORT, 'ledger: no such asset'); END;
CREATE TRIGGER account_once BEFORE INSERT ON account
WHEN EXISTS (SELECT 1 FROM account WHERE id = NEW.id)
  OR EXISTS (SELECT 1 FROM account WHERE kind = NEW.kind AND owner = NEW.owner AND asset_id = NEW.asset_id)
BEGIN SELECT RAISE(ABORT, 'ledger: exists already'); END;
-- Every account has its balance from the start.
CREATE TRIGGER account_balance AFTER INSERT ON account
BEGIN INSERT INTO balance (account_id, bounded) VALUES (NEW.id, NEW.bounded); END;

CREATE TRIGGER balance_kept BEFORE DELETE ON balance BEGIN SELECT RAISE(ABORT, 'ledger: balances never end'); END;
CREATE TRIGGER balance_zero BEFORE INSERT ON balance
WHEN EXISTS (SELECT 1 FROM balance WHERE account_id = NEW.account_id) OR NEW.posted_hi <> 0 OR NEW.posted_lo <> 0
  OR NEW.locked_hi <> 0 OR NEW.locked_lo <> 0 OR NEW.seq <> 0
BEGIN SELECT RAISE(ABORT, 'ledger: a balance begins at zero, with its account'); END;
CREATE TRIGGER balance_moves BEFORE UPDATE ON balance
WHEN NEW.account_id <> OLD.account_id OR NEW.version <= OLD.version OR NEW.seq < OLD.seq
  OR (NEW.seq = OLD.seq AND (NEW.posted_hi <> OLD.posted_hi OR NEW.posted_lo <> OLD.posted_lo))
BEGIN SELECT RAISE(ABORT, 'ledger: a balance moves with a transfer'); END;
-- What is locked cannot be taken: posted may fall below locked only as far as
-- locked falls with it. A lock itself may exceed what is there.
CREATE TRIGGER balance_locked BEFORE UPDATE ON balance
WHEN NEW.bounded AND (NEW.posted_hi, NEW.posted_lo) < (OLD.posted_hi, OLD.posted_lo)
  AND (NEW.posted_hi, NEW.posted_lo) < (NEW.locked_hi, NEW.locked_lo)
  AND (OLD.locked_hi + NEW.posted_hi + (OLD.locked_lo + NEW.posted_lo) / 1000000000000000000,
       (OLD.locked_lo + NEW.posted_lo) % 1000000000000000000)
    < (OLD.posted_hi + NEW.locked_hi + (OLD.posted_lo + NEW.locked_lo) / 1000000000000000000,
       (OLD.posted_lo + NEW.locked_lo) % 1000000000000000000)
BEGIN SELECT RAISE(ABORT, 'ledger: what is locked cannot be taken'); END;

CREATE TRIGGER transfer_fixed BEFORE UPDATE ON transfer
BEGIN SELECT RAISE(ABORT, 'ledger: transfers are append only'); END;
CREATE TRIGGER transfer_kept BEFORE DELETE ON transfer
BEGIN SELECT RAISE(ABORT, 'ledger: transfers are append only'); END;
CREATE TRIGGER transfer_once BEFORE INSERT ON transfer
WHEN EXISTS (SELECT 1 FROM transfer WHERE id = NEW.id)
  OR EXISTS (SELECT 1 FROM transfer WHERE kind = NEW.kind AND ref = NEW.ref)
  OR EXISTS (SELECT 1 FROM transfer WHERE reverses = NEW.reverses)
  OR EXISTS (SELECT 1 FROM transfer WHERE debit_id = NEW.debit_id AND debit_seq = NEW.debit_seq)
  OR EXISTS (SELECT 1 FROM transfer WHERE credit_id = NEW.credit_id AND credit_seq = NEW.credit_seq)
BEGIN SELECT RAISE(ABORT, 'ledger: exists already'); END;

CREATE TRIGGER hold_kept BEFORE DELETE ON hold BEGIN SELECT RAISE(ABORT, 'ledger: holds are never removed'); END;
CREATE TRIGGER hold_begins BEFORE INSERT ON hold WHEN NEW.state <> 'active'
BEGIN SELECT RAISE(ABORT, 'ledger: a hold begins active'); END;
CREATE TRIGGER hold_once BEFORE INSERT ON hold
WHEN EXISTS (SELECT 1 FROM hold WHERE id = NEW.id)
  OR EXISTS (SELECT 1 FROM hold WHERE source = NEW.source AND source_ref = NEW.source_ref)
BEGIN SELECT RAISE(ABORT, 'ledger: exists already'); END;
CREATE TRIGGER hold_ends_once BEFORE UPDATE ON hold
WHEN OLD.state <> 'active' OR NEW.state = 'active' OR NEW.id <> OLD.id OR NEW.account_id <> OLD.account_id
  OR NEW.source <> OLD.source OR NEW.source_ref <> OLD.source_ref OR NEW.type <> OLD.type OR NEW.hi <> OLD.hi
  OR NEW.lo <> OLD.lo OR NEW.version <> OLD.version + 1
BEGIN SELECT RAISE(ABORT, 'ledger: a hold is released or settled, once'); END;

CREATE TRIGGER day_fixed BEFORE UPDATE ON day BEGIN SELECT RAISE(ABORT, 'ledger: a closed day never changes'); END;
CREATE TRIGGER day_kept BEFORE DELETE ON day BEGIN SELECT RAISE(ABORT, 'ledger: a closed day never changes'); END;
CREATE TRIGGER day_once BEFORE INSERT ON day
WHEN EXISTS (SELECT 1 FROM day WHERE account_id = NEW.account_id AND day >= NEW.day)
BEGIN SELECT RAISE(ABORT, 'ledger: days close in their order'); END;
