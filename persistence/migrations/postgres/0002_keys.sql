-- The keys of the service, wrapped by the master key. seq numbers the keys of
-- a purpose: its uniqueness decides who makes the next one. retired_at 0: never.

CREATE TABLE keys (
  id         TEXT PRIMARY KEY,
  purpose    TEXT NOT NULL,
  seq        BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  not_before BIGINT NOT NULL,
  retired_at BIGINT NOT NULL,
  wrapped    BYTEA NOT NULL,
  master_id  TEXT NOT NULL,
  UNIQUE (purpose, seq)
);
