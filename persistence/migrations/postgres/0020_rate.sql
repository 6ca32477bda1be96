-- Exchange rates (section 2.5), every one that ever arrived: one unit of base cost so much of quote from the instant
-- at on, in milliseconds. The primary key finds the last rate of a pair before an instant.

CREATE TABLE exchange_pair (
  id    BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  base  TEXT NOT NULL,
  quote TEXT NOT NULL,
  UNIQUE (base, quote)
);

CREATE TABLE exchange_rate (
  pair_id    BIGINT NOT NULL REFERENCES exchange_pair (id),
  at         BIGINT NOT NULL,
  rate       NUMERIC NOT NULL CHECK (rate > 0),
  source     TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (pair_id, at)
);
