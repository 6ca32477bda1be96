package cluster

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Any host that reaches the port can open a connection, so connections without a verified member are limited. When the
// limit is reached, a new connection replaces an old one: a silent one first, because a member speaks at once, and then
// the oldest. The addresses of members have their own slots, which no other address can use (SEC-46).
const (
	maxStrangers     = 64 // at once, from addresses without a member
	maxPerStranger   = 8  // from one such address
	maxPerMemberHost = 32 // from an address of a member
	handshakeTime    = 2 * time.Second
)

// handshakes are the connections that have not finished their handshake.
type handshakes struct {
	mu   sync.Mutex
	open []*arrival // the oldest first
}

// arrival is a connection with the properties that decide whether it is closed.
type arrival struct {
	net.Conn
	from   netip.Prefix
	member bool // it comes from a member's address
	spoke  atomic.Bool
}

func (a *arrival) Read(b []byte) (int, error) {
	n, err := a.Conn.Read(b)
	if n > 0 && !a.spoke.Load() {
		a.spoke.Store(true)
	}
	return n, err
}

// begin adds a connection, and closes another if there are too many.
func (h *handshakes) begin(conn net.Conn, member bool) *arrival {
	a := &arrival{Conn: conn, from: origin(conn), member: member}
	h.mu.Lock()
	defer h.mu.Unlock()
	most := maxPerStranger
	if member {
		most = maxPerMemberHost
	}
	h.makeRoom(most, func(o *arrival) bool { return o.from == a.from })
	if !member {
		h.makeRoom(maxStrangers, func(o *arrival) bool { return !o.member })
	}
	h.open = append(h.open, a)
	return a
}

// makeRoom closes one of the chosen connections if there are too many; the caller holds the lock.
func (h *handshakes) makeRoom(most int, chosen func(*arrival) bool) {
	count, goes := 0, -1
	for i, o := range h.open {
		if !chosen(o) {
			continue
		}
		count++
		if goes < 0 || h.open[goes].spoke.Load() && !o.spoke.Load() {
			goes = i
		}
	}
	if count >= most {
		h.open[goes].Close()
		h.open = slices.Delete(h.open, goes, goes+1)
	}
}

// end removes a connection; false: it was closed.
func (h *handshakes) end(a *arrival) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.Index(h.open, a)
	if i >= 0 {
		h.open = slices.Delete(h.open, i, i+1)
	}
	return i >= 0
}

// origin returns the address that a connection is counted under. For IPv6 it is the network, because one host may have
// all of its addresses.
func origin(conn net.Conn) netip.Prefix {
	at, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	return network(at.AddrPort().Addr())
}

func network(ip netip.Addr) netip.Prefix {
	ip = ip.Unmap().WithZone("")
	bits := 32
	if ip.Is6() {
		bits = 64
	}
	p, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return p
}

// memberIsAt reports whether a member is in that network; the gossip alone makes no member.
func (ms *membership) memberIsAt(p netip.Prefix) bool {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	for id, m := range ms.peers {
		if l := ms.links[id]; l == nil || !l.taken {
			continue
		}
		if m.gossipsAt == p {
			return true
		}
		if at, err := netip.ParseAddrPort(m.Address); err == nil && network(at.Addr()) == p {
			return true
		}
	}
	return false
}

// track records an open connection of a peer; false if the node is stopping.
func (ms *membership) track(c net.Conn) bool {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if ms.ctx.Err() != nil {
		return false
	}
	ms.conns[c] = false
	return true
}

// shown records that a peer has shown its certificate.
func (ms *membership) shown(c net.Conn) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	ms.conns[c] = true
}

func (ms *membership) untrack(c net.Conn) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	delete(ms.conns, c)
}
