-- Operations of other services that a challenge approves (D-EXT-10). id is that of the challenge. status 0 is pending;
-- settled_at and redeemed_at are 0 until then. payload is sealed, and null without one or after the redemption.

CREATE TABLE errand (
  id          TEXT PRIMARY KEY,
  service     TEXT NOT NULL,
  reference   TEXT NOT NULL,
  digest      BYTEA NOT NULL,
  action      TEXT NOT NULL,
  user_id     TEXT NOT NULL,
  status      SMALLINT NOT NULL,
  created_at  BIGINT NOT NULL,
  expires_at  BIGINT NOT NULL,
  settled_at  BIGINT NOT NULL,
  intent      TEXT NOT NULL,
  methods     TEXT NOT NULL,
  payload     BYTEA,
  redeemed_at BIGINT NOT NULL,
  redemption  TEXT NOT NULL
);
CREATE UNIQUE INDEX errand_reference ON errand (service, reference);
CREATE INDEX errand_pending ON errand (expires_at) WHERE status = 0;
