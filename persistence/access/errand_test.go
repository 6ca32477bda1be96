package access_test

import (
	"testing"

	"castellan/domain/access/errand"
	"castellan/domain/access/errand/errandtest"
	"castellan/persistence"
	"castellan/persistence/access"
	"castellan/persistence/persistencetest"
)

func TestErrandStore(t *testing.T) {
	persistencetest.RunBoth(t, errandtest.Run,
		func(db *persistence.DB) errand.Store { return access.NewErrands(db) }, "errand")
}
