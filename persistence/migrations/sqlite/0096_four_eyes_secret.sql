-- An approval stores no secret of the answer (D-EXT-08). Earlier versions kept the new keys of service clients, sealed.

UPDATE four_eyes SET result = NULL
WHERE status = 'APPROVED' AND method = 'POST' AND path IN ('/admin/service-keys', '/admin/service-keys/rotate');
