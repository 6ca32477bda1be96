-- The digest of the order of a withdrawal and the methods with which its owner approved it, and which worker has claimed
-- it, as a hash, and when. Empty in rows of programs without these columns.

ALTER TABLE withdrawal ADD COLUMN order_digest TEXT NOT NULL DEFAULT '';
ALTER TABLE withdrawal ADD COLUMN owner_methods TEXT NOT NULL DEFAULT '';
ALTER TABLE withdrawal ADD COLUMN claim TEXT NOT NULL DEFAULT '';
ALTER TABLE withdrawal ADD COLUMN claimed_at INTEGER NOT NULL DEFAULT 0;
