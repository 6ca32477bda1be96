-- What users say of themselves (section 4.15 of the interface). number is the identity
-- number, sealed under the user; users.identity_hash is its keyed hash. What was not sent
-- is ''. additional_info has one row for each user: the ids of five options and what was
-- said to explain them.

CREATE TABLE user_identity (
  user_id       TEXT PRIMARY KEY,
  number        BLOB NOT NULL,
  second_name   TEXT NOT NULL,
  country       TEXT NOT NULL,
  city_id       TEXT NOT NULL,
  district_id   TEXT NOT NULL,
  address       TEXT NOT NULL,
  occupation_id TEXT NOT NULL,
  created_at    BIGINT NOT NULL,
  updated_at    BIGINT NOT NULL
);

CREATE TABLE additional_info (
  id             INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id        TEXT NOT NULL UNIQUE,
  purpose        BIGINT NOT NULL,
  source         BIGINT NOT NULL,
  income         BIGINT NOT NULL,
  amount         BIGINT NOT NULL,
  count          BIGINT NOT NULL,
  purpose_text   TEXT NOT NULL,
  source_text    TEXT NOT NULL,
  income_text    TEXT NOT NULL,
  amount_text    TEXT NOT NULL,
  count_text     TEXT NOT NULL,
  created_at     BIGINT NOT NULL,
  updated_at     BIGINT NOT NULL
);
