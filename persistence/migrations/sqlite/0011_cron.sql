-- The keys of scheduled clients. hash is the keyed hash of name and secret.

CREATE TABLE cron_key (
  name       TEXT PRIMARY KEY,
  hash_key   TEXT NOT NULL,
  hash       BLOB NOT NULL,
  created_at BIGINT NOT NULL
);
