-- What the money policy knows of a movement: until when and by which rules an entry of the queue is held, its
-- destination, the instant of its last claim and the facts that it was judged by. A program without these columns
-- leaves them as they are: its withdrawals have no destination and count in no sum of one.

ALTER TABLE withdrawal ADD COLUMN hold_until BIGINT NOT NULL DEFAULT 0;
ALTER TABLE withdrawal ADD COLUMN hold_rules TEXT NOT NULL DEFAULT '';
ALTER TABLE withdrawal ADD COLUMN destination TEXT NOT NULL DEFAULT '';
ALTER TABLE withdrawal ADD COLUMN owner_resistant BOOLEAN NOT NULL DEFAULT false;
ALTER TABLE withdrawal ADD COLUMN left_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE withdrawal ADD COLUMN facts TEXT NOT NULL DEFAULT '';
ALTER TABLE deposit ADD COLUMN facts TEXT NOT NULL DEFAULT '';

-- Operators who approved a held withdrawal, with the digest of its order.
CREATE TABLE withdrawal_approval (
  withdrawal_id TEXT NOT NULL,
  user_id       TEXT NOT NULL,
  at            BIGINT NOT NULL,
  order_digest  TEXT NOT NULL,
  PRIMARY KEY (withdrawal_id, user_id)
);

-- A gate orders the movements that count in the sums of an account or of a destination.
CREATE TABLE money_gate (
  id         TEXT NOT NULL PRIMARY KEY,
  changed_at BIGINT NOT NULL,
  version    BIGINT NOT NULL
);
