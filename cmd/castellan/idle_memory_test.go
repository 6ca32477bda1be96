package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"testing"

	"castellan/internal/blackbox"
)

// idleRole makes the test binary start the service, measure its heap once it serves, and end.
const idleRole = "idle"

// idle prints the live bytes on the heap, and the bytes that Go's runtime holds, each after a collection.
func idle() {
	ctx, stop := context.WithCancel(context.Background())
	log := &untilServing{serving: make(chan struct{})}
	ended := make(chan int)
	go func() { ended <- run(ctx, []string{"serve"}, os.Environ(), os.Stdin, os.Stdout, log) }()
	select {
	case code := <-ended:
		os.Exit(code)
	case <-log.serving:
	}
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"}}
	live, held := uint64(math.MaxUint64), uint64(math.MaxUint64)
	for range 20 { // the first ones empty the pools, and the last steps of the start may still be under way
		debug.FreeOSMemory()
		metrics.Read(s)
		live, held = min(live, s[0].Value.Uint64()), min(held, s[1].Value.Uint64()-s[2].Value.Uint64())
	}
	fmt.Println(live, held)
	stop()
	os.Exit(<-ended)
}

// untilServing copies a log to standard error and closes serving at the line of a service that serves.
type untilServing struct {
	serving chan struct{}
	once    bool
}

func (l *untilServing) Write(line []byte) (int, error) {
	if !l.once && bytes.Contains(line, []byte(" msg=serving ")) {
		l.once = true
		close(l.serving)
	}
	return os.Stderr.Write(line)
}

// A fresh service in production mode keeps a small heap. Tables that are made before they are needed, or kept
// after their use, fail the test. The test binary itself is about 1 MiB of it. Pages of the program and of the
// database's library add to the resident memory.
func TestMemoryOfAFreshService(t *testing.T) {
	const mostLive, mostHeld = 6 << 20, 16 << 20
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		s.Program = os.Args[0]
		s.Production().Set("LOG_LEVEL=info", "DATABASE_MAX_CONNECTIONS=")
		got := s.Command("", idleRole)
		var live, held int
		if _, err := fmt.Sscan(got.Out, &live, &held); err != nil || got.Code != 0 {
			t.Fatalf("%d, %q: %v\n%s", got.Code, got.Out, err, got.ErrOut)
		}
		t.Logf("%d KiB live, %d KiB held", live>>10, held>>10)
		if live > mostLive {
			t.Errorf("%d bytes live on the heap, want at most %d", live, mostLive)
		}
		if held > mostHeld {
			t.Errorf("Go's runtime holds %d bytes, want at most %d", held, mostHeld)
		}
	})
}
