-- What an account received and sent of late (D-USR-09). What moved its amount names
-- the transfer, whose id begins with its instant: a period is a range of the index,
-- which holds all that is summed.

CREATE INDEX deposit_moved ON deposit (user_id, transfer_id, asset_id, hi, lo) WHERE transfer_id IS NOT NULL;
CREATE INDEX withdrawal_moved ON withdrawal (user_id, transfer_id, asset_id, hi, lo) WHERE transfer_id IS NOT NULL;
