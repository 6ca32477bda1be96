-- The challenge and what commits with it. Instants are milliseconds since the
-- Unix epoch; sealed values carry the id of their key.

CREATE TABLE seed (
  name TEXT PRIMARY KEY,
  at   BIGINT NOT NULL
);

CREATE TABLE challenge (
  id         TEXT PRIMARY KEY,
  user_id    TEXT NOT NULL,
  action     TEXT NOT NULL,
  flow       TEXT NOT NULL,
  state      SMALLINT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  touched_at BIGINT NOT NULL,
  version    BIGINT NOT NULL,
  body       TEXT NOT NULL,
  command    BLOB
);
CREATE INDEX challenge_pending ON challenge (user_id) WHERE state = 0;
CREATE INDEX challenge_executing ON challenge (touched_at) WHERE state = 1;

CREATE TABLE attempt_budget (
  id         TEXT PRIMARY KEY,
  version    BIGINT NOT NULL,
  body       TEXT NOT NULL,
  updated_at BIGINT NOT NULL
);

CREATE TABLE outcome (
  challenge_id TEXT PRIMARY KEY,
  created_at   BIGINT NOT NULL,
  expires_at   BIGINT NOT NULL,
  sealed       BLOB NOT NULL
);

CREATE TABLE outbox (
  id           TEXT PRIMARY KEY,
  challenge_id TEXT NOT NULL,
  method_id    TEXT NOT NULL,
  generation   INTEGER NOT NULL,
  user_id      TEXT NOT NULL,
  channel      TEXT NOT NULL,
  destination  BLOB NOT NULL,
  prefix       TEXT NOT NULL,
  dial         TEXT NOT NULL,
  proven       BOOLEAN NOT NULL,
  state        SMALLINT NOT NULL,
  created_at   BIGINT NOT NULL,
  expires_at   BIGINT NOT NULL,
  next_at      BIGINT NOT NULL,
  attempts     INTEGER NOT NULL,
  payload      BLOB
);
CREATE INDEX outbox_due ON outbox (next_at) WHERE state = 0;
CREATE INDEX outbox_user ON outbox (user_id, created_at);
CREATE INDEX outbox_prefix ON outbox (prefix, created_at);
CREATE INDEX outbox_dial ON outbox (dial, created_at) WHERE dial <> '';

CREATE TABLE audit (
  chain      TEXT NOT NULL,
  seq        BIGINT NOT NULL,
  at         BIGINT NOT NULL,
  actor_id   TEXT NOT NULL,
  user_id    TEXT NOT NULL,
  action     TEXT NOT NULL,
  target     TEXT NOT NULL,
  outcome    TEXT NOT NULL,
  ip         TEXT NOT NULL,
  request_id TEXT NOT NULL,
  detail     TEXT NOT NULL,
  hash       BLOB NOT NULL,
  PRIMARY KEY (chain, seq)
) WITHOUT ROWID;

CREATE TABLE audit_checkpoint (
  id    TEXT PRIMARY KEY,
  at    BIGINT NOT NULL,
  heads TEXT NOT NULL,
  hash  BLOB NOT NULL
);

CREATE TABLE change (
  id    INTEGER PRIMARY KEY AUTOINCREMENT,
  topic TEXT NOT NULL,
  key   TEXT NOT NULL,
  at    BIGINT NOT NULL
);
CREATE INDEX change_at ON change (at);

CREATE TABLE idempotency (
  id         TEXT PRIMARY KEY,
  body_hash  BLOB NOT NULL,
  created_at BIGINT NOT NULL,
  sealed     BLOB NOT NULL
);
CREATE INDEX idempotency_created ON idempotency (created_at);
