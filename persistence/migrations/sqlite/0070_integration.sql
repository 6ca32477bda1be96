-- External ids of other services (D-INT-02), and the events that they read (D-INT-03). A
-- SQLite database has one writer, so seq orders events by their commits.

CREATE TABLE integration_claim (
  kind        TEXT NOT NULL,
  external_id TEXT NOT NULL,
  digest      BLOB NOT NULL,
  record_id   TEXT NOT NULL,
  created_at  BIGINT NOT NULL,
  PRIMARY KEY (kind, external_id)
);

CREATE TABLE integration_event (
  tx      INTEGER PRIMARY KEY AUTOINCREMENT,
  id      TEXT NOT NULL UNIQUE,
  type    TEXT NOT NULL,
  user_id TEXT NOT NULL,
  data    TEXT NOT NULL,
  at      BIGINT NOT NULL
);
