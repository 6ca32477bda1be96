-- The tag or memo of an entry of an address book, "" for none; the key of an entry with a tag holds it, too. A program
-- without this column enters addresses without a tag.

ALTER TABLE withdrawal_address ADD COLUMN address_tag TEXT NOT NULL DEFAULT '';
