-- The audit rows of transfers by the id of the transfer, with its digest: the
-- verification of the ledger reads them in step with the transfers.

CREATE INDEX audit_transfer ON audit (target COLLATE "C", detail) WHERE action = 'LEDGER_TRANSFER';
