package persistence

import (
	"testing"

	"castellan/domain/access/servicekey"
	"castellan/domain/access/servicekey/servicekeytest"
)

func TestServiceKeyStore(t *testing.T) {
	suite(t, servicekeytest.Run, func(db *DB) servicekey.Store { return NewServiceKeys(db) }, "service_key")
}
