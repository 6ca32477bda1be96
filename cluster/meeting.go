package cluster

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// This file says who is a member. The gossip tells of nodes, and whoever has its key
// can tell of any. A node owns something, and is asked for it, once it has been met: a
// link to its address has shown a certificate with its name, and its process has seen
// this node's (SEC-46). A member also takes in whom another member has met: then a network that
// is cut between two of them does not give them different rings.

// meet opens the links to all whom the gossip tells of, and takes in those that are
// met or vouched for. It returns the members that this node has met, as JSON.
func (ms *membership) meet() []byte {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	vouched, met, unmet := map[string]bool{}, []string{}, 0
	for id, m := range ms.peers {
		l := ms.links[id]
		if l == nil {
			l = ms.newLink(m)
		}
		l.until = time.Time{}
		l.left.Store(m.Leaving)
		if !l.met.Load() || l.barred.Load() || l.dead.Load() {
			continue
		}
		met = append(met, id)
		if ids := l.vouches.Load(); ids != nil {
			for _, v := range *ids {
				vouched[v] = true
			}
		}
	}
	for id := range ms.peers {
		l := ms.links[id]
		if l.taken = l.taken || l.met.Load() || vouched[id]; !l.taken {
			unmet++
		}
	}
	ms.unmet.Store(int64(unmet))
	slices.Sort(met)
	text, err := json.Marshal(met)
	if err != nil {
		panic(err) // strings always can be written
	}
	return text
}

// giveUp takes a node out whom the gossip does not hear any more. On a starved machine a
// member is given up that only answered late, and comes back at once; its actors would
// move to and fro. So one that answers this node stays for doubtTime.
func (ms *membership) giveUp(id string) {
	ms.mu.Lock()
	if m, known := ms.peers[id]; known && !m.Leaving && ms.links[id].answersNow() {
		if _, doubted := ms.doubted[id]; !doubted {
			ms.doubted[id] = time.Now()
		}
	} else {
		delete(ms.doubted, id)
		delete(ms.peers, id)
	}
	ms.mu.Unlock()
	ms.wake()
}

func (ms *membership) dial(ctx context.Context, address string) (net.Conn, error) {
	if ms.o.Keys != nil {
		return (&tls.Dialer{Config: ms.o.Keys.config()}).DialContext(ctx, "tcp", address)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", address)
}

// awaitMembers waits until this node has met every member that the gossip tells of, or
// knows that it will not: what it has not met owns nothing in its eyes. When it meets
// nobody, they may be there all the same, and the witness is asked.
func (ms *membership) awaitMembers() {
	var silent map[string]Member
	met := false
	for end := time.Now().Add(dialTimeout); ; time.Sleep(2 * time.Millisecond) {
		ms.wake()
		silent = map[string]Member{}
		ms.mu.Lock()
		for id, m := range ms.peers {
			switch l := ms.links[id]; {
			case l != nil && (l.taken || l.met.Load()):
				met = true
			case l == nil || !l.dead.Load() && !l.barred.Load():
				silent[id] = m
			}
		}
		ms.mu.Unlock()
		if len(silent) == 0 || time.Now().After(end) || ms.ctx.Err() != nil {
			break
		}
	}
	if len(silent) > 0 && !met {
		ms.newcomer.Store(true)
		ms.mu.Lock()
		ms.unreachable = silent
		ms.mu.Unlock()
	}
}

// receive is the handshake with a peer, up to its hello. The name in its certificate
// must be the one in its id.
func (ms *membership) receive(conn net.Conn, r *bufio.Reader) (hello frame, buf []byte, err error) {
	if c, ok := conn.(*tls.Conn); ok {
		if err := c.HandshakeContext(ms.ctx); err != nil {
			return hello, nil, err
		}
	}
	if hello, buf, err = readFrame(r, nil); err != nil {
		return hello, nil, err
	}
	if hello.op != opHello {
		return hello, nil, errFrame
	}
	return hello, buf, checkName(conn, hello.id)
}

// awaitJoined holds the answer to a member's hello back while this node is joining:
// whom it answers sends it calls. Those that are joining themselves wait for it.
func (ms *membership) awaitJoined(hello *frame) {
	for end := time.Now().Add(dialTimeout); ms.joining.Load() && hello.code != codeJoining; time.Sleep(time.Millisecond) {
		if time.Now().After(end) || ms.ctx.Err() != nil {
			return
		}
	}
}

// isNoMember reports whether the other end has shown a certificate, and no member's.
func isNoMember(err error) bool {
	var chain *tls.CertificateVerificationError
	return errors.Is(err, errNotMember) || errors.As(err, &chain)
}

// checkName compares the name in the other end's certificate with the one in its id.
// An id of the program before this one has none.
func checkName(conn net.Conn, id string) error {
	c, ok := conn.(*tls.Conn)
	if !ok {
		return nil
	}
	name, err := memberName(c.ConnectionState().PeerCertificates[0])
	if err != nil {
		return err
	}
	if _, claimed, named := splitID(id); named && claimed != name {
		return fmt.Errorf("%w: it is %s's, and %s is claimed", errNotMember, name, claimed)
	}
	return nil
}

// newID is the id of a process that starts: where it is, when it began and its name.
func newID(address string, began time.Time, name string) string {
	id := fmt.Sprintf("%s~%016x", address, began.UnixNano())
	if name != "" {
		id += "~" + name
	}
	return id
}

// splitID takes an id apart.
func splitID(id string) (address, name string, named bool) {
	address, rest, _ := strings.Cut(id, "~")
	_, name, named = strings.Cut(rest, "~")
	return address, name, named
}
