-- Notifications in the accounts of users (D-ADM-04); read_at is 0 while one is not
-- read.

CREATE TABLE notification (
  id           TEXT NOT NULL PRIMARY KEY,
  user_id      TEXT NOT NULL,
  topic        TEXT NOT NULL,
  title        TEXT NOT NULL,
  body         TEXT NOT NULL,
  image_url    TEXT NOT NULL,
  click_action TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  read_at      BIGINT NOT NULL
);
CREATE INDEX notification_user ON notification (user_id, id);
CREATE INDEX notification_unread ON notification (user_id, id) WHERE read_at = 0;
