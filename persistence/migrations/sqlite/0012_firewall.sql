-- The rules of the firewall (section 2.3). Lists are JSON kept as text, in the
-- order in which they were sent. A label is unique over all applications.

CREATE TABLE firewall_rule (
  id            INTEGER PRIMARY KEY AUTOINCREMENT,
  app_id        TEXT NOT NULL,
  label         TEXT NOT NULL UNIQUE,
  type          TEXT NOT NULL,
  period_ms     BIGINT,
  max_requests  BIGINT,
  expire_at     BIGINT NOT NULL,
  entity_type   TEXT NOT NULL,
  entities      TEXT NOT NULL,
  resources     TEXT NOT NULL,
  all_entities  BOOLEAN NOT NULL,
  all_resources BOOLEAN NOT NULL,
  status        TEXT NOT NULL,
  dry_run       BOOLEAN NOT NULL,
  created_at    BIGINT NOT NULL,
  updated_at    BIGINT NOT NULL,
  CHECK (type <> 'rate_limit' OR period_ms IS NOT NULL AND max_requests IS NOT NULL)
);
