-- Keys of service clients (D-INT-01). hash and old_hash are keyed hashes of name and
-- secret; networks is a JSON list.

CREATE TABLE service_key (
  id           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name         TEXT NOT NULL UNIQUE,
  role         TEXT NOT NULL,
  networks     TEXT NOT NULL,
  hash_key     TEXT NOT NULL,
  hash         BYTEA NOT NULL,
  old_hash_key TEXT NOT NULL,
  old_hash     BYTEA,
  old_until    BIGINT NOT NULL,
  rotated_at   BIGINT NOT NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL
);
