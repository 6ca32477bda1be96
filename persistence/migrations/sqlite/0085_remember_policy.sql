-- The policy option remember (D-AUTH-17): for how many days a client may be remembered; 0: never.

ALTER TABLE mfa_policy ADD COLUMN remember INTEGER NOT NULL DEFAULT 0;
ALTER TABLE mfa_policy ADD COLUMN remember_anyway BOOLEAN NOT NULL DEFAULT FALSE;
