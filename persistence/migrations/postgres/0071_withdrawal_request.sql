-- Withdrawals that other services request (D-INT-04): more statuses of the queue, what was
-- last said of an entry, and a desk for each user, whose version orders the requests.
-- status 8 queued, 9 processing, 10 sent, 11 failed, 12 cancelled.

ALTER TABLE withdrawal_queue DROP CONSTRAINT withdrawal_queue_status_check;
ALTER TABLE withdrawal_queue ADD CONSTRAINT withdrawal_queue_status_check CHECK (status BETWEEN 4 AND 12);
ALTER TABLE withdrawal_queue ADD COLUMN reason TEXT NOT NULL DEFAULT '';
DROP INDEX withdrawal_queue_active;
CREATE INDEX withdrawal_queue_active ON withdrawal_queue (id) WHERE status NOT IN (4, 11, 12);
CREATE INDEX withdrawal_queue_final ON withdrawal_queue (id) WHERE status NOT BETWEEN 5 AND 10;

CREATE TABLE withdrawal_desk (
  user_id    TEXT NOT NULL PRIMARY KEY,
  changed_at BIGINT NOT NULL,
  version    BIGINT NOT NULL CHECK (version > 0)
);

-- What waits to be sent counts against the limits.
CREATE INDEX withdrawal_waits ON withdrawal (user_id, asset_id, hi, lo, transfer_id)
  WHERE status = -1;
