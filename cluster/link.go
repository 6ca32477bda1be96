package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/protobuf/proto"
)

// Times of a link.
const (
	dialTimeout  = time.Second
	writeTimeout = 5 * time.Second
	readTimeout  = 3 * time.Second // a link that is silent for longer is broken: pings are answered
	// unreachableAfter is how long a member may leave pings unanswered before callers give up.
	unreachableAfter = 700 * time.Millisecond
)

// maxQueued bounds the bytes queued for a link.
const maxQueued = 32 << 20

// frameQueue collects the frames for one connection. Frames that arrive during a write are sent with the next write: an
// idle connection sends at once, a busy one sends more at a time.
type frameQueue struct {
	mu     sync.Mutex
	buf    []byte
	spare  []byte
	wake   chan struct{}
	closed bool
}

func newFrameQueue() *frameQueue { return &frameQueue{wake: make(chan struct{}, 1)} }

// put queues a frame; false if it will not be sent.
func (q *frameQueue) put(f *frame) bool {
	q.mu.Lock()
	if q.closed || len(q.buf) > maxQueued {
		q.mu.Unlock()
		return false
	}
	q.buf = f.append(q.buf)
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return true
}

// close refuses all further frames.
func (q *frameQueue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// run writes until the queue is closed or a write fails.
func (q *frameQueue) run(c net.Conn) {
	defer c.Close()
	for range q.wake {
		runtime.Gosched() // callers that are about to send join this write
		q.mu.Lock()
		batch, closed := q.buf, q.closed
		q.buf, q.spare = q.spare[:0], nil
		q.mu.Unlock()
		if closed {
			return
		}
		c.SetWriteDeadline(time.Now().Add(writeTimeout))
		if _, err := c.Write(batch); err != nil {
			q.close()
			return
		}
		if cap(batch) > 1<<20 {
			batch = nil
		}
		q.mu.Lock()
		q.spare = batch[:0]
		q.mu.Unlock()
	}
}

type connection struct {
	*frameQueue
	net.Conn
}

// link carries this node's calls to another member, and the answers back. It reconnects whenever its connection breaks.
type link struct {
	membership *membership
	to         Member
	current    atomic.Pointer[connection] // nil while disconnected
	dead       atomic.Bool                // the process is gone: its address refuses, or another process answers there
	met        atomic.Bool                // the member has shown a certificate with its name, or an unencrypted hello
	barred     atomic.Bool                // its address no longer shows such a certificate
	vouches    atomic.Pointer[[]string]   // the members that the member has met itself
	taken      bool                       // it is a member here: met, or vouched for; guarded by the membership's lock
	answers    atomic.Bool                // the member has accepted this node
	left       atomic.Bool                // the member has announced that it leaves
	knowsLeave atomic.Bool                // the member has learned that this node leaves
	answeredAt atomic.Int64               // when the last answered ping was sent, by the clock of the membership
	heardAt    atomic.Int64               // the last sign of life, by the clock of the membership; 0: none yet
	until      time.Time                  // when it is closed after the member has gone; guarded by the membership's lock

	ctx  context.Context
	stop context.CancelFunc
}

var errStranger = errors.New("cluster: another node answers at this address")

// run connects and serves until the link is stopped. A dying process resets its connections before its listener is
// gone, so only the third refusal counts.
func (l *link) run() {
	pauses := []time.Duration{5, 10, 20, 50, 100, 200, 500}
	refused := 0
	for i := 0; l.ctx.Err() == nil; i++ {
		conn, err := l.dial()
		switch {
		case err == nil:
			i, refused = 0, 0
			dead, barred := l.dead.Swap(false), l.barred.Swap(false)
			if !l.met.Swap(true) || dead || barred {
				l.membership.wake()
			}
			l.serve(conn)
		case errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, errStranger):
			if refused++; refused == 3 {
				l.dead.Store(true)
				l.membership.wake()
			}
		case isNoMember(err):
			if refused++; refused == 3 {
				l.barred.Store(true)
				l.membership.wake()
				l.membership.log.Warn("cluster: a non-member answers at a member's address", "member", l.to.ID, "err", err)
			}
		}
		if err != nil && i == len(pauses) {
			l.membership.log.Debug("cluster: a member cannot be reached", "member", l.to.ID, "err", err)
		}
		select {
		case <-time.After(pauses[min(i, len(pauses)-1)] * time.Millisecond):
		case <-l.ctx.Done():
		}
	}
}

