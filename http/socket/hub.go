// Package socket serves /2fa (section 6 of the interface, decisions D-SOCK-…): the WebSocket on
// which a web client receives completed methods and the outcome of the action.
//
// The one idea: an idle socket is a small struct and nothing else. contrib/websocket upgrades
// it; then the connection is taken out of the HTTP server, so that neither the request's
// context nor its buffers stay alive. One goroutine reads all sockets (poller) and one handles
// their timers (wheel). A third one exists only while a client does not read what is written.
//
// Events are numbered (D-SOCK-05), so a socket takes only the event after its last one. In
// whatever order replay and live news arrive, it neither misses nor repeats an event.
//
// Start reading at Hub, then conn.go and upgrade.go.
package socket

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/fault"
	"castellan/domain/proof/stepup"
)

// Times of a socket's life (D-SOCK-01).
const (
	pingEvery = 20 * time.Second
	patience  = 45 * time.Second // with a silent client
	writeTime = 5 * time.Second
	parting   = time.Second // for the client to answer a close frame
)

// firstRetry is the wait after a subscription that failed; it doubles up to pingEvery.
const firstRetry = time.Second

// Hub holds the sockets of this node, by challenge.
type Hub struct {
	feed stepup.Feed
	open func(challengeID string, sealed []byte) (challenge.Result, error)
	now  func() time.Time
	log  *slog.Logger

	poll  *poller
	wheel *wheel
	live  atomic.Int64

	ctx  context.Context // of subscriptions to the feed
	stop context.CancelFunc
	done sync.WaitGroup

	mu     sync.Mutex
	rooms  map[string]*room
	closed bool
}

// room is the sockets of one challenge; the hub's lock guards it. At most one subscription call is in progress.
type room struct {
	id     string
	conns  []*conn   // in the order of their arrival
	asked  time.Time // time of the last subscription
	asking bool
	again  bool // subscribe again after the one in progress
	retry  bool // a timer will subscribe
	failed int  // failed subscriptions since the last answer
}

// NewHub returns a hub; its Receive must be given the node's news. Subscribe of
// the feed must end within a bounded time of its own.
func NewHub(feed stepup.Feed, open func(string, []byte) (challenge.Result, error), now func() time.Time,
	log *slog.Logger) *Hub {
	return newHub(feed, open, now, log, newPoller(log))
}

func newHub(feed stepup.Feed, open func(string, []byte) (challenge.Result, error), now func() time.Time,
	log *slog.Logger, poll *poller) *Hub {
	h := &Hub{feed: feed, open: open, now: now, log: log, rooms: map[string]*room{}, poll: poll,
		wheel: &wheel{start: now()}}
	h.ctx, h.stop = context.WithCancel(context.Background())
	h.done.Go(h.keepTime)
	return h
}

// Live is the number of open sockets.
func (h *Hub) Live() int64 { return h.live.Load() }

// Close closes every socket with 1012 and waits until they have gone, or until ctx ends. Later
// sockets are closed at once.
func (h *Hub) Close(ctx context.Context) {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return
	}
	h.closed = true
	var all []*conn
	for _, r := range h.rooms {
		all = append(all, r.conns...)
	}
	h.mu.Unlock()
	for _, c := range all {
		c.close(closeRestart)
	}
	t := time.NewTicker(5 * time.Millisecond)
	defer t.Stop()
	for h.live.Load() > 0 && ctx.Err() == nil {
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
	h.stop()
	h.done.Wait()
	h.poll.close()
}

func (h *Hub) keepTime() {
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			h.wheel.turn(h.now())
		case <-h.ctx.Done():
			return
		}
	}
}

// admit creates the socket of a connection that watches a challenge until expires. Early are
// the bytes that the client has already sent.
func (h *Hub) admit(nc net.Conn, challengeID string, expires time.Time, early []byte) {
	now := h.now()
	c := &conn{hub: h, net: nc, slot: -1, expires: expires, ping: now.Add(pingEvery), heard: now}
	h.live.Add(1)
	h.poll.place(c)
	h.join(challengeID, c)
	h.wheel.add(c, earliest(c.ping, expires))
	if len(early) > 0 {
		c.received(early)
	}
	if !h.poll.watch(c) {
		go c.readAll()
	}
}

