-- A reported transfer is found in every spelling of its hash and its address (D-INT-05), also if a program stored it
-- that knows no canonical form. The first index has most spellings; the second one has the rows with other characters.
-- They are built while programs serve (engine.DB.BuildIndexes).

CREATE INDEX CONCURRENTLY IF NOT EXISTS deposit_received ON deposit (asset_id,
  replace(lower(btrim(tx_id COLLATE "C", E' \t\n\x0b\f\r')), '0x', ''),
  replace(lower(btrim(to_address COLLATE "C", E' \t\n\x0b\f\r')), '0x', ''))
  WHERE external_id <> '';
CREATE INDEX CONCURRENTLY IF NOT EXISTS deposit_unusual ON deposit (asset_id)
  WHERE external_id <> ''
  AND (btrim(tx_id COLLATE "C", E' \t\n\x0b\f\r') ~ '[^!-~]'
    OR btrim(to_address COLLATE "C", E' \t\n\x0b\f\r') ~ '[^!-~]');
