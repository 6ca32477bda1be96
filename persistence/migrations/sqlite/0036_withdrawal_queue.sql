-- Withdrawals that wait for the hot wallet, and what became of them on their network
-- (sections 3.4, 4.9 and 4.14 of the interface). An entry of the queue has the id of
-- its withdrawal; without own_fee the fee is that of the currency.

CREATE TABLE withdrawal_queue (
  id                 TEXT NOT NULL PRIMARY KEY REFERENCES withdrawal (id) DEFERRABLE INITIALLY DEFERRED,
  user_id            TEXT NOT NULL,
  asset_id           INTEGER NOT NULL,
  status             INTEGER NOT NULL CHECK (status BETWEEN 4 AND 7),
  address            TEXT NOT NULL,
  address_tag        TEXT NOT NULL,
  external_id        TEXT NOT NULL,
  attempt_identifier TEXT NOT NULL,
  tx_id              TEXT NOT NULL,
  own_fee            INTEGER NOT NULL CHECK (own_fee IN (0, 1)),
  fee_hi             INTEGER NOT NULL CHECK (fee_hi BETWEEN 0 AND 999999999999999999),
  fee_lo             INTEGER NOT NULL CHECK (fee_lo BETWEEN 0 AND 999999999999999999),
  at                 INTEGER NOT NULL,
  version            INTEGER NOT NULL CHECK (version > 0),
  CHECK (own_fee OR (fee_hi = 0 AND fee_lo = 0))
) STRICT;
CREATE INDEX withdrawal_queue_user ON withdrawal_queue (user_id, id);
CREATE INDEX withdrawal_queue_asset ON withdrawal_queue (asset_id, id);
CREATE INDEX withdrawal_queue_status ON withdrawal_queue (status, id);
CREATE INDEX withdrawal_queue_active ON withdrawal_queue (id) WHERE status <> 4;
CREATE INDEX withdrawal_queue_address ON withdrawal_queue (address, id);
CREATE INDEX withdrawal_queue_address_tag ON withdrawal_queue (address_tag, id);
CREATE INDEX withdrawal_queue_external ON withdrawal_queue (external_id, id);
CREATE INDEX withdrawal_queue_attempt ON withdrawal_queue (attempt_identifier, id);
CREATE INDEX withdrawal_queue_tx ON withdrawal_queue (tx_id, id);

CREATE TABLE process (
  id             TEXT NOT NULL PRIMARY KEY,
  transaction_id TEXT NOT NULL UNIQUE,
  user_id        TEXT NOT NULL,
  asset_id       INTEGER NOT NULL,
  tx_id          TEXT NOT NULL,
  internal       INTEGER NOT NULL CHECK (internal IN (0, 1)),
  status         INTEGER NOT NULL,
  at             INTEGER NOT NULL
) STRICT;
CREATE INDEX process_user ON process (user_id, id);

-- job_id: the job that is moving the deposit out of its status, or did so last.
ALTER TABLE deposit ADD COLUMN job_id TEXT NOT NULL DEFAULT '';
CREATE INDEX deposit_waiting ON deposit (user_id, id) WHERE status < 0;

-- A deposit that waits is not credited, and any other is.
CREATE TRIGGER deposit_credited_added BEFORE INSERT ON deposit WHEN (NEW.status < 0) <> (NEW.transfer_id IS NULL)
BEGIN SELECT RAISE(ABORT, 'deposit: credited when it stops waiting'); END;
CREATE TRIGGER deposit_credited_moved BEFORE UPDATE ON deposit WHEN (NEW.status < 0) <> (NEW.transfer_id IS NULL)
BEGIN SELECT RAISE(ABORT, 'deposit: credited when it stops waiting'); END;
