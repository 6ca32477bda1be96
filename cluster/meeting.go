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

// This file decides which nodes are members. The gossip reports nodes, and any process with the gossip key can report
// any node. A node owns identities, and receives calls, once it has been met. That means: a link to its address has
// shown a certificate with its name, and its process has seen this node's certificate (SEC-46). A node also accepts a
// member that another member has met. So a broken connection between two of them does not give them different rings.

// meet opens the links to all nodes in the gossip, and accepts those that are met or vouched for. It returns the
// members that this node has met, as JSON.
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
	ms.n.unmet.Store(int64(unmet))
	slices.Sort(met)
	text, err := json.Marshal(met)
	if err != nil {
		panic(err) // strings can always be encoded
	}
	return text
}

// giveUp removes a node that the gossip has lost. On a starved machine the gossip may give up a member that only
// answered late and comes back at once; its actors would move back and forth. So a member that answers this node stays
// for doubtTime.
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

// dial connects to a member; without keys, unencrypted.
func dial(ctx context.Context, keys *Keys, address string) (net.Conn, error) {
	if keys != nil {
		return (&tls.Dialer{Config: keys.config()}).DialContext(ctx, "tcp", address)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", address)
}

// awaitMembers waits until this node has met every member in the gossip, or has learned that it cannot. In its view, a
// member that it has not met owns nothing. If it meets no member, other members may still exist, and it calls the
// witness.
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

// receive performs the handshake with a peer, up to its hello. The name in its certificate must match the one in its
// id.
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

// awaitJoined delays the answer to a member's hello while this node is joining, because the answer permits calls. Nodes
// that are joining themselves wait for it.
func (ms *membership) awaitJoined(hello *frame) {
	for end := time.Now().Add(dialTimeout); ms.joining.Load() && hello.code != codeJoining; time.Sleep(time.Millisecond) {
		if time.Now().After(end) || ms.ctx.Err() != nil {
			return
		}
	}
}

// isNoMember reports whether the other end has shown a certificate that belongs to no member.
func isNoMember(err error) bool {
	var chain *tls.CertificateVerificationError
	return errors.Is(err, errNotMember) || errors.As(err, &chain)
}

// checkName compares the name in the other end's certificate with the one in its id. An id of the previous version of
// the program has none.
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

// newID returns the id of a starting process: its address, its start time and its name.
func newID(address string, began time.Time, name string) string {
	id := fmt.Sprintf("%s~%016x", address, began.UnixNano())
	if name != "" {
		id += "~" + name
	}
	return id
}

// splitID splits an id into its parts.
func splitID(id string) (address, name string, named bool) {
	address, rest, _ := strings.Cut(id, "~")
	_, name, named = strings.Cut(rest, "~")
	return address, name, named
}
