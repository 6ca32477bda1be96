-- The countries from which an account may be used (section 2.7). The account's
-- own row repeats their codes, sorted and separated by commas, so that whoever
-- reads the account knows them.

CREATE TABLE geofilter_country (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id    TEXT NOT NULL,
  code       TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  UNIQUE (user_id, code)
);

ALTER TABLE users ADD COLUMN countries TEXT NOT NULL DEFAULT '';
CREATE INDEX users_countries ON users (id) WHERE countries <> '';

-- The networks from which some endpoints may be used (D-AUTH-09); an account
-- without a row may use them from everywhere.

CREATE TABLE allowed_ip (
  user_id    TEXT NOT NULL,
  network    TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, network)
);
