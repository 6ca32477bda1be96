package delivery_test

import (
	"testing"

	"castellan/persistence/delivery"
	"castellan/persistence/persistencetest"
)

// A store whose caller has left answers with an error, and with nothing else.
func TestCallerHasLeft(t *testing.T) {
	db := persistencetest.SQLite(t)
	persistencetest.Down(t, nil,
		delivery.NewNotifications(db), delivery.NewOutbox(db))
}
