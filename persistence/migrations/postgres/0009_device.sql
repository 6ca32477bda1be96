-- Registered devices. users.push repeats whether an account has one: a login
-- reads one row. Columns added to tables of the release before this one have a
-- default, because it inserts rows without them.

ALTER TABLE users ADD COLUMN push BOOLEAN NOT NULL DEFAULT FALSE;

-- public_key is a JWK in the form of its thumbprint. target, how the device is
-- woken, is sealed and bound to user and device; last_used_at 0: never.
CREATE TABLE device (
  id           TEXT PRIMARY KEY,
  user_id      TEXT NOT NULL,
  public_key   TEXT NOT NULL,
  brand        TEXT NOT NULL,
  model        TEXT NOT NULL,
  description  TEXT NOT NULL,
  platform     TEXT NOT NULL,
  target       BYTEA,
  status       TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  last_used_at BIGINT NOT NULL,
  UNIQUE (user_id, public_key)
);

-- Proofs and nonces that were used, as keyed hashes.
CREATE TABLE device_proof (
  id         TEXT PRIMARY KEY,
  seen_at    BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
);
CREATE INDEX device_proof_expires ON device_proof (expires_at);

-- Refused pushes, for the limit on them.
CREATE INDEX challenge_denied ON challenge (user_id, touched_at) WHERE state = 3;

-- Whether the push of a policy asks for the number that its starter sees.
ALTER TABLE mfa_policy ADD COLUMN number_matching BOOLEAN NOT NULL DEFAULT FALSE;
