-- An account is found by its phone number without the dialling code (D-USR-02).

CREATE INDEX users_national ON users (substr(phone, length(country_code) + 2), id);
