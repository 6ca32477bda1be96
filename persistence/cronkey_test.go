package persistence

import (
	"testing"

	"castellan/domain/cronkey/cronkeytest"
)

func TestCronKeyStore(t *testing.T) {
	both(t, func(t *testing.T, db *DB) { cronkeytest.TestStore(t, NewCronKeys(db), db) })
}
