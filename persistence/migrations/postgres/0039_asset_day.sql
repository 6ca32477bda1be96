-- What came into and left the accounts of users on a day (UTC, days since 1970), by asset, and what they had at its end
-- (section 4.9 of the interface). A day without a movement has no row. It is summed once, an hour after its end.

CREATE TABLE asset_day (
  day       BIGINT NOT NULL,
  asset_id  BIGINT NOT NULL,
  in_hi     BIGINT NOT NULL,
  in_lo     BIGINT NOT NULL,
  out_hi    BIGINT NOT NULL,
  out_lo    BIGINT NOT NULL,
  posted_hi BIGINT NOT NULL,
  posted_lo BIGINT NOT NULL,
  PRIMARY KEY (day, asset_id)
);
CREATE INDEX asset_day_asset ON asset_day (asset_id, day);
