package edge

import (
	"context"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/kit/fault"
	"castellan/http/rest"
)

// After a stop of the process a request is served only for a client that is still
// there.
func TestResumed(t *testing.T) {
	var served atomic.Int64
	gate := make(chan struct{})
	opts := allow()
	opts.Resumed = func() bool {
		select {
		case <-gate:
		case <-t.Context().Done():
		}
		return true
	}
	ended := make(chan int, 4)
	opts.Observe = func(_ context.Context, a Answered) { ended <- a.Status }
	s := serve(t, opts, rest.Get("/x", "", rest.NoAuth, func(context.Context, rest.Caller, rest.None) (rest.None, error) {
		served.Add(1)
		return rest.None{}, nil
	}))
	addr := listen(t, s)
	const whole = "GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
	stays, goes, resets := dial(t, addr), dial(t, addr), dial(t, addr)
	for _, c := range []io.Writer{stays, goes, resets} {
		if _, err := io.WriteString(c, whole); err != nil {
			t.Fatal(err)
		}
	}
	goes.Close()
	resets.(interface{ SetLinger(int) error }).SetLinger(0)
	resets.Close()
	close(gate)
	if text := receive(t, stays); !strings.HasPrefix(text, "HTTP/1.1 200 ") {
		t.Errorf("who stayed got %q", text)
	}
	dropped := 0
	for range 3 {
		select {
		case status := <-ended:
			if status == 503 {
				dropped++
			}
		case <-time.After(5 * time.Second):
			dropped++ // its connection broke before it was read
		}
	}
	if served.Load() != 1 || dropped != 2 {
		t.Errorf("%d served, %d dropped", served.Load(), dropped)
	}
}

// The end of all requests gives the reason to their clients and not to the log.
func TestBase(t *testing.T) {
	base, cancel := context.WithCancelCause(t.Context())
	opts := allow()
	opts.Base = func() context.Context { return base }
	entered := make(chan struct{})
	s := serve(t, opts, rest.Get("/x", "", rest.NoAuth,
		func(ctx context.Context, _ rest.Caller, _ rest.None) (rest.None, error) {
			close(entered)
			<-ctx.Done()
			return rest.None{}, ctx.Err()
		}))
	c := dial(t, listen(t, s))
	if _, err := io.WriteString(c, "GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-entered
	cancel(fault.New(fault.Unavailable, "the node was stopped").After(2 * time.Second))
	a := parsed(t, receive(t, c))
	if a.status != 503 || a.header.Get("Retry-After") != "2" || !strings.Contains(a.body, "the node was stopped") {
		t.Errorf("%+v", a)
	}
}
