-- Subjects of other login services that are accounts here (D-EXT-12).

CREATE TABLE user_link (
  id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  issuer     TEXT NOT NULL,
  subject    TEXT NOT NULL,
  user_id    TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  UNIQUE (issuer, subject)
);
