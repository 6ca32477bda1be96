-- A message that no cap counts is in no index for counting: pushes never are,
-- and nothing is where caps are switched off.
ALTER TABLE outbox ADD COLUMN counted BOOLEAN NOT NULL DEFAULT TRUE;
DROP INDEX outbox_user;
DROP INDEX outbox_prefix;
DROP INDEX outbox_dial;
CREATE INDEX outbox_user ON outbox (user_id, created_at) WHERE counted;
CREATE INDEX outbox_prefix ON outbox (prefix, created_at) WHERE counted;
CREATE INDEX outbox_dial ON outbox (dial, created_at) WHERE counted AND dial <> '';
