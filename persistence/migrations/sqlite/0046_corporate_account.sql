-- An account that was made for a company's user (section 4.20 of the interface).
-- must_reset refuses its password until that is set anew (D-COR-03). campaign_*
-- say over which channels campaigns may come.

ALTER TABLE users ADD COLUMN must_reset BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE users ADD COLUMN campaign_sms BOOLEAN NOT NULL DEFAULT TRUE;
ALTER TABLE users ADD COLUMN campaign_mail BOOLEAN NOT NULL DEFAULT TRUE;
ALTER TABLE users ADD COLUMN campaign_push BOOLEAN NOT NULL DEFAULT TRUE;
