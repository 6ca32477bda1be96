-- Requests that a route of gateways refuses, or would refuse after its trial, because some servers take the spelling of
-- their path for that of the route (D-EXT-11). They are counted by the hour and kept for a day, for castellan doctor.
-- An id is the hour in milliseconds of 13 digits, the id of the route and the servers.

CREATE TABLE guard_spelled (
  id       TEXT PRIMARY KEY,
  route_id BIGINT NOT NULL,
  reader   TEXT NOT NULL,
  hour     BIGINT NOT NULL,
  sent     TEXT NOT NULL,
  count    BIGINT NOT NULL
);
