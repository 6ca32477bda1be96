-- Triggers that keep the totals of money_flow. A change of a movement is a row of the view money_flow_change: -1 for
-- what the movement counted before, 1 for what it counts now. key is the identifier with the instant of the movement.

CREATE VIEW money_flow_change AS SELECT '' AS direction, '' AS id, '' AS key, 0 AS counts, 0 AS left_at, '' AS scope,
  0 AS asset_id, 0 AS number, 0 AS hi, 0 AS lo WHERE false;

CREATE TRIGGER money_flow_add INSTEAD OF INSERT ON money_flow_change WHEN NEW.counts BEGIN
  INSERT INTO money_flow (flow, grain, slot, scope, asset_id, part, number, hi_high, hi_low, lo_high, lo_low)
  SELECT m.flow, g.column1, m.slot >> (g.column1 - 15), NEW.scope, NEW.asset_id, 0, NEW.number,
    NEW.number * (NEW.hi / 1000000000), NEW.number * (NEW.hi % 1000000000),
    NEW.number * (NEW.lo / 1000000000), NEW.number * (NEW.lo % 1000000000)
  FROM (SELECT CASE WHEN NEW.id = NEW.key AND NEW.direction = 'IN' THEN 'ADJUSTMENT/IN'
        WHEN NEW.direction = 'IN' THEN 'DEPOSIT/IN'
        WHEN NEW.counts = 2 THEN 'ADJUSTMENT/OUT' ELSE 'WITHDRAWAL/OUT' END AS flow,
      (instr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(NEW.key, 1, 1)) - 1) * 1073741824
      + (instr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(NEW.key, 2, 1)) - 1) * 33554432
      + (instr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(NEW.key, 3, 1)) - 1) * 1048576
      + (instr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(NEW.key, 4, 1)) - 1) * 32768
      + (instr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(NEW.key, 5, 1)) - 1) * 1024
      + (instr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(NEW.key, 6, 1)) - 1) * 32
      + (instr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(NEW.key, 7, 1)) - 1) AS slot
    UNION ALL SELECT 'WITHDRAWAL/OUT/LEFT', NEW.left_at >> 15 WHERE NEW.left_at > 0 AND NEW.counts = 1) AS m
  JOIN money_flow_kept AS k ON k.flow = m.flow AND k.since <= m.slot
  CROSS JOIN (VALUES (15), (20), (25)) AS g
  WHERE true
  ON CONFLICT (flow, grain, slot, scope, asset_id, part) DO UPDATE SET number = number + excluded.number,
    hi_high = hi_high + excluded.hi_high, hi_low = hi_low + excluded.hi_low,
    lo_high = lo_high + excluded.lo_high, lo_low = lo_low + excluded.lo_low;
END;

CREATE TRIGGER withdrawal_flow_added AFTER INSERT ON withdrawal WHEN EXISTS (SELECT 1 FROM money_flow_kept) BEGIN
  INSERT INTO money_flow_change SELECT 'OUT', NEW.id, NEW.id, CASE WHEN NEW.id IS NEW.transfer_id THEN 2
    ELSE NEW.hold_id IS NOT NULL AND NEW.status NOT IN (-3, -2) END, NEW.left_at, NEW.initiator, NEW.asset_id, 1,
    NEW.hi, NEW.lo;
END;

CREATE TRIGGER withdrawal_flow_changed
AFTER UPDATE OF asset_id, hi, lo, status, transfer_id, hold_id, initiator, left_at ON withdrawal
WHEN (OLD.asset_id, OLD.hi, OLD.lo, OLD.status IN (-3, -2), OLD.id IS OLD.transfer_id, OLD.hold_id IS NULL,
    OLD.initiator, OLD.left_at)
  IS NOT (NEW.asset_id, NEW.hi, NEW.lo, NEW.status IN (-3, -2), NEW.id IS NEW.transfer_id, NEW.hold_id IS NULL,
    NEW.initiator, NEW.left_at) AND EXISTS (SELECT 1 FROM money_flow_kept) BEGIN
  INSERT INTO money_flow_change SELECT 'OUT', OLD.id, OLD.id, CASE WHEN OLD.id IS OLD.transfer_id THEN 2
    ELSE OLD.hold_id IS NOT NULL AND OLD.status NOT IN (-3, -2) END, OLD.left_at, OLD.initiator, OLD.asset_id, -1,
    OLD.hi, OLD.lo;
  INSERT INTO money_flow_change SELECT 'OUT', NEW.id, NEW.id, CASE WHEN NEW.id IS NEW.transfer_id THEN 2
    ELSE NEW.hold_id IS NOT NULL AND NEW.status NOT IN (-3, -2) END, NEW.left_at, NEW.initiator, NEW.asset_id, 1,
    NEW.hi, NEW.lo;
END;

CREATE TRIGGER deposit_flow_added AFTER INSERT ON deposit
WHEN NEW.transfer_id IS NOT NULL AND EXISTS (SELECT 1 FROM money_flow_kept) BEGIN
  INSERT INTO money_flow_change SELECT 'IN', NEW.id, NEW.transfer_id, 1, 0, NEW.initiator, NEW.asset_id, 1, NEW.hi,
    NEW.lo;
END;

CREATE TRIGGER deposit_flow_changed AFTER UPDATE OF asset_id, hi, lo, transfer_id, initiator ON deposit
WHEN (OLD.asset_id, OLD.hi, OLD.lo, OLD.transfer_id, OLD.initiator)
  IS NOT (NEW.asset_id, NEW.hi, NEW.lo, NEW.transfer_id, NEW.initiator)
  AND EXISTS (SELECT 1 FROM money_flow_kept) BEGIN
  INSERT INTO money_flow_change SELECT 'IN', OLD.id, OLD.transfer_id, OLD.transfer_id IS NOT NULL, 0, OLD.initiator,
    OLD.asset_id, -1, OLD.hi, OLD.lo;
  INSERT INTO money_flow_change SELECT 'IN', NEW.id, NEW.transfer_id, NEW.transfer_id IS NOT NULL, 0, NEW.initiator,
    NEW.asset_id, 1, NEW.hi, NEW.lo;
END;
