// Package usertest creates accounts for tests.
package usertest

import (
	"fmt"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/storetest"
)

// Now is the current instant of the suites.
var Now = time.UnixMilli(1_700_000_000_000).UTC()

// Sample returns the n-th sample account, with the hash "hash-n".
func Sample(n int) user.Add {
	u := user.New(fmt.Sprintf("01USER%020d", n), Now.Add(time.Duration(n)*time.Millisecond))
	u.Name, u.Surname, u.Language = "Ayşe", "O'Neil ?", "tr"
	u.CountryCode, u.Phone, u.Email = "90", fmt.Sprintf("+90532%07d", n), fmt.Sprintf("user%d@example.com", n)
	return user.Add{User: u, PasswordHash: fmt.Sprint("hash-", n)}
}

// WithTwo adds the first two sample accounts to the stores that open returns.
func WithTwo[S any](open storetest.Open[S]) storetest.Open[S] {
	return func(t *testing.T) (S, commit.Committer) {
		s, c := open(t)
		storetest.Must(t, c.Commit(t.Context(), Sample(1), Sample(2)))
		return s, c
	}
}
