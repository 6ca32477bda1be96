//go:build !race

// The race detector needs memory and time for itself, so the limits of this test do not hold with it.

package access

import (
	"fmt"
	"testing"

	"castellan/internal/blackbox"
)

// Five hundred password changes arrive at once, at the full cost of a hash. As many as fit into the slots and
// the queue are served; the others get a Retry-After. The memory of the node grows with its slots, not with
// its callers (SEC-13, D-PWD-05). 500 concurrent hashes would take nine gigabytes.
func TestConcurrentPasswordChangesUseBoundedMemory(t *testing.T) {
	const (
		callers, slots = 500, 2
		memoryKiB      = 19456
		besides        = 64 << 10 // one request with its connection and buffers
		heap           = 16 << 20 // garbage that is not collected yet
	)
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		s.UsualHeap().Set("PASSWORD_ARGON2_MEMORY_KIB=", "PASSWORD_ARGON2_TIME=", "PASSWORD_QUEUE=16",
			fmt.Sprint("PASSWORD_HASH_SLOTS=", slots), "PASSWORD_QUEUE_WAIT=1m", "LIMITS_ENABLED=false",
			"HTTP_MAX_CONNECTIONS_PER_IP=0") // every caller may have a connection
		n := s.Start()
		demo := s.Seeded("user")
		who := n.Auth(t, demo)
		change := func() (blackbox.Answer, error) {
			return n.Try("POST", "/auth/password", map[string]string{"oldPassword": demo.Password,
				"password": "another-lantern-orchard", "passwordVerify": "another-lantern-orchard"}, who)
		}
		before := n.PeakMemory()
		served, refused := 0, 0
		for _, a := range blackbox.Crowd(t, callers, func(int) (blackbox.Answer, error) { return change() }) {
			switch {
			case a.Status == 200:
				served++
			case a.Status == 503 && a.Code() == "OVERLOADED" && a.Header.Get("Retry-After") != "":
				refused++
			case a.Status == 503 && a.Header.Get("Retry-After") != "": // its hash was made; the database is slow
				served++
			default:
				t.Errorf("answered %s", a)
			}
		}
		rise, most := n.PeakMemory()-before, slots*memoryKiB<<10+callers*besides+heap
		t.Logf("%d served, %d asked to retry; %d MiB more", served, refused, rise>>20)
		if rise > most {
			t.Errorf("the node took %d bytes, want at most %d", rise, most)
		}
		if served < slots+16 || refused == 0 {
			t.Errorf("%d served and %d refused: slots and queue hold %d", served, refused, slots+16)
		}
		if a, err := blackbox.Patiently(change); err != nil || a.Status != 200 {
			t.Errorf("afterwards: %s, %v", a, err)
		}
	})
}
