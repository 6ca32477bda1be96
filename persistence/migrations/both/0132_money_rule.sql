-- The rules of the money policy. A version is never changed; the current one of a label is the highest, and the status
-- DELETED ends it. A program without this table judges no rules.

CREATE TABLE money_rule (
  label      TEXT NOT NULL,
  version    INTEGER NOT NULL,
  status     TEXT NOT NULL,
  definition TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (label, version)
) WITHOUT ROWID;