func (l *link) dial() (net.Conn, error) {
	ctx, cancel := context.WithTimeout(l.ctx, dialTimeout)
	defer cancel()
	conn, err := dial(ctx, l.membership.o.Keys, l.to.Address)
	if err != nil {
		return nil, err
	}
	conn.SetDeadline(time.Now().Add(dialTimeout))
	hello := frame{op: opHello, id: l.membership.self.ID, kind: l.to.ID}
	if l.membership.joining.Load() {
		hello.code = codeJoining
	}
	if _, err = conn.Write(hello.append(nil)); err == nil {
		var back frame
		if back, _, err = readFrame(conn, nil); err == nil && back.id != l.to.ID {
			err = errStranger
		}
	}
	if err == nil {
		err = checkName(conn, l.to.ID)
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("greet %s: %w", l.to.Address, err)
	}
	conn.SetDeadline(time.Time{})
	return conn, nil
}

// serve carries frames until the connection breaks, and then fails the calls on it.
func (l *link) serve(conn net.Conn) {
	s := &connection{newFrameQueue(), conn}
	stop := context.AfterFunc(l.ctx, func() { conn.Close() })
	defer stop()
	var writer sync.WaitGroup
	writer.Go(func() { s.run(conn) })
	l.answeredAt.Store(max(l.answeredAt.Load(), l.membership.clock()))
	l.heard()
	l.current.Store(s)
	l.ping(s)
	l.membership.wakeCallers()
	r := bufio.NewReaderSize(conn, 64<<10)
	var buf []byte
	for {
		conn.SetReadDeadline(time.Now().Add(readTimeout))
		var f frame
		var err error
		if f, buf, err = readFrame(r, buf); err != nil {
			break
		}
		if f.op != opAnswer {
			continue
		}
		if f.kind == pingKind {
			known := f.code == codeOK || f.code == codeLeft
			if known {
				l.answers.Store(true)
				l.heard()
				l.answeredAt.Store(max(l.answeredAt.Load(), int64(f.req)))
			}
			if f.code == codeLeft {
				l.knowsLeave.Store(true)
			}
			var ids []string
			if len(f.body) > 0 && json.Unmarshal(f.body, &ids) == nil {
				l.vouches.Store(&ids)
				l.membership.wake()
			}
			if known || l.answers.Load() { // one that has never accepted this node cannot have replaced it
				l.membership.confirm(int64(f.req), known)
			}
			continue
		}
		l.membership.n.pending.answer(uint32(f.req), answerOf(&f))
	}
	l.current.Store(nil)
	s.close()
	conn.Close()
	l.membership.n.pending.fail(s)
	writer.Wait()
}

// heard records a sign of life of the member.
func (l *link) heard() {
	now := l.membership.clock()
	l.membership.n.pauses.note(l.to.ID, l.heardAt.Swap(now), now, false)
}

// pingKind marks the answer of a ping.
const pingKind = "ping"

// unreachable reports whether the member answers no pings.
func (l *link) unreachable() bool {
	return l.membership.clock()-l.answeredAt.Load() > int64(unreachableAfter)
}

// answersNow reports whether the link to a member is up and the member has recently answered a ping; a nil link has no
// member. The caller holds the membership's lock.
func (l *link) answersNow() bool {
	return l != nil && l.taken && l.answers.Load() && l.current.Load() != nil && !l.unreachable() &&
		!l.dead.Load() && !l.barred.Load()
}

func (l *link) ping(s *connection) { s.put(&frame{op: opPing, req: uint64(l.membership.clock())}) }

// codeOf returns the code of an answer for an error of a call.
func codeOf(err error) uint64 {
	switch {
	case errors.Is(err, ErrBusy):
		return codeBusy
	case errors.Is(err, ErrCrashed):
		return codeCrashed
	case errors.Is(err, ErrKind):
		return codeKind
	}
	return codeElsewhere
}

func answerOf(f *frame) any {
	switch f.code {
	case codeOK:
	case codeBusy:
		return ErrBusy
	case codeCrashed:
		return ErrCrashed
	case codeKind:
		return ErrKind
	default:
		return errMoved
	}
	if f.typ == "" {
		return nil // to a release
	}
	m, err := f.message()
	if err != nil {
		return err
	}
	return m
}

// call sends a request to an actor on the member and returns its answer.
func (l *link) call(ctx context.Context, within time.Duration, f frame, msg proto.Message) (proto.Message, error) {
	s := l.current.Load()
	if s == nil || msg != nil && l.unreachable() {
		return nil, errElsewhere
	}
	if msg != nil {
		if err := f.carry(msg); err != nil {
			return nil, err
		}
		if len(f.body) > maxFrame-1024 {
			return nil, fmt.Errorf("cluster: a message of %d bytes", len(f.body))
		}
	}
	return l.membership.n.pending.await(ctx, within, s, func(id uint32) bool {
		f.req = uint64(id)
		return s.put(&f)
	})
}

// send sends a message without an answer. It may be lost.
func (l *link) send(f frame, msg proto.Message) {
	if s := l.current.Load(); s != nil && f.carry(msg) == nil {
		s.put(&f)
	}
}
