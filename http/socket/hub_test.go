package socket

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/stepup"
)

func TestReplayThenLive(t *testing.T) {
	virtual(t, func(w *world) {
		w.happen("c1", method("m1"))
		first := w.join("c1", time.Hour)
		first.want("m1")
		w.hub.Receive(w.happen("c1", method("m2")))
		second := w.join("c1", time.Hour)
		w.hub.Receive(w.happen("c1", sealed(`{"success":true}`)))
		other := w.join("c2", time.Hour)
		first.want("m1", "m2", "done true")
		second.want("m1", "m2", "done true")
		other.want()
		w.hub.Receive(w.happen("c2", sealed(`{"success":false}`)))
		other.want("done false")
		time.Sleep(19 * time.Second)
		first.want("m1", "m2", "done true") // it stays open after the end
		storetest.Equal(t, w.hub.Live(), 3, "sockets live")
	})
}

// A frame has exactly the four keys of section 6 of the interface, and both objects always.
func TestFrames(t *testing.T) {
	virtual(t, func(w *world) {
		c := w.join("c1", time.Hour)
		w.hub.Receive(w.happen("c1", method("m1")))
		w.hub.Receive(w.happen("c1", sealed(`{"success":true,"data":{"sessionKey":"k"},"headers":{"x-auth":"t"}}`)))
		d := w.join("c2", time.Hour)
		w.hub.Receive(w.happen("c2", sealed(`{"success":false}`)))
		synctest.Wait()
		for i, want := range []string{
			`{"challengeId":"c1","action":"LOGIN","event":"METHOD_COMPLETE","data":[{"methodId":"m1","method":"SMS"}]}`,
			`{"challengeId":"c1","action":"LOGIN","event":"ACTION_COMPLETE",` +
				`"data":[{"success":true,"data":{"sessionKey":"k"},"headers":{"x-auth":"t"}}]}`,
			`{"challengeId":"c2","action":"LOGIN","event":"ACTION_COMPLETE","data":[{"success":false,"data":{},"headers":{}}]}`,
		} {
			storetest.Equal(t, string(slices.Concat(c.texts, d.texts)[i]), want, "frame", i)
		}
	})
}

// The answer to the question is on its way while events happen: the socket
// gets each once and in order, whichever comes first.
func TestLiveOvertakesReplay(t *testing.T) {
	virtual(t, func(w *world) {
		w.happen("c1", method("m1"))
		once := sync.OnceFunc(func() { // after the first answer was made, before it is heard
			w.hub.Receive(w.happen("c1", method("m2")))
			w.hub.Receive(w.happen("c1", method("m3")))
		})
		w.set(func() { w.hook = func(string, int, int) { once() } })
		c := w.join("c1", time.Hour)
		c.want("m1", "m2", "m3")
		storetest.Same(t, w.questions("c1"), []question{{1, 0}, {1, 1}}, "questions")
	})
}

func TestDuplicateAndMissedNews(t *testing.T) {
	virtual(t, func(w *world) {
		c := w.join("c1", time.Hour)
		m1 := w.happen("c1", method("m1"))
		for range 3 {
			w.hub.Receive(m1)
		}
		c.want("m1")
		w.happen("c1", method("m2")) // its news is lost
		w.hub.Receive(w.happen("c1", method("m3")))
		w.hub.Receive(m1)
		c.want("m1", "m2", "m3") // asked again at once, not at the next ping
		w.happen("c1", method("m4"))
		time.Sleep(21 * time.Second)
		c.want("m1", "m2", "m3", "ping", "m4") // and at every ping
	})
}

// Sockets of one room that have seen different amounts each get what they lack.
func TestLateSocketBesideEarlyOne(t *testing.T) {
	virtual(t, func(w *world) {
		early := w.join("c1", time.Hour)
		w.hub.Receive(w.happen("c1", method("m1")))
		w.hub.Receive(w.happen("c1", method("m2")))
		release := make(chan struct{})
		w.set(func() { w.hook = func(string, int, int) { <-release } })
		late := w.join("c1", time.Hour)
		w.hub.Receive(w.happen("c1", method("m3")))
		early.want("m1", "m2", "m3")
		late.want()
		close(release)
		late.want("m1", "m2", "m3")
		early.want("m1", "m2", "m3")
	})
}

