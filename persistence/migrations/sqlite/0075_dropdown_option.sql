-- The order of the options and whether they are offered (D-INT-15).

ALTER TABLE dropdown_option ADD COLUMN order_no BIGINT NOT NULL DEFAULT 0;
ALTER TABLE dropdown_option ADD COLUMN active BOOLEAN NOT NULL DEFAULT TRUE;
ALTER TABLE dropdown_option ADD COLUMN updated_at BIGINT NOT NULL DEFAULT 0;
UPDATE dropdown_option SET order_no = id;
