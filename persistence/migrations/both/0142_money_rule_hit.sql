-- How often a version of a rule of the money policy asked for something, by hour. A node adds its counts every few
-- seconds. The rows may be deleted at any time, and 0.9 does not write them.

CREATE TABLE money_rule_hit (
  hour    INTEGER NOT NULL,
  label   TEXT NOT NULL,
  version INTEGER NOT NULL,
  number  INTEGER NOT NULL,
  PRIMARY KEY (hour, label, version)
) WITHOUT ROWID;
