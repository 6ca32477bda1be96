-- Grants of the guard for gateways (D-EXT-11): one row for each completed challenge, whose id it has.
-- used_at is 0 until the one use.

CREATE TABLE guard_grant (
  id      TEXT PRIMARY KEY,
  user_id TEXT NOT NULL,
  made_at BIGINT NOT NULL,
  used_at BIGINT NOT NULL,
  use_id  TEXT NOT NULL
);
