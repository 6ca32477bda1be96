-- Imports of users of another login service, and the hashes that they bring (D-AUTH-19).

CREATE TABLE user_import (
  id         TEXT PRIMARY KEY,
  version    BIGINT NOT NULL,
  position   BIGINT NOT NULL,
  imported   BIGINT NOT NULL,
  refused    BIGINT NOT NULL,
  done       BOOLEAN NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);

CREATE TABLE user_import_refusal (
  import_id TEXT NOT NULL,
  line      BIGINT NOT NULL,
  reason    TEXT NOT NULL,
  PRIMARY KEY (import_id, line)
);

CREATE TABLE imported_hash (
  recipe  TEXT PRIMARY KEY,
  used_at BIGINT NOT NULL
);
