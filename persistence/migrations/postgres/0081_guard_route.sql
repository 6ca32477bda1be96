-- Routes of the guard for gateways (D-EXT-11). display is a JSON list of the rows that the user
-- sees before approving.

CREATE TABLE guard_route (
  id          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  host        TEXT NOT NULL,
  method      TEXT NOT NULL,
  path        TEXT NOT NULL,
  mode        TEXT NOT NULL,
  action_code TEXT NOT NULL,
  display     TEXT NOT NULL,
  status      TEXT NOT NULL,
  created_at  BIGINT NOT NULL,
  updated_at  BIGINT NOT NULL,
  UNIQUE (host, method, path)
);
