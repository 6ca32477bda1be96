-- Pushes that were sent, for the bounds on them (D-EXT-06): they count longer than
-- their challenges are kept. state is 0 sent, 1 approved, 2 denied. The denials that
-- pause pushes now go on counting. The index challenge_denied serves the version
-- before this one.

CREATE TABLE push (
  challenge_id TEXT PRIMARY KEY,
  user_id      TEXT NOT NULL,
  number       BIGINT NOT NULL,
  sent_at      BIGINT NOT NULL,
  state        SMALLINT NOT NULL,
  settled_at   BIGINT NOT NULL
);
CREATE UNIQUE INDEX push_user ON push (user_id, number);

INSERT INTO push (challenge_id, user_id, number, sent_at, state, settled_at)
SELECT id, user_id, row_number() OVER (PARTITION BY user_id ORDER BY touched_at, id), created_at, 2, touched_at
FROM challenge WHERE state = 3;
