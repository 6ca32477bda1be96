package pause

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A request that was under way when the process was paused takes no effect, whether or not the beat has detected the
// pause; a later request does.
func TestPauseDetector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		time.Sleep(time.Minute)
		if err := s.Check(t.Context()); err != nil || s.Resumed() {
			t.Errorf("a slow start: %v", err)
		}
		s.Beat()
		request, cancel := context.WithTimeout(s.Context(), time.Minute)
		defer cancel()
		expect := func(what string, ctx context.Context, stopped, woke bool) {
			t.Helper()
			if got := s.Check(ctx); (got != nil) != stopped || s.Resumed() != woke {
				t.Errorf("%s: %v, woke %v", what, got, s.Resumed())
			}
		}
		for range 20 { // a busy machine
			time.Sleep(clientPatience)
			s.Beat()
		}
		expect("a busy machine", request, false, false)
		time.Sleep(6 * time.Second)
		expect("before the beat", request, true, true)
		expect("a request without an owner before the beat", t.Context(), true, true)
		s.Beat()
		expect("after the beat", request, true, true)
		expect("a request without an owner after it", t.Context(), false, true)
		later, cancel := context.WithTimeout(s.Context(), time.Minute)
		defer cancel()
		expect("a later request", later, false, true)
		for range 40 {
			time.Sleep(100 * time.Millisecond)
			s.Beat()
		}
		expect("much later", later, false, false)
		cancel()
		if s.Check(later) != nil {
			t.Error("a request that just ended was stopped")
		}
		ctx, end := context.WithCancel(t.Context())
		go s.Run(ctx)
		time.Sleep(time.Minute)
		synctest.Wait()
		expect("while it runs", t.Context(), false, false)
		end()
		synctest.Wait()
		time.Sleep(time.Hour)
		expect("after its end", t.Context(), false, false)
	})
}
