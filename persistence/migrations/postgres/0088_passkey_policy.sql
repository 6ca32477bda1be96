-- The policy options phishingResistant and passkeyAlone (D-AUTH-18).

ALTER TABLE mfa_policy ADD COLUMN phishing_resistant BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE mfa_policy ADD COLUMN passkey_alone BOOLEAN NOT NULL DEFAULT FALSE;
