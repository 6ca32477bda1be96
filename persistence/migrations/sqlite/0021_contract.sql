-- Contracts and their details (section 2.6). content is HTML, cleaned by the
-- policy of the name in policy.

CREATE TABLE contract (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  code       TEXT NOT NULL UNIQUE,
  name       TEXT NOT NULL,
  version    TEXT,
  active     BOOLEAN NOT NULL,
  created_at BIGINT NOT NULL
);

CREATE TABLE contract_detail (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  contract_id BIGINT NOT NULL REFERENCES contract (id),
  title       TEXT NOT NULL,
  content     TEXT NOT NULL,
  policy      TEXT NOT NULL,
  order_no    BIGINT NOT NULL,
  created_at  BIGINT NOT NULL,
  updated_at  BIGINT NOT NULL
);

CREATE INDEX contract_detail_order ON contract_detail (contract_id, order_no, id);
