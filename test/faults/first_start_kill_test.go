package faults

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"castellan/internal/blackbox"
)

// Killed at any moment of its first start, the service comes up at the next one, with one set of keys and
// seeds and with working logins.
func TestKillDuringFirstStart(t *testing.T) {
	t.Parallel()
	for _, kind := range blackbox.Databases {
		for round := range firstStarts {
			t.Run(fmt.Sprint(kind, round), func(t *testing.T) {
				t.Parallel()
				s := blackbox.NewSite(t, kind)
				for range 3 {
					n := s.Begin()
					time.Sleep(time.Duration(20+rand.IntN(200)) * time.Millisecond)
					n.Kill()
				}
				n := s.Start()
				for clause, want := range map[string]int{"users": 2, "mfa_method": 4, "mfa_action": 9,
					"keys WHERE purpose = 'signing'": 1} {
					s.Has(want, clause)
				}
				blackbox.Admin(t, s, n)
				n.Session(t, s.Seeded("user"))
			})
		}
	}
}
