-- Marks the schema of release 0.10. A program refuses a schema with the markers of two releases that it does not know.
-- Programs of 0.9 run beside every migration of this release, from 0096 on (D-EXT-18).

SELECT 1;
