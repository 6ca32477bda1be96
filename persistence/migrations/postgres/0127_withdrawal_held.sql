-- Why and since when an entry of the queue is held, and when it was last resumed. These are columns of withdrawal:
-- 0.9 reads every column of withdrawal_queue and fails at one that it does not know. It leaves these as they are.

ALTER TABLE withdrawal ADD COLUMN hold_reason TEXT NOT NULL DEFAULT '';
ALTER TABLE withdrawal ADD COLUMN held_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE withdrawal ADD COLUMN resumed_at BIGINT NOT NULL DEFAULT 0;
