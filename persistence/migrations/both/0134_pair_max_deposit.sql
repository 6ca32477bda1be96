-- The largest deposit of a pair that is credited without the treasury (D-INT-05); without a row: 10^15 units. It leaves
-- currency_of_network, because 0.9 fails at new columns of that table, and sees neither column: 0105 is applied in the
-- same transaction. 0.9 keeps the rows and credits every deposit.

CREATE TABLE pair_max_deposit (
  pair_id INTEGER PRIMARY KEY REFERENCES currency_of_network (id) ON DELETE CASCADE,
  hi      INTEGER NOT NULL CHECK (hi BETWEEN 0 AND 999999999999999999),
  lo      INTEGER NOT NULL CHECK (lo BETWEEN 0 AND 999999999999999999)
);

INSERT INTO pair_max_deposit (pair_id, hi, lo)
  SELECT id, max_deposit_hi, max_deposit_lo FROM currency_of_network
  WHERE max_deposit_hi IS NOT NULL AND max_deposit_lo IS NOT NULL;

ALTER TABLE currency_of_network DROP COLUMN max_deposit_hi;
ALTER TABLE currency_of_network DROP COLUMN max_deposit_lo;
