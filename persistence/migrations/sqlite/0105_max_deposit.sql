-- The largest deposit of a pair that is credited without the treasury (D-INT-05); without a row: 10^15 units. It is no
-- column, because 0.9 fails at new ones of currency_of_network. 0.9 keeps the rows and credits every deposit.

CREATE TABLE pair_max_deposit (
  pair_id INTEGER PRIMARY KEY REFERENCES currency_of_network (id) ON DELETE CASCADE,
  hi      INTEGER NOT NULL CHECK (hi BETWEEN 0 AND 999999999999999999),
  lo      INTEGER NOT NULL CHECK (lo BETWEEN 0 AND 999999999999999999)
);
