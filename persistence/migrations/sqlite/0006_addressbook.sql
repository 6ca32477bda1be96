-- What can be moved and where (section 2.5). A pair is what the interface calls
-- currencyOfNetwork.

CREATE TABLE currency (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  code       TEXT NOT NULL UNIQUE,
  name       TEXT NOT NULL,
  active     BOOLEAN NOT NULL,
  created_at BIGINT NOT NULL
);

CREATE TABLE currency_network (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  code       TEXT NOT NULL UNIQUE,
  name       TEXT NOT NULL,
  active     BOOLEAN NOT NULL,
  created_at BIGINT NOT NULL
);

CREATE TABLE currency_of_network (
  id              INTEGER PRIMARY KEY AUTOINCREMENT,
  currency_id     BIGINT NOT NULL REFERENCES currency (id),
  network_id      BIGINT NOT NULL REFERENCES currency_network (id),
  active          BOOLEAN NOT NULL,
  withdraw_enable BOOLEAN NOT NULL,
  created_at      BIGINT NOT NULL,
  UNIQUE (currency_id, network_id)
);

-- Withdrawal address books (section 2.10). The row of a book is what its
-- writers queue at; key is the address in the form in which it is compared
-- (D-WAD-06); address_at is since when the entry has its address.

CREATE TABLE withdrawal_book (
  user_id    TEXT PRIMARY KEY,
  changed_at BIGINT NOT NULL
);

CREATE TABLE withdrawal_address (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id     TEXT NOT NULL,
  name        TEXT NOT NULL,
  address     TEXT NOT NULL,
  key         TEXT NOT NULL,
  currency_id BIGINT NOT NULL REFERENCES currency (id),
  network_id  BIGINT NOT NULL REFERENCES currency_network (id),
  created_at  BIGINT NOT NULL,
  address_at  BIGINT NOT NULL,
  UNIQUE (user_id, name),
  UNIQUE (user_id, key)
);
