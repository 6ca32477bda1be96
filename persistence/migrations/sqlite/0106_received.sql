-- A reported transfer is found in every spelling of its hash and its address (D-INT-05), also if a program stored it
-- that knows no canonical form. The first index has most spellings; the second one has the rows with other characters.

CREATE INDEX deposit_received ON deposit (asset_id,
  replace(lower(trim(tx_id, char(9, 10, 11, 12, 13, 32))), '0x', ''),
  replace(lower(trim(to_address, char(9, 10, 11, 12, 13, 32))), '0x', ''))
  WHERE external_id <> '';
CREATE INDEX deposit_unusual ON deposit (asset_id)
  WHERE external_id <> ''
  AND (trim(tx_id, char(9, 10, 11, 12, 13, 32)) GLOB '*[^!-~]*'
    OR trim(to_address, char(9, 10, 11, 12, 13, 32)) GLOB '*[^!-~]*');
