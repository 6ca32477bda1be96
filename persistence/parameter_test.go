package persistence

import (
	"testing"

	"castellan/domain/kit/parameter"
	"castellan/domain/kit/parameter/parametertest"
)

func TestParameterStore(t *testing.T) {
	suite(t, parametertest.Run, func(db *DB) parameter.Store { return NewParameters(db) }, "parameter")
}
