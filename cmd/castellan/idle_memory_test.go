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
	"castellan/internal/child"
)

// idleRole makes the test binary start the service, measure its heap once it serves, and exit.
const idleRole = "idle"

// idle prints the live bytes of the heap and the bytes that Go's runtime holds, each after a collection, and the
// resident bytes of the process.
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
	live, held, resident := uint64(math.MaxUint64), uint64(math.MaxUint64), uint64(math.MaxUint64)
	for range 20 { // the first ones empty the pools, and the last steps of the start may still be running
		debug.FreeOSMemory()
		metrics.Read(s)
		live, held = min(live, s[0].Value.Uint64()), min(held, s[1].Value.Uint64()-s[2].Value.Uint64())
		now, err := child.Resident(os.Getpid())
		if err != nil {
			panic(err)
		}
		resident = min(resident, now)
	}
	fmt.Println(live, held, resident)
	stop()
	os.Exit(<-ended)
}

// untilServing copies a log to standard error and closes serving at the log line of a started service.
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

// A fresh service in production keeps a small heap. Tables that are created before they are needed, or kept after their
// use, fail here. About 1 MiB is the test binary itself. Pages of the program and of the database's library are
// additional resident memory, of which those that only the start needed are unmapped.
func TestMemoryOfAFreshService(t *testing.T) {
	const mostLive, mostHeld, mostResident = 6 << 20, 16 << 20, 48 << 20
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		s.Program = os.Args[0]
		s.UsualHeap().Production().Set("LOG_LEVEL=info", "DATABASE_MAX_CONNECTIONS=")
		live, held, resident := math.MaxInt, math.MaxInt, math.MaxInt
		for range 6 { // other programs and late steps of a start only add to these
			var n [3]int
			got := s.Command("", idleRole)
			if _, err := fmt.Sscan(got.Out, &n[0], &n[1], &n[2]); err != nil || got.Code != 0 {
				t.Fatalf("%d, %q: %v\n%s", got.Code, got.Out, err, got.ErrOut)
			}
			live, held, resident = min(live, n[0]), min(held, n[1]), min(resident, n[2])
			if live <= mostLive && held <= mostHeld && resident <= mostResident {
				break
			}
		}
		t.Logf("%d KiB live, %d KiB held, %d KiB resident", live>>10, held>>10, resident>>10)
		if live > mostLive {
			t.Errorf("%d bytes live on the heap, want at most %d", live, mostLive)
		}
		if held > mostHeld {
			t.Errorf("Go's runtime holds %d bytes, want at most %d", held, mostHeld)
		}
		if resident > mostResident {
			t.Errorf("%d bytes are resident, want at most %d", resident, mostResident)
		}
	})
}
