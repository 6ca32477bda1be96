-- The version of what decides whether an account may move money, and the instants of its last change of credentials and
-- of its last alarm; NULL: never. A program without these columns leaves them as they are.

ALTER TABLE users ADD COLUMN money_version BIGINT;
ALTER TABLE users ADD COLUMN credentials_at BIGINT;
ALTER TABLE users ADD COLUMN alarmed_at BIGINT;
