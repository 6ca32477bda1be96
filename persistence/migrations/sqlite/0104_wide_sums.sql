-- The sums of a day have no bound: a balance may turn over any number of times. over counts multiples of 10^18 units
-- and has the sign of hi. A program without these columns writes and reads sums below 10^18 as before.

ALTER TABLE day ADD COLUMN posted_over INTEGER NOT NULL DEFAULT 0;
ALTER TABLE day ADD COLUMN in_over INTEGER NOT NULL DEFAULT 0 CHECK (in_over >= 0);
ALTER TABLE day ADD COLUMN out_over INTEGER NOT NULL DEFAULT 0 CHECK (out_over >= 0);
ALTER TABLE asset_day ADD COLUMN posted_over INTEGER NOT NULL DEFAULT 0;
ALTER TABLE asset_day ADD COLUMN in_over INTEGER NOT NULL DEFAULT 0;
ALTER TABLE asset_day ADD COLUMN out_over INTEGER NOT NULL DEFAULT 0;
