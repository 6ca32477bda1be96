-- Withdrawals that wait for the hot wallet, and what became of them on their network
-- (sections 3.4, 4.9 and 4.14 of the interface). An entry of the queue has the id of
-- its withdrawal; without own_fee the fee is that of the currency.

CREATE TABLE withdrawal_queue (
  id                 TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES withdrawal (id) DEFERRABLE INITIALLY DEFERRED,
  user_id            TEXT NOT NULL,
  asset_id           BIGINT NOT NULL,
  status             BIGINT NOT NULL CHECK (status BETWEEN 4 AND 7),
  address            TEXT NOT NULL,
  address_tag        TEXT NOT NULL,
  external_id        TEXT NOT NULL,
  attempt_identifier TEXT NOT NULL,
  tx_id              TEXT NOT NULL,
  own_fee            BOOLEAN NOT NULL,
  fee_hi             BIGINT NOT NULL CHECK (fee_hi BETWEEN 0 AND 999999999999999999),
  fee_lo             BIGINT NOT NULL CHECK (fee_lo BETWEEN 0 AND 999999999999999999),
  at                 BIGINT NOT NULL,
  version            BIGINT NOT NULL CHECK (version > 0),
  CHECK (own_fee OR (fee_hi = 0 AND fee_lo = 0))
);
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
  id             TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  transaction_id TEXT NOT NULL UNIQUE,
  user_id        TEXT NOT NULL,
  asset_id       BIGINT NOT NULL,
  tx_id          TEXT NOT NULL,
  internal       BOOLEAN NOT NULL,
  status         BIGINT NOT NULL,
  at             BIGINT NOT NULL
);
CREATE INDEX process_user ON process (user_id, id);

-- job_id: the job that is moving the deposit out of its status, or did so last.
ALTER TABLE deposit ADD COLUMN job_id TEXT NOT NULL DEFAULT '';
CREATE INDEX deposit_waiting ON deposit (user_id, id) WHERE status < 0;

-- A deposit that waits is not credited, and any other is.
ALTER TABLE deposit ADD CONSTRAINT deposit_credited CHECK ((status < 0) = (transfer_id IS NULL));
