-- The ledger (docs/ledger.md). An amount is hi whole units and lo parts of
-- 10^-18; a negative one has a negative hi and still lo >= 0. One transfer is one
-- movement with two sides, so it cannot be out of balance. A balance is the sum
-- of what its account was credited with, less what it was debited with.
--
-- Ids are compared by their bytes (COLLATE "C"), as the verification does.

-- An asset is a currency of a network (currency_of_network.id), without a foreign
-- key: that table is another slice's. One row for each precision that the asset
-- ever had; unit = 10^(18 - decimals).
CREATE TABLE asset (
  id   BIGINT NOT NULL,
  unit BIGINT NOT NULL CHECK (unit IN (1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000,
    10000000000, 100000000000, 1000000000000, 10000000000000, 100000000000000, 1000000000000000, 10000000000000000,
    100000000000000000, 1000000000000000000)),
  PRIMARY KEY (id, unit)
);

CREATE TABLE account (
  id       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  kind     TEXT COLLATE "C" NOT NULL CHECK (kind IN ('user', 'treasury', 'fee', 'deposit', 'adjustment', 'suspense')),
  owner    TEXT COLLATE "C" NOT NULL,
  asset_id BIGINT NOT NULL,
  bounded  BOOLEAN NOT NULL,
  UNIQUE (kind, owner, asset_id),
  UNIQUE (id, asset_id),
  UNIQUE (id, bounded)
);
CREATE INDEX account_asset ON account (asset_id, id);

CREATE TABLE balance (
  account_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  bounded    BOOLEAN NOT NULL,
  posted_hi  BIGINT NOT NULL DEFAULT 0 CHECK (posted_hi BETWEEN -999999999999999999 AND 999999999999999999),
  posted_lo  BIGINT NOT NULL DEFAULT 0 CHECK (posted_lo BETWEEN 0 AND 999999999999999999),
  locked_hi  BIGINT NOT NULL DEFAULT 0 CHECK (locked_hi BETWEEN 0 AND 999999999999999999),
  locked_lo  BIGINT NOT NULL DEFAULT 0 CHECK (locked_lo BETWEEN 0 AND 999999999999999999),
  seq        BIGINT NOT NULL DEFAULT 0 CHECK (seq >= 0),
  version    BIGINT NOT NULL DEFAULT 1 CHECK (version > 0),
  CHECK (NOT bounded OR posted_hi >= 0),
  CHECK (bounded OR (locked_hi = 0 AND locked_lo = 0)),
  FOREIGN KEY (account_id, bounded) REFERENCES account (id, bounded)
);

-- An id begins with its instant. The numbers of a bounded account are 1, 2, 3 …
-- over both of its sides; those of an unbounded one are NULL.
CREATE TABLE transfer (
  id           TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  group_id     TEXT COLLATE "C" NOT NULL,
  kind         TEXT COLLATE "C" NOT NULL CHECK (kind <> ''),
  ref          TEXT COLLATE "C" NOT NULL CHECK (ref <> ''),
  digest       BYTEA NOT NULL CHECK (length(digest) = 32),
  asset_id     BIGINT NOT NULL,
  unit         BIGINT NOT NULL,
  debit_id     TEXT COLLATE "C" NOT NULL,
  credit_id    TEXT COLLATE "C" NOT NULL,
  hi           BIGINT NOT NULL CHECK (hi BETWEEN 0 AND 999999999999999999),
  lo           BIGINT NOT NULL CHECK (lo BETWEEN 0 AND 999999999999999999),
  reverses     TEXT COLLATE "C",
  reason       TEXT NOT NULL,
  actor_id     TEXT NOT NULL,
  at           BIGINT NOT NULL,
  effective_at BIGINT NOT NULL,
  debit_seq    BIGINT CHECK (debit_seq > 0),
  credit_seq   BIGINT CHECK (credit_seq > 0),
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
);
CREATE UNIQUE INDEX transfer_reverses ON transfer (reverses) WHERE reverses IS NOT NULL;
CREATE UNIQUE INDEX transfer_debit_seq ON transfer (debit_id, debit_seq) WHERE debit_seq IS NOT NULL;
CREATE UNIQUE INDEX transfer_credit_seq ON transfer (credit_id, credit_seq) WHERE credit_seq IS NOT NULL;
-- Statements and verification read an account's side in this order, from the index alone.
CREATE INDEX transfer_debit ON transfer (debit_id, id) INCLUDE (debit_seq, hi, lo);
CREATE INDEX transfer_credit ON transfer (credit_id, id) INCLUDE (credit_seq, hi, lo);

