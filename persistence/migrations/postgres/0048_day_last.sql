-- The last day that is closed is found without reading all of them.

CREATE INDEX day_last ON day (day);
