-- Remembered clients (D-AUTH-17). A row counts as one method of an action, for the holder of the key with this
-- thumbprint (RFC 7638), while the account has the credential version cv. A client that is not remembered has no row.

CREATE TABLE remembered (
  id           TEXT PRIMARY KEY,
  user_id      TEXT NOT NULL,
  thumbprint   TEXT NOT NULL,
  action       TEXT NOT NULL,
  method       TEXT NOT NULL,
  cv           BIGINT NOT NULL,
  created_at   BIGINT NOT NULL,
  last_used_at BIGINT NOT NULL,
  expires_at   BIGINT NOT NULL,
  ip           TEXT NOT NULL,
  description  TEXT NOT NULL
);

CREATE UNIQUE INDEX remembered_client ON remembered (user_id, thumbprint, action);
