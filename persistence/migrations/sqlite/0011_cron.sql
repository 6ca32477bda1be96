-- The keys of scheduled clients. hash is the keyed hash of name and secret.

CREATE TABLE cron_key (
  name       TEXT PRIMARY KEY,
  hash_key   TEXT NOT NULL,
  hash       BLOB NOT NULL,
  created_at BIGINT NOT NULL
);

-- Whether an account is kept from withdrawing. It has a default because the
-- release before this one inserts accounts without it.

ALTER TABLE users ADD COLUMN withdraw_prohibited BOOLEAN NOT NULL DEFAULT FALSE;

-- The audit is listed newest first, of everybody or of one account.

CREATE INDEX audit_at ON audit (at, chain, seq);
CREATE INDEX audit_user ON audit (user_id, at, chain, seq) WHERE user_id <> '';
