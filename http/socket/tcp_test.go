package socket

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gobwas/ws"

	"castellan/domain/proof/stepup"
)

// Frames that come in one packet with the handshake are not lost, whole or in
// part, and neither is the order.
func TestEarlyFrames(t *testing.T) {
	s := serve(t, settings{})
	for name, c := range map[string]struct {
		early, late []byte
		want        []string
	}{
		"ping": {masked(ws.NewPingFrame([]byte("1"))), nil, []string{"10 1"}},
		"half a frame": {masked(ws.NewPingFrame([]byte("12")))[:7], masked(ws.NewPingFrame([]byte("12")))[7:],
			[]string{"10 12"}},
		"many": {join(part(ws.OpText, true, strings.Repeat("x", maxFrame)),
			part(ws.OpText, true, strings.Repeat("x", maxFrame)), masked(ws.NewPingFrame([]byte("3")))), nil, []string{"10 3"}},
		"close":     {join(closing(1000, ""), masked(ws.NewPingFrame(nil))), nil, []string{"close 1000", "end"}},
		"a mistake": {ws.MustCompileFrame(ws.NewTextFrame(nil)), nil, []string{"close 1002", "end"}},
		"64 MiB": {head(ws.Header{Fin: true, OpCode: ws.OpBinary, Length: 64 << 20}), nil,
			[]string{"close 1009", "end"}},
	} {
		t.Run(name, func(t *testing.T) {
			answer, p := s.request("/2fa", upgrade+"p-auth: good-c1\r\n", c.early...)
			if answer.StatusCode != 101 {
				t.Fatal(answer.StatusCode)
			}
			p.t = t
			p.send(c.late)
			p.want(c.want...)
			p.conn.Close()
		})
	}
}

// The same over the poller, also if the server counts connections by address. The same over a
// goroutine per socket, which reads connections that do not expose their socket.
func TestOverTCP(t *testing.T) {
	for name, set := range map[string]settings{"poller": {}, "counted": {perIP: 20}, "goroutines": {opaque: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, set)
			s.happen("c1", method("m1"))
			p := s.open("c1")
			p.want("m1")
			s.hub.Receive(s.happen("c1", sealed(`{"success":true}`)))
			p.want("done true")
			p.send(masked(ws.NewPingFrame([]byte("a"))), part(ws.OpText, true, "ignored"), masked(ws.NewPingFrame([]byte("b"))))
			p.want("10 a", "10 b")
			for _, b := range masked(ws.NewPingFrame([]byte("byte by byte"))) {
				p.send([]byte{b})
			}
			p.want("10 byte by byte")
			p.send(closing(1000, ""))
			p.want("close 1000", "end")

			p = s.open("c1")
			p.want("m1", "done true")
			p.send(head(ws.Header{Fin: true, OpCode: ws.OpBinary, Length: 64 << 20}), make([]byte, 1<<16))
			p.want("close 1009", "end")

			for i := range 5 {
				p := s.open("c2")
				if i == 0 {
					p.conn.(*net.TCPConn).SetLinger(0) // a reset, not an end
					p.conn.Close()
					s.wait(func() bool { return s.hub.Live() == 0 })
				}
			}
			s.open("c2")
			s.wait(func() bool { return len(s.questions("c2")) > 0 && s.hub.Live() == 5 })
			s.open("c2").want("close 4429", "end")

			answer, p := s.request("/2fa", upgrade+"p-auth: brief-c3\r\n")
			if answer.StatusCode != 101 {
				t.Fatal(answer.StatusCode)
			}
			began := time.Now()
			p.want("close 4401")
			if took := time.Since(began); took < 900*time.Millisecond || took > 2*time.Second {
				t.Errorf("a life of a second took %v", took)
			}

			p = s.open("c4")
			s.wait(func() bool { return len(s.questions("c4")) > 0 }) // the answer to the handshake is ahead of it
			s.hub.Receive(stepup.News{ChallengeID: "c4", Gone: true})
			p.want("close 4410", "end")
			p = s.open("c5")
			s.hub.Close(t.Context())
			p.want("close 1012", "end")
			s.open("c5").want("close 1012", "end") // a socket that joins now is closed as well
			s.wait(func() bool { return s.hub.Live() == 0 })
		})
	}
}

