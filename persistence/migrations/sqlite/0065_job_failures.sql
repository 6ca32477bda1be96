-- How many items of a job failed for which reason: JSON of job.Failure, '' for none.

ALTER TABLE job ADD COLUMN failures TEXT NOT NULL DEFAULT '';
