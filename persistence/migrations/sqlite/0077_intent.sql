-- Signed intent (D-EXT-09). A challenge holds its sealed document, null for one of an older release. evidence holds the
-- ended challenges that were deleted from challenge, for as long as the audit keeps them. sign_intent is the policy
-- option intent.

ALTER TABLE challenge ADD COLUMN intent BLOB;
ALTER TABLE mfa_policy ADD COLUMN sign_intent BOOLEAN NOT NULL DEFAULT FALSE;

CREATE TABLE evidence (
  id         TEXT PRIMARY KEY,
  user_id    TEXT NOT NULL,
  action     TEXT NOT NULL,
  flow       TEXT NOT NULL,
  state      SMALLINT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  version    BIGINT NOT NULL,
  body       TEXT NOT NULL,
  intent     BLOB NOT NULL
);
