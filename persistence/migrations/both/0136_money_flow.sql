-- Totals of past hours for the sums of the money policy (D-POL-13): of a flow by an initiator, or of the whole platform
-- with the scope ''. An hour is stored once nothing can change it; its row of the asset 0 says that it is complete. Any
-- row may be deleted: the hour is then added up from the movements again. So 0.9 need not write this table.

CREATE TABLE money_flow (
  flow     TEXT NOT NULL,
  scope    TEXT NOT NULL,
  hour     INTEGER NOT NULL,
  asset_id INTEGER NOT NULL,
  number   INTEGER NOT NULL,
  hi_high  INTEGER NOT NULL,
  hi_low   INTEGER NOT NULL,
  lo_high  INTEGER NOT NULL,
  lo_low   INTEGER NOT NULL,
  PRIMARY KEY (flow, scope, hour, asset_id)
) WITHOUT ROWID;
CREATE INDEX money_flow_hour ON money_flow (hour);
