-- Authenticators. users.totp repeats whether an account has one: a login reads
-- one row. It has a default because the release before this one inserts
-- accounts without it.

ALTER TABLE users ADD COLUMN totp BOOLEAN NOT NULL DEFAULT FALSE;

-- id is that of the definition: a new one has another secret. The secret is
-- sealed and bound to user and definition. last_step is the newest time step
-- whose code was accepted; 0: none was.
CREATE TABLE totp (
  user_id    TEXT PRIMARY KEY,
  id         TEXT NOT NULL,
  secret     BYTEA NOT NULL,
  last_step  BIGINT NOT NULL,
  created_at BIGINT NOT NULL
);

-- The recovery codes of a definition, as keyed hashes. used_at 0: not used.
CREATE TABLE recovery_code (
  user_id  TEXT NOT NULL,
  number   INTEGER NOT NULL,
  totp_id  TEXT NOT NULL,
  hash_key TEXT NOT NULL,
  hash     BYTEA NOT NULL,
  used_at  BIGINT NOT NULL,
  PRIMARY KEY (user_id, number)
);
