-- Totals of movements for the sums of the money policy (D-POL-13), which triggers of the next migration keep. They
-- replace the totals of past hours. A row of money_flow_kept says that the totals of a flow are complete since a slot;
-- without it there are none. 0.9 knows neither table, and its writes are counted by the same triggers.
--
-- A slot is the instant of a movement in milliseconds since 1970 without its last 15, 20 or 25 bits (grain): 33 seconds,
-- 17 minutes or 9 hours. money_flow_kept.since has the grain 15 and is the begin of a slot of the grain 25. The scope is
-- the initiator. part is the kind of statement that writes the row, so that transactions lock rows in one order.

DROP TABLE money_flow;
CREATE TABLE money_flow_kept (
  flow  TEXT NOT NULL PRIMARY KEY,
  since INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE money_flow (
  flow     TEXT NOT NULL,
  grain    INTEGER NOT NULL,
  slot     INTEGER NOT NULL,
  scope    TEXT NOT NULL,
  asset_id INTEGER NOT NULL,
  part     INTEGER NOT NULL,
  number   INTEGER NOT NULL,
  hi_high  INTEGER NOT NULL,
  hi_low   INTEGER NOT NULL,
  lo_high  INTEGER NOT NULL,
  lo_low   INTEGER NOT NULL,
  PRIMARY KEY (flow, grain, slot, scope, asset_id, part)
) WITHOUT ROWID;
