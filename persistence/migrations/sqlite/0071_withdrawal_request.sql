-- Withdrawals that other services request (D-INT-04): more statuses of the queue, what was
-- last said of an entry, and a desk for each user, whose version orders the requests.
-- status 8 queued, 9 processing, 10 sent, 11 failed, 12 cancelled.

CREATE TABLE withdrawal_queue_next (
  id                 TEXT NOT NULL PRIMARY KEY REFERENCES withdrawal (id) DEFERRABLE INITIALLY DEFERRED,
  user_id            TEXT NOT NULL,
  asset_id           INTEGER NOT NULL,
  status             INTEGER NOT NULL CHECK (status BETWEEN 4 AND 12),
  address            TEXT NOT NULL,
  address_tag        TEXT NOT NULL,
  external_id        TEXT NOT NULL,
  attempt_identifier TEXT NOT NULL,
  tx_id              TEXT NOT NULL,
  reason             TEXT NOT NULL DEFAULT '',
  own_fee            INTEGER NOT NULL CHECK (own_fee IN (0, 1)),
  fee_hi             INTEGER NOT NULL CHECK (fee_hi BETWEEN 0 AND 999999999999999999),
  fee_lo             INTEGER NOT NULL CHECK (fee_lo BETWEEN 0 AND 999999999999999999),
  at                 INTEGER NOT NULL,
  version            INTEGER NOT NULL CHECK (version > 0),
  CHECK (own_fee OR (fee_hi = 0 AND fee_lo = 0))
) STRICT;
INSERT INTO withdrawal_queue_next (id, user_id, asset_id, status, address, address_tag, external_id, attempt_identifier, tx_id, own_fee, fee_hi,
  fee_lo, at, version)
SELECT id, user_id, asset_id, status, address, address_tag, external_id, attempt_identifier, tx_id, own_fee, fee_hi,
  fee_lo, at, version FROM withdrawal_queue;
DROP TABLE withdrawal_queue;
ALTER TABLE withdrawal_queue_next RENAME TO withdrawal_queue;
CREATE INDEX withdrawal_queue_user ON withdrawal_queue (user_id, id);
CREATE INDEX withdrawal_queue_asset ON withdrawal_queue (asset_id, id);
CREATE INDEX withdrawal_queue_status ON withdrawal_queue (status, id);
CREATE INDEX withdrawal_queue_address ON withdrawal_queue (address, id);
CREATE INDEX withdrawal_queue_address_tag ON withdrawal_queue (address_tag, id);
CREATE INDEX withdrawal_queue_external ON withdrawal_queue (external_id, id);
CREATE INDEX withdrawal_queue_attempt ON withdrawal_queue (attempt_identifier, id);
CREATE INDEX withdrawal_queue_tx ON withdrawal_queue (tx_id, id);
CREATE INDEX withdrawal_queue_active ON withdrawal_queue (id) WHERE status NOT IN (4, 11, 12);
CREATE INDEX withdrawal_queue_final ON withdrawal_queue (id) WHERE status NOT BETWEEN 5 AND 10;

CREATE TABLE withdrawal_desk (
  user_id    TEXT NOT NULL PRIMARY KEY,
  changed_at INTEGER NOT NULL,
  version    INTEGER NOT NULL CHECK (version > 0)
) STRICT;

-- What waits to be sent counts against the limits.
CREATE INDEX withdrawal_waits ON withdrawal (user_id, asset_id, hi, lo, transfer_id)
  WHERE status = -1;
