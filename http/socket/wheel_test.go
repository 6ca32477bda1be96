package socket

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// Every due socket is handled once, in time and not before, at any position of the wheel.
func TestWheel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(&owner{}, openSealed, time.Now, slog.New(slog.DiscardHandler), nil)
		defer h.Close(t.Context())
		for _, life := range []time.Duration{0, 1, tick - 1, tick, tick + 1, 10 * time.Second, patience, 3 * time.Minute} {
			for range 3 {
				w := &world{t: t, hub: h}
				w.join("c1", life)
				began := time.Now()
				for h.Live() > 0 && time.Since(began) < time.Hour {
					time.Sleep(10 * time.Millisecond)
				}
				if took := time.Since(began); took < life || took > life+tick+10*time.Millisecond {
					t.Errorf("a life of %v took %v", life, took)
				}
				time.Sleep(7*time.Second + 77*time.Millisecond)
			}
		}
		time.Sleep(places * tick)
		h.wheel.mu.Lock()
		defer h.wheel.mu.Unlock()
		for i, p := range h.wheel.place {
			if len(p) > 0 {
				t.Errorf("%d sockets that have ended are kept in place %d", len(p), i)
			}
		}
	})
}
