-- The sums of a day have no bound: a balance may turn over any number of times. over counts multiples of 10^18 units
-- and has the sign of hi. A program without these columns writes and reads sums below 10^18 as before.

ALTER TABLE day ADD COLUMN posted_over BIGINT NOT NULL DEFAULT 0;
ALTER TABLE day ADD COLUMN in_over BIGINT NOT NULL DEFAULT 0;
ALTER TABLE day ADD COLUMN out_over BIGINT NOT NULL DEFAULT 0;
ALTER TABLE day ADD CONSTRAINT day_over_check CHECK (in_over >= 0 AND out_over >= 0) NOT VALID; -- without a scan
ALTER TABLE asset_day ADD COLUMN posted_over BIGINT NOT NULL DEFAULT 0;
ALTER TABLE asset_day ADD COLUMN in_over BIGINT NOT NULL DEFAULT 0;
ALTER TABLE asset_day ADD COLUMN out_over BIGINT NOT NULL DEFAULT 0;
