-- What other services report (D-INT-05, D-INT-06). external_id is '' where the record came in another way.

ALTER TABLE deposit ADD COLUMN external_id TEXT NOT NULL DEFAULT '';
ALTER TABLE deposit ADD COLUMN from_address TEXT NOT NULL DEFAULT '';
ALTER TABLE corporate_application ADD COLUMN external_id TEXT NOT NULL DEFAULT '';

-- Findings about users. status is the risk that the finding names; the account's own is users.aml_status.
CREATE TABLE aml_finding (
  id          TEXT NOT NULL PRIMARY KEY,
  external_id TEXT NOT NULL,
  user_id     TEXT NOT NULL,
  status      TEXT NOT NULL,
  source      TEXT NOT NULL,
  reference   TEXT NOT NULL,
  detail      TEXT NOT NULL,
  at          INTEGER NOT NULL
) STRICT;
CREATE INDEX aml_finding_user ON aml_finding (user_id, id);
