package socket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobwas/ws"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

func TestExpiry(t *testing.T) {
	virtual(t, func(w *world) {
		c := w.join("c1", 30*time.Second)
		time.Sleep(30*time.Second - time.Millisecond)
		c.want("ping")
		time.Sleep(time.Millisecond + tick)
		c.want("ping", "close 4401")
		time.Sleep(5 * time.Second)
		storetest.Equal(t, w.hub.Live(), 0, "sockets live")
		w.join("c2", -time.Second)
		time.Sleep(2 * tick)
		storetest.Equal(t, w.hub.Live(), 0, "sockets live")
	})
}

func TestClose(t *testing.T) {
	virtual(t, func(w *world) {
		var cs []*client
		for i := range 10 {
			cs = append(cs, w.join(fmt.Sprint("c", i), time.Hour))
		}
		w.hub.Close(w.t.Context())
		for _, c := range cs {
			c.want("close 1012")
		}
		w.join("c1", time.Hour).want("close 1012")
		w.hub.Receive(w.happen("c1", method("m1"))) // nothing happens, and nothing breaks
	})
}

// A client that does not answer a close frame does not keep the node.
func TestCloseOfUnresponsiveClient(t *testing.T) {
	virtual(t, func(w *world) {
		w.silent("c1", time.Hour)
		began := time.Now()
		w.hub.Close(w.t.Context())
		if took := time.Since(began); took > writeTime+parting+tick || w.hub.Live() != 0 {
			t.Errorf("it took %v, %d sockets live", took, w.hub.Live())
		}
	})
	virtual(t, func(w *world) {
		w.silent("c1", time.Hour)
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		w.hub.Close(ctx)
		storetest.Equal(t, time.Since(began), time.Second, "it took")
		time.Sleep(writeTime)
	})
}

func TestPings(t *testing.T) {
	virtual(t, func(w *world) {
		c := w.join("c1", time.Hour)
		time.Sleep(time.Minute + tick)
		c.want("ping", "ping", "ping")
		storetest.Equal(t, len(w.questions("c1")), 4, "questions")
	})
}

// The sockets of a room ping at different times; the owner is asked once.
func TestOneQuestionForAllPings(t *testing.T) {
	virtual(t, func(w *world) {
		for range 5 {
			w.join("c1", time.Hour)
			time.Sleep(3 * time.Second)
		}
		before := len(w.questions("c1"))
		time.Sleep(10 * time.Minute)
		if n := len(w.questions("c1")) - before; n < 25 || n > 31 {
			t.Errorf("%d questions in ten minutes", n)
		}
	})
}

// The client is gone, but the connection does not know.
func TestHalfOpen(t *testing.T) {
	virtual(t, func(w *world) {
		c := w.silent("c1", time.Hour)
		go c.read(false)
		time.Sleep(patience + tick - time.Millisecond)
		c.want("ping", "ping")
		synctest.Wait()
		storetest.Equal(t, w.hub.Live(), 0, "sockets live")
	})
	virtual(t, func(w *world) {
		c := w.silent("c1", time.Hour)
		go c.read(false)
		time.Sleep(40 * time.Second)
		c.write(ws.NewTextFrame([]byte("still here")))
		time.Sleep(39 * time.Second)
		c.want("ping", "ping", "ping")
		time.Sleep(10 * time.Second)
		storetest.Equal(t, w.hub.Live(), 0, "sockets live")
	})
}

// A client that reads nothing is never waited for.
func TestSlowReader(t *testing.T) {
	virtual(t, func(w *world) {
		slow := w.silent("c1", time.Hour)
		quick := w.join("c1", time.Hour)
		began := time.Now()
		var want []string
		for i := range 10 {
			w.hub.Receive(w.happen("c1", method(fmt.Sprint("m", i))))
			want = append(want, fmt.Sprint("m", i))
			quick.want(want...)
		}
		storetest.Equal(t, time.Since(began), 0, "delivery took")
		time.Sleep(writeTime - time.Millisecond)
		storetest.Equal(t, w.hub.Live(), 2, "sockets live")
		time.Sleep(time.Millisecond)
		synctest.Wait()
		storetest.Equal(t, w.hub.Live(), 1, "sockets live")
		if _, err := slow.conn.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the slow one: %v", err)
		}
		quick.want(want...)
	})
}

func TestQueueIsBounded(t *testing.T) {
	virtual(t, func(w *world) {
		w.silent("c1", time.Hour)
		synctest.Wait()
		for i := range maxQueue + 1 {
			w.hub.Receive(w.happen("c1", method(fmt.Sprint("m", i))))
			synctest.Wait()
		}
		storetest.Equal(t, w.hub.Live(), 1, "sockets live with a full queue")
		w.hub.Receive(w.happen("c1", method("one too many")))
		synctest.Wait()
		storetest.Equal(t, w.hub.Live(), 0, "sockets live")
	})
}

