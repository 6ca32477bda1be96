package kit_test

import (
	"testing"

	"castellan/domain/kit/parameter"
	"castellan/domain/kit/parameter/parametertest"
	"castellan/persistence"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

func TestParameterStore(t *testing.T) {
	persistencetest.RunBoth(t, parametertest.Run,
		func(db *persistence.DB) parameter.Store { return kit.NewParameters(db) }, "parameter")
}
