-- The link with which the first administrator is made. It has at most one row, with the id 1.

CREATE TABLE setup_link (
  id         BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),
  sum_key    TEXT   NOT NULL,
  sum        BYTEA  NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  spent_key  TEXT   NOT NULL,
  spent      BYTEA  NOT NULL,
  user_id    TEXT   NOT NULL
);