func TestSixthSocket(t *testing.T) {
	virtual(t, func(w *world) {
		w.happen("c1", method("m1"))
		var cs []*client
		for range 6 {
			cs = append(cs, w.join("c1", time.Hour))
		}
		for _, c := range cs[:5] {
			c.want("m1")
		}
		cs[5].want("close 4429")
		cs[0].conn.Close()
		synctest.Wait()
		w.join("c1", time.Hour).want("m1")
		w.set(func() { w.of("c1").elsewhere = 3 })
		time.Sleep(21 * time.Second) // the next subscription, after others have taken three places
		cs[1].want("m1", "ping")
		cs[2].want("m1", "ping")
		cs[3].want("m1", "ping", "close 4429")
		storetest.Equal(t, w.hub.Live(), 2, "sockets live")
	})
}

// A challenge has got another owner: it is asked at once, and only for that
// challenge, so that nothing is missed until the next ping.
func TestMovedChallengeIsAskedAgain(t *testing.T) {
	virtual(t, func(w *world) {
		moved, stays := w.join("c1", time.Hour), w.join("c2", time.Hour)
		w.happen("c1", method("m1")) // and no news of it
		w.happen("c2", method("m1"))
		moved.want()
		w.hub.Moved(func(id string) bool { return id == "c1" })
		moved.want("m1")
		stays.want()
		time.Sleep(21 * time.Second)
		stays.want("ping", "m1")
	})
}

// A socket leaves while six are being subscribed: no other socket has to close.
func TestSixthSocketMakesRoomItself(t *testing.T) {
	virtual(t, func(w *world) {
		var cs []*client
		for range 5 {
			cs = append(cs, w.join("c1", time.Hour))
		}
		once := sync.OnceFunc(func() { cs[0].conn.Close(); synctestWait() })
		w.set(func() {
			w.hook = func(_ string, sockets, _ int) {
				if sockets == 6 {
					once()
				}
			}
		})
		last := w.join("c1", time.Hour)
		last.want()
		for _, c := range cs[1:] {
			c.want()
		}
	})
}

// synctestWait gives other goroutines of the bubble time to react, from within
// one that the test waits for.
func synctestWait() { time.Sleep(time.Millisecond) }

func TestGone(t *testing.T) {
	virtual(t, func(w *world) {
		c := w.join("c1", time.Hour)
		w.hub.Receive(stepup.News{ChallengeID: "c1", Gone: true})
		c.want("close 4410")
		w.set(func() { w.of("c2").gone = true })
		w.happen("c2", method("m1"))
		w.join("c2", time.Hour).want("m1", "close 4410")
		w.set(func() { w.fail = fault.New(fault.ChallengeNotFound, "no such challenge") })
		w.join("c3", time.Hour).want("close 4410")
	})
}

func TestOutcomeThatCannotBeShown(t *testing.T) {
	virtual(t, func(w *world) {
		before := w.join("c1", time.Hour)
		w.hub.Receive(w.happen("c1", method("m1")))
		w.hub.Receive(w.happen("c1", sealed(`{"success":true}`)))
		w.set(func() { w.of("c1").events[1].Outcome = []byte("session ended") }) // logged out since
		after := w.join("c1", time.Hour)
		after.want("m1", "close 4410")
		before.want("m1", "done true") // it heard when it was true, and stays
		broken := w.join("c2", time.Hour)
		w.hub.Receive(w.happen("c2", sealed("unreadable")))
		broken.want("close 1011")
	})
}

// Everything at once: sockets come, go and stall while events happen, and
// every reader that stays hears all of them, once and in order.
func TestManyAtOnce(t *testing.T) {
	virtual(t, func(w *world) {
		const cases, steps = 20, 40
		var wg sync.WaitGroup
		for n := range cases {
			id := fmt.Sprint("c", n)
			wg.Go(func() {
				stay := w.silent(id, time.Hour)
				go stay.read(true)
				var want []string
				for i := range steps {
					news := w.happen(id, method(fmt.Sprint("m", i)))
					want = append(want, fmt.Sprint("m", i))
					if i%3 != 0 { // every third is lost
						go w.hub.Receive(news)
					}
					guest := w.silent(id, time.Hour)
					if i%2 == 0 {
						go guest.read(true)
					}
					time.Sleep(time.Duration(i%7) * 10 * time.Millisecond)
					guest.conn.Close()
				}
				time.Sleep(pingEvery + tick)
				stay.mu.Lock()
				defer stay.mu.Unlock()
				got := slices.DeleteFunc(slices.Clone(stay.got), func(s string) bool { return s == "ping" })
				storetest.Same(t, got, want, id)
			})
		}
		wg.Wait()
		storetest.Equal(t, w.hub.Live(), cases, "sockets live")
	})
}
