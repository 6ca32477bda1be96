-- The levels of accounts with their limits in TRY, as JSON (section 2.7 of the
-- interface, D-KYC-08), and those of a new installation.

CREATE TABLE user_level (
  id      BIGINT NOT NULL PRIMARY KEY,
  label   TEXT NOT NULL UNIQUE,
  special BOOLEAN NOT NULL,
  limits  TEXT NOT NULL
);

INSERT INTO user_level (id, label, special, limits) VALUES
  (0, 'Unconfirmed', FALSE,
   '{"sendLimitTRYDaily":0,"sendLimitCryptoDaily":0,"sendLimitTRYMonthly":0,
   "sendLimitCryptoMonthly":0,"receiveLimitTRYDaily":0,"receiveLimitCryptoDaily":0}'),
  (1, 'Confirmed', FALSE,
   '{"sendLimitTRYDaily":50000,"sendLimitCryptoDaily":50000,"sendLimitTRYMonthly":500000,
   "sendLimitCryptoMonthly":500000,"receiveLimitTRYDaily":100000,"receiveLimitCryptoDaily":100000}'),
  (2, 'Extended', FALSE,
   '{"sendLimitTRYDaily":500000,"sendLimitCryptoDaily":500000,"sendLimitTRYMonthly":5000000,
   "sendLimitCryptoMonthly":5000000,"receiveLimitTRYDaily":1000000,"receiveLimitCryptoDaily":1000000}'),
  (10, 'Corporate', TRUE,
   '{"sendLimitTRYDaily":5000000,"sendLimitCryptoDaily":5000000,"sendLimitTRYMonthly":50000000,
   "sendLimitCryptoMonthly":50000000,"receiveLimitTRYDaily":10000000,"receiveLimitCryptoDaily":10000000}');
