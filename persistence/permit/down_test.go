package permit_test

import (
	"testing"

	"castellan/persistence/permit"
	"castellan/persistence/persistencetest"
)

// A store whose caller has left answers with an error, and with nothing else.
func TestCallerHasLeft(t *testing.T) {
	db := persistencetest.SQLite(t)
	persistencetest.Down(t, nil, permit.NewCronKeys(db), permit.NewResources(db), permit.NewServiceKeys(db))
}