// join adds a socket to its room and requests the events so far.
func (h *Hub) join(id string, c *conn) {
	h.mu.Lock()
	closed := h.closed
	if !closed {
		r := h.rooms[id]
		if r == nil {
			r = &room{id: id}
			h.rooms[id] = r
		}
		r.conns = append(r.conns, c)
		c.room = r
		h.ask(r)
	}
	h.mu.Unlock()
	if closed {
		c.close(closeRestart)
	}
}

// forget removes a socket that has ended.
func (h *Hub) forget(c *conn) {
	h.poll.remove(c)
	h.mu.Lock()
	if r := c.room; r != nil {
		if i := slices.Index(r.conns, c); i >= 0 {
			r.conns = append(r.conns[:i:i], r.conns[i+1:]...)
			h.ask(r) // also for an empty room, which goes once the owner knows
		}
	}
	h.mu.Unlock()
	h.live.Add(-1)
}

// renew renews the subscription of a room at its sockets' pings, once for all of them: the
// owner forgets a node that does not renew.
func (h *Hub) renew(r *room) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r != nil && h.now().Sub(r.asked) > pingEvery-2*tick {
		h.ask(r)
	}
}

// Moved subscribes the rooms whose challenge has a new owner, which does not know yet that a socket listens here.
func (h *Hub) Moved(moved func(challengeID string) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, r := range h.rooms {
		if moved(id) {
			h.ask(r)
		}
	}
}

// ask subscribes for the sockets of a room: when one joins or leaves, at every
// ping, and when an event was missed. The caller holds the lock.
func (h *Hub) ask(r *room) {
	if h.closed || h.rooms[r.id] != r {
		return
	}
	if r.asking {
		r.again = true
		return
	}
	r.asking, r.again, r.asked = true, false, h.now()
	sockets, after := len(r.conns), r.seen()
	h.done.Go(func() { h.subscribe(r, sockets, after) })
}

// seen is the last event that every socket of the room was sent.
func (r *room) seen() int {
	if len(r.conns) == 0 {
		return 0
	}
	least := r.conns[0].seen
	for _, c := range r.conns[1:] {
		least = min(least, c.seen)
	}
	return int(least)
}

// subscribe makes one subscription and acts on its result.
func (h *Hub) subscribe(r *room, sockets, after int) {
	refused, news, err := h.feed.Subscribe(h.ctx, r.id, sockets, after)
	switch {
	case err == nil:
		if refused > 0 {
			h.closeExcess(r, sockets-refused)
		}
		h.deliver(news)
	case fault.CodeOf(err) == fault.ChallengeNotFound:
		h.deliver(stepup.News{ChallengeID: r.id, Gone: true})
		err = nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	r.asking = false
	switch {
	case r.again:
		h.ask(r)
	case len(r.conns) == 0:
		delete(h.rooms, r.id)
	case err != nil:
		h.askLater(r)
	}
	if err == nil {
		r.failed = 0
	}
}

// askLater repeats a failed subscription.
func (h *Hub) askLater(r *room) {
	if r.retry {
		return
	}
	r.retry = true
	wait := min(firstRetry<<min(r.failed, 8), pingEvery)
	r.failed++
	time.AfterFunc(wait, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		r.retry = false
		h.ask(r)
	})
}

// closeExcess closes the sockets beyond the allowed number, the latest first. Sockets may have
// left or joined since the owner counted them.
func (h *Hub) closeExcess(r *room, allowed int) {
	h.mu.Lock()
	var many []*conn
	if allowed = max(allowed, 0); len(r.conns) > allowed {
		many = r.conns[allowed:]
		r.conns = r.conns[:allowed:allowed]
	}
	h.mu.Unlock()
	for _, c := range many {
		c.close(closeTooMany)
	}
}
