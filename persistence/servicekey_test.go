package persistence

import (
	"testing"

	"castellan/domain/servicekey"
	"castellan/domain/servicekey/servicekeytest"
)

func TestServiceKeyStore(t *testing.T) {
	suite(t, servicekeytest.Run, func(db *DB) servicekey.Store { return NewServiceKeys(db) }, "service_key")
}
