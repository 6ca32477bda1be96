-- Versions of a contract (D-INT-14): rows of one code, each with its own details. At most one of them is
-- active. name_tr and name_ar are '' where name is used. A draft was never published.
--
-- SQLite cannot drop the unique key of code, so the table is made again under its name. The details refer to
-- it meanwhile; the commit checks them.

PRAGMA defer_foreign_keys = ON;
CREATE TABLE contract_before AS SELECT id, code, name, version, active, created_at FROM contract;
DROP TABLE contract;
CREATE TABLE contract (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  code         TEXT NOT NULL,
  name         TEXT NOT NULL,
  name_tr      TEXT NOT NULL DEFAULT '',
  name_ar      TEXT NOT NULL DEFAULT '',
  version      TEXT,
  active       BOOLEAN NOT NULL,
  published_at BIGINT,
  created_at   BIGINT NOT NULL
);
INSERT INTO contract (id, code, name, version, active, published_at, created_at)
SELECT id, code, name, version, active, CASE WHEN active THEN created_at END, created_at FROM contract_before;
DROP TABLE contract_before;
CREATE UNIQUE INDEX contract_version ON contract (code, COALESCE(version, ''));
CREATE UNIQUE INDEX contract_active ON contract (code) WHERE active;
