-- Passkeys (D-AUTH-18): devices whose proof is an assertion of Web Authentication. They are in a table of their own, so
-- that a login without a passkey reads nothing of them. public_key is a JWK; last_used_at 0: never.

CREATE TABLE passkey (
  device_id     TEXT PRIMARY KEY,
  user_id       TEXT NOT NULL,
  credential_id BYTEA NOT NULL UNIQUE,
  public_key    TEXT NOT NULL,
  aaguid        BYTEA NOT NULL,
  eligible      BOOLEAN NOT NULL,
  backed_up     BOOLEAN NOT NULL,
  sign_count    BIGINT NOT NULL,
  transports    TEXT NOT NULL,
  brand         TEXT NOT NULL,
  model         TEXT NOT NULL,
  description   TEXT NOT NULL,
  platform      TEXT NOT NULL,
  created_at    BIGINT NOT NULL,
  last_used_at  BIGINT NOT NULL
);
CREATE INDEX passkey_user ON passkey (user_id);

-- The random name of the account inside its passkeys; null for an account without one.
ALTER TABLE users ADD COLUMN passkey_handle TEXT;
