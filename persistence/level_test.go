package persistence

import (
	"testing"

	"castellan/domain/level"
	"castellan/domain/level/leveltest"
)

func TestLevelStore(t *testing.T) {
	suite(t, leveltest.Run, func(db *DB) level.Store { return NewLevels(db) })
}
