-- The configuration of the second factor (section 2.2). Texts and tuples are
-- JSON kept as text, so that the keys of info_table_headers keep their order.

CREATE TABLE mfa_method (
  id             INTEGER PRIMARY KEY AUTOINCREMENT,
  code           TEXT NOT NULL UNIQUE,
  expire_ms      BIGINT NOT NULL,
  renew_start_ms BIGINT NOT NULL,
  created_at     BIGINT NOT NULL,
  updated_at     BIGINT NOT NULL
);

CREATE TABLE mfa_action (
  id                 INTEGER PRIMARY KEY AUTOINCREMENT,
  code               TEXT NOT NULL UNIQUE,
  title              TEXT NOT NULL,
  info_table_headers TEXT NOT NULL,
  created_at         BIGINT NOT NULL,
  updated_at         BIGINT NOT NULL
);

-- An expired policy still takes its place (D-MFA-08). entity_id is '' for
-- GENERAL, so that there is one of them per action and type.
CREATE TABLE mfa_policy (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  action_code TEXT NOT NULL,
  name        TEXT NOT NULL,
  entity_type TEXT NOT NULL,
  entity_id   TEXT NOT NULL,
  expire_at   BIGINT NOT NULL,
  type        TEXT NOT NULL,
  methods     TEXT NOT NULL,
  required    INTEGER NOT NULL,
  preferred   INTEGER,
  created_at  BIGINT NOT NULL,
  updated_at  BIGINT NOT NULL,
  UNIQUE (action_code, type, entity_type, entity_id),
  CHECK (entity_type <> 'GENERAL' OR entity_id = '')
);