// While the owner cannot be asked the socket stays, and hears all of it later.
func TestOwnerUnreachable(t *testing.T) {
	virtual(t, func(w *world) {
		w.set(func() { w.fail = fault.New(fault.Unavailable, "try again") })
		c := w.join("c1", time.Hour)
		w.happen("c1", method("m1"))
		time.Sleep(time.Minute)
		n := len(w.questions("c1"))
		if n < 4 || n > 12 {
			t.Errorf("%d questions in a minute", n)
		}
		c.want("ping", "ping", "ping")
		w.set(func() { w.fail = nil })
		time.Sleep(pingEvery)
		c.want("ping", "ping", "ping", "m1", "ping")
	})
}

// The owner hears when a node's sockets are fewer, and the room goes with the
// last one.
func TestLeaving(t *testing.T) {
	virtual(t, func(w *world) {
		a, b := w.join("c1", time.Hour), w.join("c1", time.Hour)
		a.conn.Close()
		synctest.Wait()
		b.write(ws.NewCloseFrame(ws.NewCloseFrameBody(ws.StatusGoingAway, "")))
		b.want("close 1001")
		storetest.Same(t, w.questions("c1"), []question{{1, 0}, {2, 0}, {1, 0}, {0, 0}}, "questions")
		storetest.Equal(t, len(w.hub.rooms), 0, "rooms", w.hub.rooms)
		w.set(func() { w.fail = errors.New("trouble") })
		w.join("c2", time.Hour).conn.Close()
		synctest.Wait()
		storetest.Equal(t, len(w.hub.rooms), 0, "rooms", w.hub.rooms)
		time.Sleep(time.Minute)
		if n := len(w.questions("c2")); n > 3 {
			t.Errorf("%d questions for nobody", n)
		}
	})
}

// Client messages are ignored, within the limits of the protocol.
func TestClientFrames(t *testing.T) {
	text := func(n int) ws.Frame { return ws.NewTextFrame(make([]byte, n)) }
	for name, c := range map[string]struct {
		send func(c *client)
		want []string
	}{
		"ignored": {func(c *client) {
			c.write(text(0))
			c.write(text(maxFrame))
			c.write(ws.NewBinaryFrame([]byte{0xff}))
			c.write(ws.NewPongFrame([]byte("unasked")))
		}, nil},
		"ping":    {func(c *client) { c.write(ws.NewPingFrame([]byte("hello"))) }, []string{"pong hello"}},
		"too big": {func(c *client) { c.write(text(maxFrame + 1)) }, []string{"close 1009"}},
		"close": {func(c *client) { c.write(ws.NewCloseFrame(ws.NewCloseFrameBody(3999, "bye"))) },
			[]string{"close 3999"}},
		"close, no code": {func(c *client) { c.write(ws.NewCloseFrame(nil)) }, []string{"close 0"}},
		"close, bad code": {func(c *client) { c.write(ws.NewCloseFrame(ws.NewCloseFrameBody(1005, ""))) },
			[]string{"close 1002"}},
		"unmasked":         {func(c *client) { ws.WriteFrame(c.conn, ws.NewTextFrame(nil)) }, []string{"close 1002"}},
		"no text":          {func(c *client) { c.write(ws.NewTextFrame([]byte{0xff})) }, []string{"close 1007"}},
		"nothing after it": {func(c *client) { c.write(text(2000)); c.write(ws.NewPingFrame(nil)) }, []string{"close 1009"}},
		"flood": {func(c *client) {
			for range maxFrames + 1 {
				c.write(text(1))
			}
		}, []string{"close 1008"}},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(w *world) {
				client := w.join("c1", time.Hour)
				c.send(client)
				client.want(c.want...)
				time.Sleep(2 * parting)
				storetest.Equal(t, w.hub.Live() == 1, (len(c.want) == 0 || name == "ping"), "live")
			})
		})
	}
}

// The frame count restarts with each ping: an ordinary client may talk.
func TestTalkativeClient(t *testing.T) {
	virtual(t, func(w *world) {
		c := w.join("c1", time.Hour)
		for range 600 { // ten minutes, 40 frames a second
			for range 40 {
				c.write(ws.NewTextFrame([]byte("x")))
			}
			time.Sleep(time.Second)
		}
		storetest.Equal(t, w.hub.Live(), 1, "sockets live")
	})
}

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
