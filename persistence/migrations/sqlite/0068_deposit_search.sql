-- A deposit that waits is found by the hash of its transaction and by the address that
-- it came to.

CREATE INDEX deposit_waiting_tx ON deposit (tx_id, id) WHERE status < 0;
CREATE INDEX deposit_waiting_address ON deposit (to_address, id) WHERE status < 0;
