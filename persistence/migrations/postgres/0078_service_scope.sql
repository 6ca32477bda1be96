-- The actions of a service client's key, a JSON list, and the URL that is called with their outcomes (D-EXT-10).

ALTER TABLE service_key ADD COLUMN actions TEXT NOT NULL DEFAULT 'null';
ALTER TABLE service_key ADD COLUMN callback TEXT NOT NULL DEFAULT '';
