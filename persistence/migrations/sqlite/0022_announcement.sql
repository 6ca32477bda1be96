-- Announcements (section 2.11). titles, messages, htmls and routes are JSON by
-- language, route is JSON; policy names the one that cleaned html and htmls. A
-- picture is the key of its file.

CREATE TABLE announcement (
  id              INTEGER PRIMARY KEY AUTOINCREMENT,
  slug            TEXT NOT NULL UNIQUE,
  title           TEXT NOT NULL,
  titles          TEXT NOT NULL,
  message         TEXT NOT NULL,
  messages        TEXT NOT NULL,
  html            TEXT,
  htmls           TEXT NOT NULL,
  policy          TEXT NOT NULL,
  route           TEXT,
  routes          TEXT NOT NULL,
  start_at        BIGINT NOT NULL,
  end_at          BIGINT NOT NULL,
  active          BOOLEAN NOT NULL,
  priority        BIGINT NOT NULL,
  order_no        BIGINT,
  expanded        BOOLEAN,
  pinned          BOOLEAN,
  slider          BOOLEAN,
  slider_name     TEXT NOT NULL,
  type            BIGINT,
  client_type     TEXT,
  android_picture TEXT NOT NULL,
  ios_picture     TEXT NOT NULL,
  web_picture     TEXT NOT NULL,
  created_by      TEXT NOT NULL,
  updated_by      TEXT NOT NULL,
  created_at      BIGINT NOT NULL,
  updated_at      BIGINT NOT NULL
);
