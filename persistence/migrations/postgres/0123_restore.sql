-- Restores from a backup (D-EXT-17). Cursors of events with events_after < tx < events_from were issued for events
-- that the restore lost; events_offset is added to the numbers of transactions of PostgreSQL. finished_at is 0 until
-- the withdrawals were compared with the wallet. outcome is empty until the entry was compared; status is its former
-- status. The previous release can run beside this migration.

CREATE TABLE restore (
  id            TEXT PRIMARY KEY,
  point         BIGINT NOT NULL,
  restored_at   BIGINT NOT NULL,
  events_after  BIGINT NOT NULL,
  events_from   BIGINT NOT NULL,
  events_offset BIGINT NOT NULL,
  finished_at   BIGINT NOT NULL
);

CREATE TABLE restore_withdrawal (
  id         TEXT PRIMARY KEY,
  status     SMALLINT NOT NULL,
  outcome    TEXT NOT NULL,
  settled_at BIGINT NOT NULL
);
