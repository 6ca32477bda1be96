-- What the operator who approved a held withdrawal has signed: the challenge and the digest of its intent; '' for none. A
-- program without these columns has no approvals.

ALTER TABLE withdrawal_approval ADD COLUMN challenge_id TEXT NOT NULL DEFAULT '';
ALTER TABLE withdrawal_approval ADD COLUMN intent_digest TEXT NOT NULL DEFAULT '';