-- A settled hold names the transfer that took the amount; both are of one transaction.
CREATE TABLE hold (
  id          TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  account_id  TEXT COLLATE "C" NOT NULL REFERENCES account (id),
  source      TEXT COLLATE "C" NOT NULL CHECK (source <> ''),
  source_ref  TEXT COLLATE "C" NOT NULL CHECK (source_ref <> ''),
  type        TEXT NOT NULL,
  hi          BIGINT NOT NULL CHECK (hi BETWEEN 0 AND 999999999999999999),
  lo          BIGINT NOT NULL CHECK (lo BETWEEN 0 AND 999999999999999999),
  state       TEXT NOT NULL CHECK (state IN ('active', 'released', 'settled')),
  transfer_id TEXT COLLATE "C" REFERENCES transfer (id) DEFERRABLE INITIALLY DEFERRED,
  version     BIGINT NOT NULL CHECK (version > 0),
  CHECK (hi > 0 OR lo > 0),
  CHECK ((state = 'settled') = (transfer_id IS NOT NULL)),
  UNIQUE (source, source_ref)
);
CREATE INDEX hold_active ON hold (account_id, id, hi, lo) WHERE state = 'active';
CREATE INDEX hold_account ON hold (account_id, id);

-- A closed day of an account, in UTC: day = floor(instant / 24 h), posted and seq
-- at its end, in and out within it.
CREATE TABLE day (
  account_id TEXT COLLATE "C" NOT NULL REFERENCES account (id),
  day        BIGINT NOT NULL,
  posted_hi  BIGINT NOT NULL CHECK (posted_hi BETWEEN -999999999999999999 AND 999999999999999999),
  posted_lo  BIGINT NOT NULL CHECK (posted_lo BETWEEN 0 AND 999999999999999999),
  in_hi      BIGINT NOT NULL CHECK (in_hi BETWEEN 0 AND 999999999999999999),
  in_lo      BIGINT NOT NULL CHECK (in_lo BETWEEN 0 AND 999999999999999999),
  out_hi     BIGINT NOT NULL CHECK (out_hi BETWEEN 0 AND 999999999999999999),
  out_lo     BIGINT NOT NULL CHECK (out_lo BETWEEN 0 AND 999999999999999999),
  seq        BIGINT NOT NULL CHECK (seq > 0),
  PRIMARY KEY (account_id, day)
);

CREATE FUNCTION ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'ledger: %', TG_ARGV[0] USING ERRCODE = 'check_violation';
END $$;

CREATE FUNCTION ledger_asset() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('ledger asset', NEW.id));
  IF EXISTS (SELECT 1 FROM asset WHERE id = NEW.id AND unit < NEW.unit) THEN
    RAISE EXCEPTION 'ledger: the decimals of an asset grow and never shrink' USING ERRCODE = 'check_violation';
  END IF;
  RETURN NEW;
END $$;

-- Every account is of an asset and has its balance from the start.
CREATE FUNCTION ledger_account() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM asset WHERE id = NEW.asset_id) THEN
    RAISE EXCEPTION 'ledger: no such asset' USING ERRCODE = 'foreign_key_violation';
  END IF;
  INSERT INTO balance (account_id, bounded) VALUES (NEW.id, NEW.bounded);
  RETURN NEW;
END $$;

CREATE FUNCTION ledger_day() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM day WHERE account_id = NEW.account_id AND day > NEW.day) THEN
    RAISE EXCEPTION 'ledger: days close in their order' USING ERRCODE = 'check_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER asset_finer BEFORE INSERT ON asset FOR EACH ROW EXECUTE FUNCTION ledger_asset();
CREATE TRIGGER account_of_asset AFTER INSERT ON account FOR EACH ROW EXECUTE FUNCTION ledger_account();
CREATE TRIGGER day_in_order BEFORE INSERT ON day FOR EACH ROW EXECUTE FUNCTION ledger_day();

CREATE TRIGGER asset_fixed BEFORE UPDATE OR DELETE ON asset FOR EACH ROW
  EXECUTE FUNCTION ledger_refuse('assets are append only');
CREATE TRIGGER account_fixed BEFORE UPDATE OR DELETE ON account FOR EACH ROW
  EXECUTE FUNCTION ledger_refuse('accounts never change and never end');
CREATE TRIGGER balance_kept BEFORE DELETE ON balance FOR EACH ROW
  EXECUTE FUNCTION ledger_refuse('balances never end');
CREATE TRIGGER transfer_fixed BEFORE UPDATE OR DELETE ON transfer FOR EACH ROW
  EXECUTE FUNCTION ledger_refuse('transfers are append only');
