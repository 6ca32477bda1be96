-- How many accounts have which kind of password hash (D-AUTH-19). peak is the largest number so far. The one row of
-- hash_census says when they were counted, and when a version first started that counts them. imported_hash is of the
-- version before, which still writes it.

CREATE TABLE hash_kind (
  kind     TEXT PRIMARY KEY,
  accounts BIGINT NOT NULL,
  peak     BIGINT NOT NULL
);

CREATE TABLE hash_census (
  id         TEXT PRIMARY KEY,
  version    BIGINT NOT NULL,
  seed       TEXT NOT NULL,
  since      BIGINT NOT NULL,
  counted_at BIGINT NOT NULL
);
