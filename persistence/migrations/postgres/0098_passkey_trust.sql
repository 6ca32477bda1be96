-- How far the registration of a passkey is trusted (D-AUTH-20). settling_since 0: settled, as every passkey of the time
-- before; -1: added by a release that does not know the column. restarted_at: the last change of a factor of the account
-- without a passkey, 0 for never.

ALTER TABLE passkey ADD COLUMN settling_since BIGINT NOT NULL DEFAULT -1;
ALTER TABLE passkey ADD COLUMN restarted_at BIGINT NOT NULL DEFAULT 0;
UPDATE passkey SET settling_since = 0;
