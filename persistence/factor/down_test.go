package factor_test

import (
	"testing"

	"castellan/persistence/factor"
	"castellan/persistence/persistencetest"
)

// A store whose caller has left answers with an error, and with nothing else.
func TestCallerHasLeft(t *testing.T) {
	db := persistencetest.SQLite(t)
	persistencetest.Down(t, nil, factor.NewChallenges(db), factor.NewMFA(db), factor.NewPasskeys(db),
		factor.NewRemembered(db))
}
