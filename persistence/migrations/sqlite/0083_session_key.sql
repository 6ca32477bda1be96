-- Keys of sessions that are bound to one (D-AUTH-16): the thumbprint of RFC 7638. A session without a
-- key has no row, so that its login costs nothing more.

CREATE TABLE session_key (
  id         TEXT PRIMARY KEY,
  thumbprint TEXT NOT NULL
);
