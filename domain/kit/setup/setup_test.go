package setup

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"castellan/domain/kit/storetest"
)

func TestLines(t *testing.T) {
	for _, c := range []struct {
		f    Finding
		want string
	}{
		{Finding{"mail.host", Feature, "empty", "no mail is sent", "set mail.host", ""},
			"mail.host: feature off (empty), no mail is sent, set mail.host"},
		{Finding{"audit.anchor_url", Control, "empty", "a", "b", ""}, "audit.anchor_url: control off (empty), a, b"},
		{Finding{"mfa.four_eyes", Accepted, "empty", "a", "b", "c"}, "mfa.four_eyes: accepted (empty), a, because: c"},
		{Finding{"disk", OK, "12 GiB free", "", "", ""}, "disk: ok (12 GiB free)"},
		{Finding{"clock", Fault, "", "a", "b", ""}, "clock: fault, a, b"},
	} {
		storetest.Equal(t, c.f.String(), c.want)
	}
}

// Findings are sorted by severity; within one, their order is kept.
func TestOrder(t *testing.T) {
	r := NewReport(true, time.Time{}, []Finding{{Key: "a", Severity: OK}, {Key: "b", Severity: Feature},
		{Key: "c", Severity: Control}, {Key: "d", Severity: Fault}, {Key: "e", Severity: Control}})
	var order string
	for _, f := range r.Findings {
		order += f.Key
	}
	if order != "cedba" || r.Count(Control) != 2 || r.Count(OK) != 1 {
		t.Errorf("order %q, %d controls, %d ok", order, r.Count(Control), r.Count(OK))
	}
}

// Callers share a run: only one runs at a time, and a caller that stops waiting does not end it.
func TestOneRunAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs, now atomic.Int32
		c := NewChecks(func(ctx context.Context) Report {
			if now.Add(1) > 1 {
				t.Error("two runs at a time")
			}
			defer now.Add(-1)
			time.Sleep(time.Second)
			if ctx.Err() != nil {
				t.Error("the caller that gave up ended the run")
			}
			return Report{Findings: []Finding{{Key: string('a' + rune(runs.Add(1)) - 1)}}}
		})
		hasty, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		storetest.Is(t, storetest.Err(c.Run(hasty)), context.DeadlineExceeded, "a hasty caller")
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				storetest.Equal(t, storetest.Value(c.Run(t.Context()))(t).Findings[0].Key, "a")
			})
		}
		all.Wait()
		if r, err := c.Run(t.Context()); err != nil || r.Findings[0].Key != "b" || runs.Load() != 2 {
			t.Errorf("the next run: %v %v, %d runs", r, err, runs.Load())
		}
	})
}
