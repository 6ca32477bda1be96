package cluster

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Whoever reaches the port may open a connection, so those that have not shown yet
// that a member opened them are few. When there are too many, one goes for the one
// that comes: a silent one first, as a member speaks at once, and then the oldest. The
// addresses of members have places of their own, which no other address takes (SEC-46).
const (
	maxStrangers     = 64 // under way at once, of addresses where no member is
	maxPerStranger   = 8  // of one such address
	maxPerMemberHost = 32 // of an address where a member is
	handshakeTime    = 2 * time.Second
)

// handshakes are the connections that are under way.
type handshakes struct {
	mu   sync.Mutex
	open []*arrival // the oldest first
}

// arrival is a connection with what it may be sent away for.
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

// begin takes a connection in, and closes another when there are too many.
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

// makeRoom closes one of the chosen when there are so many; the caller holds the lock.
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

// end takes a connection out; false: it was sent away.
func (h *handshakes) end(a *arrival) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.Index(h.open, a)
	if i >= 0 {
		h.open = slices.Delete(h.open, i, i+1)
	}
	return i >= 0
}

// origin is the address that a connection counts for: of IPv6 the network, which one
// host may have all of.
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

// memberIsAt reports whether a member is in that network; the gossip alone makes none.
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

// track remembers an open connection of a peer; false when the node stops.
func (ms *membership) track(c net.Conn) bool {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if ms.ctx.Err() != nil {
		return false
	}
	ms.conns[c] = false
	return true
}

// shown notes that a peer has shown its certificate.
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