CREATE TRIGGER hold_kept BEFORE DELETE ON hold FOR EACH ROW
  EXECUTE FUNCTION ledger_refuse('holds are never removed');
CREATE TRIGGER day_fixed BEFORE UPDATE OR DELETE ON day FOR EACH ROW
  EXECUTE FUNCTION ledger_refuse('a closed day never changes');

CREATE TRIGGER balance_zero BEFORE INSERT ON balance FOR EACH ROW
  WHEN (NEW.posted_hi <> 0 OR NEW.posted_lo <> 0 OR NEW.locked_hi <> 0 OR NEW.locked_lo <> 0 OR NEW.seq <> 0)
  EXECUTE FUNCTION ledger_refuse('a balance begins at zero, with its account');
CREATE TRIGGER balance_moves BEFORE UPDATE ON balance FOR EACH ROW
  WHEN (NEW.account_id <> OLD.account_id OR NEW.version <= OLD.version OR NEW.seq < OLD.seq
    OR (NEW.seq = OLD.seq AND (NEW.posted_hi <> OLD.posted_hi OR NEW.posted_lo <> OLD.posted_lo)))
  EXECUTE FUNCTION ledger_refuse('a balance moves with a transfer');
-- What is locked cannot be taken: posted may fall below locked only as far as
-- locked falls with it. A lock itself may exceed what is there.
CREATE TRIGGER balance_locked BEFORE UPDATE ON balance FOR EACH ROW
  WHEN (NEW.bounded AND (NEW.posted_hi, NEW.posted_lo) < (OLD.posted_hi, OLD.posted_lo)
    AND (NEW.posted_hi, NEW.posted_lo) < (NEW.locked_hi, NEW.locked_lo)
    AND (OLD.locked_hi + NEW.posted_hi + (OLD.locked_lo + NEW.posted_lo) / 1000000000000000000,
         (OLD.locked_lo + NEW.posted_lo) % 1000000000000000000)
      < (OLD.posted_hi + NEW.locked_hi + (OLD.posted_lo + NEW.locked_lo) / 1000000000000000000,
         (OLD.posted_lo + NEW.locked_lo) % 1000000000000000000))
  EXECUTE FUNCTION ledger_refuse('what is locked cannot be taken');

CREATE TRIGGER hold_begins BEFORE INSERT ON hold FOR EACH ROW WHEN (NEW.state <> 'active')
  EXECUTE FUNCTION ledger_refuse('a hold begins active');
CREATE TRIGGER hold_ends_once BEFORE UPDATE ON hold FOR EACH ROW
  WHEN (OLD.state <> 'active' OR NEW.state = 'active' OR NEW.id <> OLD.id OR NEW.account_id <> OLD.account_id
    OR NEW.source <> OLD.source OR NEW.source_ref <> OLD.source_ref OR NEW.type <> OLD.type OR NEW.hi <> OLD.hi
    OR NEW.lo <> OLD.lo OR NEW.version <> OLD.version + 1)
  EXECUTE FUNCTION ledger_refuse('a hold is released or settled, once');

CREATE TRIGGER asset_not_emptied BEFORE TRUNCATE ON asset
  EXECUTE FUNCTION ledger_refuse('tables of the ledger are never emptied');
CREATE TRIGGER account_not_emptied BEFORE TRUNCATE ON account
  EXECUTE FUNCTION ledger_refuse('tables of the ledger are never emptied');
CREATE TRIGGER balance_not_emptied BEFORE TRUNCATE ON balance
  EXECUTE FUNCTION ledger_refuse('tables of the ledger are never emptied');
CREATE TRIGGER transfer_not_emptied BEFORE TRUNCATE ON transfer
  EXECUTE FUNCTION ledger_refuse('tables of the ledger are never emptied');
CREATE TRIGGER hold_not_emptied BEFORE TRUNCATE ON hold
  EXECUTE FUNCTION ledger_refuse('tables of the ledger are never emptied');
CREATE TRIGGER day_not_emptied BEFORE TRUNCATE ON day
  EXECUTE FUNCTION ledger_refuse('tables of the ledger are never emptied');

-- For reports: amounts as one number.
CREATE VIEW ledger_amounts AS
SELECT id, group_id, kind, ref, asset_id, debit_id, credit_id, hi + lo::numeric / 1000000000000000000 AS amount,
  reverses, reason, actor_id, to_timestamp(at / 1000.0) AS at, to_timestamp(effective_at / 1000.0) AS effective_at
FROM transfer;
