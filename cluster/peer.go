package cluster

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
)

// peer is the other end of a link: it receives the calls of one member. It is an actor process whose PID represents the
// remote caller, so an actor answers as it does on its own node.
type peer struct {
	membership *membership
	from       string
	queue      *frameQueue
	pid        *actor.PID
	told       *[]byte // the list of members that it was last sent
}

// maxPeers bounds the connections that members may have open here.
const maxPeers = 256

// accept serves the members that connect.
func (ms *membership) accept() {
	for {
		conn, err := ms.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(50 * time.Millisecond) // out of descriptors
			continue
		}
		a := ms.arrivals.begin(conn, ms.memberIsAt(origin(conn)))
		ms.background.Go(func() { ms.serve(a) })
	}
}

// serve reads frames until the connection ends. The worst effect of any input is the end of its own connection.
func (ms *membership) serve(a *arrival) {
	var conn net.Conn = a
	defer conn.Close()
	defer ms.arrivals.end(a)
	defer func() {
		if p := recover(); p != nil {
			ms.log.Warn("cluster: a peer sent an unreadable frame", "from", conn.RemoteAddr().String(),
				"panic", p, "stack", string(debug.Stack()))
		}
	}()
	if ms.o.Keys != nil {
		conn = tls.Server(a, ms.o.Keys.config())
	}
	if !ms.track(conn) {
		return
	}
	defer ms.untrack(conn)
	conn.SetDeadline(time.Now().Add(handshakeTime))
	r := bufio.NewReaderSize(conn, 64<<10)
	hello, buf, err := ms.receive(conn, r)
	if err != nil {
		ms.n.turnedAway.Add(1)
		ms.log.Debug("cluster: rejected a connection of a non-member", "from", conn.RemoteAddr().String(), "err", err)
		return
	}
	defer ms.serving.Add(-1)
	if ms.serving.Add(1) > maxPeers || !ms.arrivals.end(a) {
		return
	}
	ms.shown(conn)
	ms.awaitJoined(&hello)
	back := frame{op: opHello, id: ms.self.ID}
	if _, err := conn.Write(back.append(nil)); err != nil || hello.kind != ms.self.ID {
		return // it is meant for an earlier process at this address
	}
	p := &peer{membership: ms, from: hello.id, queue: newFrameQueue()}
	var ok bool
	if p.pid, ok = ms.n.sys.ProcessRegistry.Add(p, fmt.Sprintf("peer/%d", ms.peerNames.Add(1))); !ok {
		return
	}
	defer ms.n.sys.ProcessRegistry.Remove(p.pid)
	defer p.queue.close()
	ms.background.Go(func() { p.queue.run(conn) })
	for {
		conn.SetReadDeadline(time.Now().Add(readTimeout))
		var fr frame
		if fr, buf, err = readFrame(r, buf); err != nil {
			return
		}
		p.take(&fr)
	}
}

// take handles one frame. It never waits: the frames behind it are for others.
func (p *peer) take(fr *frame) {
	ms, key := p.membership, identity{fr.kind, fr.id}
	switch fr.op {
	case opPing:
		code := uint64(codeOK)
		switch m, ok := (*ms.known.Load())[p.from]; {
		case !ok:
			code = codeStranger
		case m.Leaving && !ms.ring.Load().has(p.from):
			code = codeLeft
		}
		answer := frame{op: opAnswer, req: fr.req, kind: pingKind, code: code}
		if met := ms.met.Load(); met != p.told {
			p.told, answer.body = met, *met
		}
		p.queue.put(&answer)
	case opCall:
		msg, err := fr.message()
		if err != nil {
			p.answer(fr.req, codeKind)
			return
		}
		req, along := fr.req, fr.trace
		p.reach(key, func() { p.call(key, req, along, msg) })
	case opTell:
		if msg, err := fr.message(); err == nil {
			p.reach(key, func() { ms.sendHere(key, msg) })
		}
	case opTellLive:
		if msg, err := fr.message(); err == nil {
			ms.n.sendToActive(key, msg)
		}
	case opPost:
		if msg, err := fr.message(); err == nil {
			ms.n.receive(fr.kind, msg)
		}
	case opAsk:
		p.receiveAsk(fr)
	case opStatus:
		if text, err := json.Marshal(ms.n.Status()); err == nil {
			p.queue.put(&frame{op: opAnswer, req: fr.req, body: text})
		}
	case opRelease:
		req := fr.req
		ms.background.Go(func() {
			ms.release(key)
			p.answer(req, codeOK)
		})
	}
}

// reach runs do, on a separate goroutine if do may have to wait for former owners.
func (p *peer) reach(key identity, do func()) {
	if p.membership.n.find(key) != nil || !p.membership.unsettled() {
		do()
		return
	}
	p.membership.background.Go(do)
}

// call passes a member's request to the activation here.
func (p *peer) call(key identity, req uint64, along string, msg proto.Message) {
	if k := p.membership.n.hosted(key.kind); k != nil {
		p.turn(k, key, req, along, msg)
		return
	}
	slot, err := p.membership.entered(key)
	if err != nil {
		p.answer(req, codeOf(err))
		return
	}
	p.membership.n.sys.Root.Send(slot.pid, question(msg, p.pid, uint32(req), along))
}

func (p *peer) answer(req, code uint64) { p.queue.put(&frame{op: opAnswer, req: req, code: code}) }

// SendUserMessage receives the answer of an actor.
func (p *peer) SendUserMessage(pid *actor.PID, msg any) {
	if env, ok := msg.(*actor.MessageEnvelope); ok {
		msg = env.Message
	}
	p.send(uint64(pid.RequestId), msg)
}

// send sends the answer of an actor or a receiver.
func (p *peer) send(req uint64, msg any) {
	fr := frame{op: opAnswer, req: req, code: codeElsewhere}
	switch m := msg.(type) {
	case *actor.DeadLetterResponse: // a proto.Message like any other
	case proto.Message:
		if fr.code = codeOK; fr.carry(m) != nil {
			fr.code = codeCrashed
		}
	case error:
		fr.code = codeOf(m)
	}
	p.queue.put(&fr)
}

func (p *peer) SendSystemMessage(*actor.PID, any) {}

func (p *peer) Stop(*actor.PID) {}
