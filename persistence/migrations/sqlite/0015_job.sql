-- Background jobs and their items. next_at is when a job is due, and 0 when it is
-- over; params are sealed; instants are milliseconds since 1970, 0 for none.

CREATE TABLE job (
  id          TEXT NOT NULL PRIMARY KEY,
  kind        TEXT NOT NULL,
  key         TEXT NOT NULL,
  state       TEXT NOT NULL,
  version     BIGINT NOT NULL,
  cancel      BOOLEAN NOT NULL,
  cursor      TEXT NOT NULL,
  total       BIGINT NOT NULL,
  done        BIGINT NOT NULL,
  failed      BIGINT NOT NULL,
  unknown     BIGINT NOT NULL,
  skipped     BIGINT NOT NULL,
  attempts    BIGINT NOT NULL,
  next_at     BIGINT NOT NULL,
  beat_at     BIGINT NOT NULL,
  params      BLOB NOT NULL,
  result      TEXT NOT NULL,
  error       TEXT NOT NULL,
  actor_id    TEXT NOT NULL,
  created_at  BIGINT NOT NULL,
  started_at  BIGINT NOT NULL,
  finished_at BIGINT NOT NULL,
  UNIQUE (kind, key)
);
CREATE INDEX job_due ON job (next_at) WHERE next_at > 0;
CREATE INDEX job_kind ON job (kind, id);
CREATE INDEX job_state ON job (state, id);
CREATE INDEX job_kind_state ON job (kind, state, id);

CREATE TABLE job_item (
  job_id TEXT NOT NULL REFERENCES job (id),
  n      BIGINT NOT NULL,
  ref    TEXT NOT NULL,
  state  INTEGER NOT NULL,
  error  TEXT NOT NULL,
  PRIMARY KEY (job_id, n),
  UNIQUE (job_id, ref)
);
CREATE INDEX job_item_unknown ON job_item (job_id, n) WHERE state = 4;
