-- All fields of currencies, networks and pairs (section 4.7, the setup of assets). Numbers with decimals are two columns,
-- units and 10^-18 parts. What was there before may be deposited as it may be withdrawn.

ALTER TABLE currency ADD COLUMN network TEXT NOT NULL DEFAULT '';
ALTER TABLE currency ADD COLUMN image TEXT NOT NULL DEFAULT '';
ALTER TABLE currency ADD COLUMN png_image TEXT NOT NULL DEFAULT '';
ALTER TABLE currency ADD COLUMN market_data_id TEXT NOT NULL DEFAULT '';
ALTER TABLE currency ADD COLUMN market_listing_slug TEXT NOT NULL DEFAULT '';
ALTER TABLE currency ADD COLUMN deposit_enable BOOLEAN NOT NULL DEFAULT TRUE;
ALTER TABLE currency ADD COLUMN withdraw_enable BOOLEAN NOT NULL DEFAULT TRUE;
ALTER TABLE currency ADD COLUMN price_format_hi BIGINT NOT NULL DEFAULT 0 CHECK (price_format_hi BETWEEN 0 AND 999999999999999999);
ALTER TABLE currency ADD COLUMN price_format_lo BIGINT NOT NULL DEFAULT 0 CHECK (price_format_lo BETWEEN 0 AND 999999999999999999);
ALTER TABLE currency ADD COLUMN quantity_format_hi BIGINT NOT NULL DEFAULT 0 CHECK (quantity_format_hi BETWEEN 0 AND 999999999999999999);
ALTER TABLE currency ADD COLUMN quantity_format_lo BIGINT NOT NULL DEFAULT 0 CHECK (quantity_format_lo BETWEEN 0 AND 999999999999999999);
ALTER TABLE currency ADD COLUMN threshold_hi BIGINT NOT NULL DEFAULT 0 CHECK (threshold_hi BETWEEN 0 AND 999999999999999999);
ALTER TABLE currency ADD COLUMN threshold_lo BIGINT NOT NULL DEFAULT 0 CHECK (threshold_lo BETWEEN 0 AND 999999999999999999);
ALTER TABLE currency ADD COLUMN updated_at BIGINT NOT NULL DEFAULT 0;

ALTER TABLE currency_network ADD COLUMN kyt_name TEXT NOT NULL DEFAULT '';
ALTER TABLE currency_network ADD COLUMN updated_at BIGINT NOT NULL DEFAULT 0;

ALTER TABLE currency_of_network ADD COLUMN deposit_enable BOOLEAN NOT NULL DEFAULT TRUE;
ALTER TABLE currency_of_network ADD COLUMN deposit_address BOOLEAN NOT NULL DEFAULT TRUE;
ALTER TABLE currency_of_network ADD COLUMN screening_symbol TEXT NOT NULL DEFAULT '';
ALTER TABLE currency_of_network ADD COLUMN format_precision TEXT NOT NULL DEFAULT '18';
ALTER TABLE currency_of_network ADD COLUMN mint_address TEXT NOT NULL DEFAULT '';
ALTER TABLE currency_of_network ADD COLUMN wallet_provider_id BIGINT NOT NULL DEFAULT 0;
ALTER TABLE currency_of_network ADD COLUMN wallet_currency_id BIGINT NOT NULL DEFAULT 0;
ALTER TABLE currency_of_network ADD COLUMN provider_network_id BIGINT NOT NULL DEFAULT 0;
ALTER TABLE currency_of_network ADD COLUMN updated_at BIGINT NOT NULL DEFAULT 0;

UPDATE currency_of_network SET format_precision = (SELECT CASE code WHEN 'BTC' THEN '8' WHEN 'ETH' THEN '18'
  WHEN 'SOL' THEN '9' WHEN 'USDT' THEN '6' WHEN 'USDC' THEN '6' WHEN 'TRX' THEN '6' WHEN 'XRP' THEN '6' ELSE '18' END
  FROM currency WHERE currency.id = currency_id);
UPDATE currency SET network = CASE code WHEN 'USDT' THEN 'ETH' WHEN 'USDC' THEN 'SOL' ELSE code END;
