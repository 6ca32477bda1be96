-- The version of what decides whether an account may move money, and the instants of its last change of credentials and
-- of its last alarm; NULL: never. A program without these columns leaves them as they are.

ALTER TABLE users ADD COLUMN money_version INTEGER;
ALTER TABLE users ADD COLUMN credentials_at INTEGER;
ALTER TABLE users ADD COLUMN alarmed_at INTEGER;
