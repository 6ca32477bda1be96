-- The largest deposit of a pair that is credited without the treasury (D-INT-05); NULL: 10^15 units. A program without
-- these columns keeps their values and credits every deposit.

ALTER TABLE currency_of_network ADD COLUMN max_deposit_hi INTEGER CHECK (max_deposit_hi BETWEEN 0 AND 999999999999999999);
ALTER TABLE currency_of_network ADD COLUMN max_deposit_lo INTEGER CHECK (max_deposit_lo BETWEEN 0 AND 999999999999999999);
