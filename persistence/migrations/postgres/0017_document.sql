-- Documents of users (section 2.8 of the interface). Their bytes are sealed files
-- (docs/operations.md, "Files"); path names them. The texts are JSON by language.
-- document_quota sums what a user's documents take, in bytes.

CREATE TABLE document (
  id                TEXT PRIMARY KEY,
  user_id           TEXT NOT NULL,
  name              TEXT NOT NULL,
  mime_type         TEXT NOT NULL,
  type              BIGINT NOT NULL,
  description       TEXT,
  name_texts        TEXT NOT NULL,
  description_texts TEXT NOT NULL,
  status            TEXT NOT NULL,
  reason            TEXT,
  path              TEXT NOT NULL UNIQUE,
  size              BIGINT NOT NULL,
  created_at        BIGINT NOT NULL,
  updated_at        BIGINT NOT NULL
);

CREATE INDEX document_user ON document (user_id, id);
CREATE INDEX document_type ON document (type, id);
CREATE INDEX document_status ON document (status, id);
CREATE INDEX document_reason ON document (reason, id);

CREATE TABLE document_quota (
  user_id TEXT PRIMARY KEY,
  bytes   BIGINT NOT NULL
);
