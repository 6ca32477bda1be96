-- Audit rows that are old leave as archive files (D-EXT-03). A row here says what a
-- file holds: up to where each chain, and the checkpoints, left with it. The rows are
-- a chain themselves.

CREATE TABLE audit_archive (
  counter     INTEGER PRIMARY KEY,
  at          BIGINT NOT NULL,
  name        TEXT NOT NULL,
  digest      BLOB NOT NULL, -- SHA-256 of the file
  row_count   BIGINT NOT NULL,
  transfers   BIGINT NOT NULL, -- of these rows, those of transfers
  heads       TEXT NOT NULL,  -- JSON: chain → last row that left, with its hash
  mark        BIGINT NOT NULL, -- last checkpoint that left; 0: none so far
  mark_hash   BLOB NOT NULL,
  hash        BLOB NOT NULL
);

-- What the proof of the ledger needs of the rows that left.
CREATE TABLE audit_left (
  chain  TEXT NOT NULL,
  seq    BIGINT NOT NULL,
  target TEXT NOT NULL,
  detail TEXT NOT NULL,
  hash   BLOB NOT NULL,
  PRIMARY KEY (chain, seq)
);
CREATE INDEX audit_left_transfer ON audit_left (target, detail);