// An idle socket has no goroutine, however many there are.
func TestIdleSocketsHaveNoGoroutines(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Log("only the poller of Linux saves them")
		return
	}
	s := serve(t, settings{})
	s.open("c0")
	s.wait(func() bool { return runtime.NumGoroutine() < 30 })
	before := runtime.NumGoroutine()
	for i := range 200 {
		s.open(fmt.Sprint("c", i))
	}
	s.wait(func() bool { return s.hub.Live() == 201 })
	s.wait(func() bool { return runtime.NumGoroutine() < before+10 })
}

// A thousand clients that read nothing are dropped in time, cost little until
// then, and those who read wait for none of them.
func TestThousandSlowReaders(t *testing.T) {
	const rooms, events = 200, 128
	s := serve(t, settings{})
	var quick []*peer
	var mu sync.Mutex
	var wg sync.WaitGroup
	for n := range rooms {
		wg.Go(func() {
			for i := range 5 {
				p := s.open(fmt.Sprint("c", n))
				p.conn.(*net.TCPConn).SetReadBuffer(4 << 10)
				if i == 0 && n%20 == 0 {
					mu.Lock()
					quick = append(quick, p)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	text := `{"success":true,"data":{"fill":"` + strings.Repeat("x", 2000) + `"}}`
	var heard atomic.Int64
	for _, p := range quick {
		wg.Go(func() {
			for range events {
				p.want("done true")
				heard.Add(1)
			}
		})
	}
	before := heap()
	var slowest time.Duration
	for i := range events {
		for n := range rooms {
			news := s.happen(fmt.Sprint("c", n), sealed(text))
			began := time.Now()
			s.hub.Receive(news)
			slowest = max(slowest, time.Since(began))
		}
		s.wait(func() bool { return heard.Load() == int64(len(quick)*(i+1)) })
	}
	if most := heap(); most > before+64<<20 {
		t.Errorf("the heap grew by %d MiB", (most-before)>>20)
	}
	if slowest > writeTime/2 {
		t.Errorf("an event waited %v", slowest)
	}
	wg.Wait()
	s.wait(func() bool { return s.hub.Live() == int64(len(quick)) })
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A socket that ends frees its slot; no socket hears events of another one.
func TestComingAndGoing(t *testing.T) {
	s := serve(t, settings{})
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for i := range 25 {
				id := fmt.Sprintf("c%d.%d", n, i)
				p := s.open(id)
				s.hub.Receive(s.happen(id, method(id)))
				p.send(masked(ws.NewPingFrame([]byte(id))))
				got := []string{p.next(), p.next()}
				if !slices.Contains(got, id) || !slices.Contains(got, "10 "+id) {
					t.Errorf("%s got %q", id, got)
				}
				if i%2 == 0 {
					p.send(closing(1000, ""))
					p.want("close 1000", "end")
				}
				p.conn.Close()
			}
		})
	}
	wg.Wait()
	s.wait(func() bool {
		s.hub.mu.Lock()
		defer s.hub.mu.Unlock()
		return s.hub.Live() == 0 && len(s.hub.rooms) == 0
	})
}

func BenchmarkReceive(b *testing.B) {
	s := serve(b, settings{})
	p := s.open("c1")
	p.conn.SetDeadline(time.Time{})
	s.wait(func() bool { return len(s.questions("c1")) == 1 })
	buf := make([]byte, 1<<10)
	var frame int
	for n := 1; b.Loop(); n++ {
		s.hub.Receive(stepup.News{ChallengeID: "c1", Action: "LOGIN",
			Events: []stepup.Event{{Number: n, MethodID: "01JD", Method: "SMS"}}})
		if frame == 0 {
			frame, _ = p.r.Read(buf)
			continue
		}
		if _, err := io.ReadFull(p.r, buf[:frame]); err != nil || !bytes.Contains(buf[:frame], []byte("01JD")) {
			b.Fatal(err)
		}
	}
}
