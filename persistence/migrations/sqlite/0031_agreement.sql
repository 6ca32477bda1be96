-- Agreements and who accepted them (D-ADM-03, D-ADM-07). file_path is the key of
-- the stored file.

CREATE TABLE agreement (
  id              INTEGER PRIMARY KEY AUTOINCREMENT,
  name            TEXT NOT NULL,
  description     TEXT NOT NULL,
  version         TEXT NOT NULL,
  accept_required BOOLEAN NOT NULL,
  file_path       TEXT NOT NULL UNIQUE,
  created_by      TEXT NOT NULL,
  created_at      BIGINT NOT NULL,
  UNIQUE (name, version)
);

CREATE TABLE agreement_acceptance (
  agreement_id BIGINT NOT NULL REFERENCES agreement (id),
  user_id      TEXT NOT NULL,
  accepted_at  BIGINT NOT NULL,
  PRIMARY KEY (agreement_id, user_id)
);
