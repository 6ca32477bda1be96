-- Why and since when an entry of the queue is held, and when it was last resumed. A program without these columns leaves
-- them as they are.

ALTER TABLE withdrawal_queue ADD COLUMN hold_reason TEXT NOT NULL DEFAULT '';
ALTER TABLE withdrawal_queue ADD COLUMN held_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE withdrawal_queue ADD COLUMN resumed_at INTEGER NOT NULL DEFAULT 0;
