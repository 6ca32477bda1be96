-- The one-time token of a completed password reset: one for each user, so that
-- a later reset takes the place of an earlier one. id is the keyed hash of the
-- token's jti, cv the credential version under which it was made.

CREATE TABLE reset_token (
  user_id    TEXT PRIMARY KEY,
  id         TEXT NOT NULL UNIQUE,
  cv         BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
);
CREATE INDEX reset_token_expires ON reset_token (expires_at);
