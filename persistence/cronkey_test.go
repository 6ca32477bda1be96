package persistence

import (
	"testing"

	"castellan/domain/cronkey"
	"castellan/domain/cronkey/cronkeytest"
)

func TestCronKeyStore(t *testing.T) {
	suite(t, cronkeytest.Run, func(db *DB) cronkey.Store { return NewCronKeys(db) })
}
