-- What administrators change of accounts (section 4.12 of the interface): the
-- history of mail addresses (D-USR-07; old_email is '' where there was none), and
-- the index by which the accounts of a level are counted.

CREATE TABLE email_change (
  id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  user_id    TEXT NOT NULL,
  old_email  TEXT NOT NULL,
  new_email  TEXT NOT NULL,
  changed_by TEXT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX email_change_user ON email_change (user_id, created_at, id);

CREATE INDEX users_level ON users (level);
