-- Exchange rates (section 2.5), every one that ever arrived: one unit of base cost so much of quote from the instant
-- at on, in milliseconds. The primary key finds the last rate of a pair before an instant.

CREATE TABLE exchange_pair (
  id    INTEGER PRIMARY KEY AUTOINCREMENT,
  base  TEXT NOT NULL,
  quote TEXT NOT NULL,
  UNIQUE (base, quote)
) STRICT;

CREATE TABLE exchange_rate (
  pair_id    INTEGER NOT NULL REFERENCES exchange_pair (id),
  at         INTEGER NOT NULL,
  rate       TEXT NOT NULL,
  source     TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (pair_id, at)
) STRICT;
