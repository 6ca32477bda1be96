package access

import (
	"fmt"
	"sync"
	"testing"

	"castellan/internal/blackbox"
)

// Five hundred changes of a password at once, at the full price of a hash: as
// many as slots and queue hold are served, the others are told to come back, and
// the node grows by its slots and not by its callers (SEC-13, D-PWD-05). The 500
// hashes side by side would take nine gigabytes.
func TestMemoryOfManyPasswordChanges(t *testing.T) {
	const (
		callers, slots = 500, 2
		memoryKiB      = 19456
		besides        = 64 << 10 // of a request, its connection and its buffers
		heap           = 16 << 20 // garbage that is not collected yet
	)
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		s.Set(
			"PASSWORD_ARGON2_MEMORY_KIB=",
			"PASSWORD_ARGON2_TIME=",
			fmt.Sprint("PASSWORD_HASH_SLOTS=", slots),
			"PASSWORD_QUEUE=16",
			"PASSWORD_QUEUE_WAIT=1m",
			"LIMITS_ENABLED=false",
		)
		n := s.Start()
		demo := s.Seeded("user")
		xauth, _ := n.Session(t, demo)
		change := func() (blackbox.Answer, error) {
			return n.Try(
				"POST",
				"/auth/password",
				map[string]string{
					"oldPassword":    demo.Password,
					"password":       "another-lantern-orchard",
					"passwordVerify": "another-lantern-orchard",
				},
				blackbox.Headers{"x-auth": xauth},
			)
		}
		before := n.PeakMemory()
		var mu sync.Mutex
		served, refused := 0, 0
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				a, err := change()
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err != nil:
					t.Error(err)
				case a.Status == 200:
					served++
				case a.Status == 503 && a.Code() == "OVERLOADED" && a.Header.Get("Retry-After") != "":
					refused++
				default:
					t.Errorf("answered %s", a)
				}
			})
		}
		wg.Wait()
		rise, most := n.PeakMemory()-before, slots*memoryKiB<<10+callers*besides+heap
		t.Logf("%d served, %d told to come back; %d MiB more", served, refused, rise>>20)
		if rise > most {
			t.Errorf("the node took %d bytes, want at most %d", rise, most)
		}
		if served < slots+16 || refused == 0 {
			t.Errorf("%d served and %d refused: slots and queue hold %d", served, refused, slots+16)
		}
		if a, err := change(); err != nil || a.Status != 200 {
			t.Errorf("afterwards: %s, %v", a, err)
		}
	})
}
