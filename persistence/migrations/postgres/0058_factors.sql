-- Wrong values of a second factor one after the other, without a window, and the
-- factors that they switched off, as bits (D-2FA-13).

ALTER TABLE attempt_budget ADD COLUMN otp_row BIGINT NOT NULL DEFAULT 0;
ALTER TABLE attempt_budget ADD COLUMN totp_row BIGINT NOT NULL DEFAULT 0;
ALTER TABLE users ADD COLUMN factors_off BIGINT NOT NULL DEFAULT 0;
