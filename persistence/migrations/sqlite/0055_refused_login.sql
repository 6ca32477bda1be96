-- Refused logins with identifiers that nobody has, counted by site and minute until
-- they are folded into an audit row. The id is the minute in UTC and the site.
CREATE TABLE refused_login (
  id    TEXT PRIMARY KEY,
  count BIGINT NOT NULL
);
