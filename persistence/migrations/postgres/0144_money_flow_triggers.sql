-- Triggers that keep the totals of money_flow: -1 for what a movement counted before, 1 for what it counts now. They
-- run once for each statement and lock the totals in the order of their key, so that no two transactions wait for each
-- other. The parts are 0 for new movements, 2 for claims, and 1 for other changes. They run with the rights of their
-- owner: nodes of the former version write movements before the new tables are granted to their role.

CREATE FUNCTION money_slot(id TEXT) RETURNS BIGINT LANGUAGE sql IMMUTABLE AS $$
  SELECT ((strpos('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(id, 1, 1)) - 1)::bigint << 30)
    | ((strpos('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(id, 2, 1)) - 1)::bigint << 25)
    | ((strpos('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(id, 3, 1)) - 1)::bigint << 20)
    | ((strpos('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(id, 4, 1)) - 1)::bigint << 15)
    | ((strpos('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(id, 5, 1)) - 1)::bigint << 10)
    | ((strpos('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(id, 6, 1)) - 1)::bigint << 5)
    | (strpos('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(id, 7, 1)) - 1)::bigint
$$;

CREATE FUNCTION money_flow_of(flow TEXT, slot BIGINT, scope TEXT, asset_id BIGINT, part BIGINT, number BIGINT,
  hi BIGINT, lo BIGINT) RETURNS money_flow LANGUAGE sql IMMUTABLE AS $$
  SELECT ROW(flow, 15, slot, scope, asset_id, part, number, number * (hi / 1000000000), number * (hi % 1000000000),
    number * (lo / 1000000000), number * (lo % 1000000000))::money_flow
$$;

CREATE FUNCTION money_flow_add(changes money_flow[]) RETURNS void LANGUAGE sql AS $$
  INSERT INTO money_flow AS t
  SELECT c.flow, g.grain, c.slot >> (g.grain - 15), c.scope, c.asset_id, c.part, sum(c.number), sum(c.hi_high),
    sum(c.hi_low), sum(c.lo_high), sum(c.lo_low)
  FROM unnest(changes) AS c
  JOIN money_flow_kept AS k ON k.flow = c.flow AND k.since <= c.slot
  CROSS JOIN (VALUES (15), (20), (25)) AS g (grain)
  GROUP BY 1, 2, 3, 4, 5, 6
  HAVING (sum(c.number), sum(c.hi_high), sum(c.hi_low), sum(c.lo_high), sum(c.lo_low)) <> (0, 0, 0, 0, 0)
  ORDER BY 1, 2, 3, 4, 5, 6
  ON CONFLICT (flow, grain, slot, scope, asset_id, part) DO UPDATE SET number = t.number + EXCLUDED.number,
    hi_high = t.hi_high + EXCLUDED.hi_high, hi_low = t.hi_low + EXCLUDED.hi_low,
    lo_high = t.lo_high + EXCLUDED.lo_high, lo_low = t.lo_low + EXCLUDED.lo_low
$$;

CREATE FUNCTION withdrawal_flow() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM money_flow_kept) THEN
    RETURN NULL;
  ELSIF TG_OP = 'INSERT' THEN
    PERFORM money_flow_add(array_agg(money_flow_of(CASE WHEN w.id = w.transfer_id THEN 'ADJUSTMENT/OUT'
      ELSE 'WITHDRAWAL/OUT' END, money_slot(w.id), w.initiator, w.asset_id, 0, 1, w.hi, w.lo)))
    FROM new_rows AS w WHERE w.id = w.transfer_id OR w.hold_id IS NOT NULL AND w.status NOT IN (-3, -2);
  ELSE
    PERFORM money_flow_add(array_agg(money_flow_of(f.flow, f.slot, w.initiator, w.asset_id, w.part, w.number, w.hi,
      w.lo)))
    FROM (SELECT o.*, -1 AS number, CASE WHEN o.left_at = n.left_at THEN 1 ELSE 2 END AS part
      FROM old_rows AS o JOIN new_rows AS n ON n.id = o.id
      UNION ALL SELECT n.*, 1, CASE WHEN o.left_at = n.left_at THEN 1 ELSE 2 END
      FROM old_rows AS o JOIN new_rows AS n ON n.id = o.id) AS w
    CROSS JOIN LATERAL (SELECT CASE WHEN w.id = w.transfer_id THEN 'ADJUSTMENT/OUT' ELSE 'WITHDRAWAL/OUT' END,
        money_slot(w.id)
      UNION ALL SELECT 'WITHDRAWAL/OUT/LEFT', w.left_at >> 15
      WHERE w.left_at > 0 AND w.id IS DISTINCT FROM w.transfer_id) AS f (flow, slot)
    WHERE w.id = w.transfer_id OR w.hold_id IS NOT NULL AND w.status NOT IN (-3, -2);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER withdrawal_flow_added AFTER INSERT ON withdrawal REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION withdrawal_flow();
CREATE TRIGGER withdrawal_flow_changed AFTER UPDATE ON withdrawal
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION withdrawal_flow();

CREATE FUNCTION deposit_flow() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM money_flow_kept) THEN
    RETURN NULL;
  ELSIF TG_OP = 'INSERT' THEN
    PERFORM money_flow_add(array_agg(money_flow_of(CASE WHEN d.id = d.transfer_id THEN 'ADJUSTMENT/IN'
      ELSE 'DEPOSIT/IN' END, money_slot(d.transfer_id), d.initiator, d.asset_id, 0, 1, d.hi, d.lo)))
    FROM new_rows AS d WHERE d.transfer_id IS NOT NULL;
  ELSE
    PERFORM money_flow_add(array_agg(money_flow_of(CASE WHEN d.id = d.transfer_id THEN 'ADJUSTMENT/IN'
      ELSE 'DEPOSIT/IN' END, money_slot(d.transfer_id), d.initiator, d.asset_id, 1, d.number, d.hi, d.lo)))
    FROM (SELECT *, -1 AS number FROM old_rows UNION ALL SELECT *, 1 FROM new_rows) AS d
    WHERE d.transfer_id IS NOT NULL;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER deposit_flow_added AFTER INSERT ON deposit REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION deposit_flow();
CREATE TRIGGER deposit_flow_changed AFTER UPDATE ON deposit
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION deposit_flow();
