-- What an identity was confirmed with, so that a reviewer sees whether the account
-- still is that person (D-KYC-11). '' and FALSE: it was confirmed before this was kept.

ALTER TABLE user_identity ADD COLUMN full_name TEXT NOT NULL DEFAULT '';
ALTER TABLE user_identity ADD COLUMN birth_date TEXT NOT NULL DEFAULT '';
ALTER TABLE user_identity ADD COLUMN registered BOOLEAN NOT NULL DEFAULT FALSE;
