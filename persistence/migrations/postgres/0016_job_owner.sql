-- Which runner took the job's last step.

ALTER TABLE job ADD COLUMN owner TEXT NOT NULL DEFAULT '';
