-- Requests that a second person must approve (D-EXT-08). sealed is the request, NULL
-- once it is decided; result is sealed too. Times are ms; decided_at 0: not decided. A
-- request that has expired stays PENDING.

CREATE TABLE four_eyes (
  id           TEXT NOT NULL PRIMARY KEY,
  method       TEXT NOT NULL,
  path         TEXT NOT NULL,
  summary      TEXT NOT NULL,
  requested_by TEXT NOT NULL,
  requested_at BIGINT NOT NULL,
  expires_at   BIGINT NOT NULL,
  status       TEXT NOT NULL,
  decided_by   TEXT NOT NULL,
  decided_at   BIGINT NOT NULL,
  reason       TEXT NOT NULL,
  sealed       BYTEA,
  result       BYTEA
);
CREATE INDEX four_eyes_status ON four_eyes (status, id);
