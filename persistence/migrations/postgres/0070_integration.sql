-- External ids of other services (D-INT-02), and the events that they read (D-INT-03). tx is
-- the id of the inserting transaction: a reader takes events of transactions below the oldest
-- one that is under way, so that none appears behind it later.

CREATE TABLE integration_claim (
  kind        TEXT NOT NULL,
  external_id TEXT NOT NULL,
  digest      BYTEA NOT NULL,
  record_id   TEXT NOT NULL,
  created_at  BIGINT NOT NULL,
  PRIMARY KEY (kind, external_id)
);

CREATE TABLE integration_event (
  tx      BIGINT NOT NULL DEFAULT (pg_current_xact_id()::text::bigint),
  id      TEXT NOT NULL UNIQUE,
  type    TEXT NOT NULL,
  user_id TEXT NOT NULL,
  data    TEXT NOT NULL,
  at      BIGINT NOT NULL,
  PRIMARY KEY (tx, id)
);
