-- Corporate applications and users (section 2.7 of the interface), listed newest
-- first by each of their filters. folded_name is company_name without regard to
-- case. made says that the account was made for the row: a mail address is that of
-- one such account of a company, and an account stands in a company once.

CREATE TABLE corporate_application (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  company_name TEXT NOT NULL,
  folded_name  TEXT NOT NULL,
  tax_number   TEXT NOT NULL,
  status       TEXT NOT NULL,
  created_at   BIGINT NOT NULL
);

CREATE INDEX corporate_application_tax_number ON corporate_application (tax_number, id);
CREATE INDEX corporate_application_status ON corporate_application (status, id);

CREATE TABLE corporate_user (
  id                INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id           TEXT NOT NULL,
  corporate_user_id TEXT NOT NULL,
  role              TEXT NOT NULL,
  status            TEXT NOT NULL,
  country_code      TEXT NOT NULL,
  phone_number      TEXT NOT NULL,
  email             TEXT,
  made              BOOLEAN NOT NULL,
  created_at        BIGINT NOT NULL,
  updated_at        BIGINT NOT NULL
);

CREATE INDEX corporate_user_user ON corporate_user (user_id, id);
CREATE INDEX corporate_user_company ON corporate_user (corporate_user_id, id);
CREATE INDEX corporate_user_status ON corporate_user (status, id);
CREATE UNIQUE INDEX corporate_user_once ON corporate_user (corporate_user_id, user_id);
CREATE UNIQUE INDEX corporate_user_made ON corporate_user (corporate_user_id, email) WHERE made;
