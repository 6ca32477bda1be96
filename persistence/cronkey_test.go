package persistence

import (
	"testing"

	"castellan/domain/access/cronkey"
	"castellan/domain/access/cronkey/cronkeytest"
)

func TestCronKeyStore(t *testing.T) {
	suite(t, cronkeytest.Run, func(db *DB) cronkey.Store { return NewCronKeys(db) })
}
