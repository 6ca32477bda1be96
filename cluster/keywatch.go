package cluster

import (
	"crypto/tls"
	"maps"
	"net"
	"slices"
	"time"
)

// Times of the keys of a running node.
const (
	readKeysEvery   = 2 * time.Second
	checkConnsEvery = 30     // readings: certificates end also when no file changes
	warnEvery       = 43_200 // readings: a day
	// RenewWithin is how long before its end a certificate should be renewed.
	RenewWithin = 30 * 24 * time.Hour
)

// CertificateEnds is when the certificate does that the node shows to others; zero
// without keys.
func (n *Node) CertificateEnds() time.Time {
	if n.membership == nil || n.membership.o.Keys == nil {
		return time.Time{}
	}
	return n.membership.o.Keys.ends()
}

// Unmet is how many nodes the gossip tells of that have shown no certificate of a
// member, neither here nor to a member.
func (n *Node) Unmet() int64 {
	if n.membership == nil {
		return 0
	}
	return n.membership.unmet.Load()
}

// TurnedAway counts the connections from others that no member made.
func (n *Node) TurnedAway() int64 {
	if n.membership == nil {
		return 0
	}
	return n.membership.turnedAway.Load()
}

// watchKeys reads the keys anew when their files change, closes connections whose
// certificate counts no longer, and warns before the node's own ends.
func (ms *membership) watchKeys() {
	tick := time.NewTicker(readKeysEvery)
	defer tick.Stop()
	complaint := ""
	for i := 0; ; i++ {
		if i%warnEvery == 0 {
			ms.warnOfEnd(time.Now())
		}
		select {
		case <-ms.ctx.Done():
			return
		case <-tick.C:
		}
		changed, err := ms.o.Keys.reload()
		switch {
		case err != nil && err.Error() != complaint:
			complaint = err.Error()
			ms.log.Warn("cluster: the changed keys cannot be used; those from before are", "err", err)
		case err == nil:
			complaint = ""
		}
		if changed {
			ms.log.Info("cluster: the keys were read anew", "ends", ms.o.Keys.ends())
			ms.warnOfEnd(time.Now())
		}
		if changed || i%checkConnsEvery == 0 {
			ms.checkConns(time.Now())
		}
	}
}

// warnOfEnd warns of a certificate that ends soon: without one a node is no member.
func (ms *membership) warnOfEnd(now time.Time) {
	if ends := ms.o.Keys.ends(); ends.Sub(now) < RenewWithin {
		ms.log.Warn("cluster: this node's certificate ends soon; renew it", "ends", ends)
	}
}

// checkConns closes the connections, of either direction, whose other end is no member
// by the keys of now.
func (ms *membership) checkConns(now time.Time) {
	ms.mu.Lock()
	var conns []net.Conn
	for c, shown := range ms.conns {
		if shown {
			conns = append(conns, c)
		}
	}
	links := slices.Collect(maps.Values(ms.links))
	ms.mu.Unlock()
	for _, l := range links {
		if s := l.current.Load(); s != nil {
			conns = append(conns, s.Conn)
		}
	}
	for _, c := range conns {
		secured, ok := c.(*tls.Conn)
		if !ok {
			continue
		}
		if err := ms.o.Keys.stillMember(secured.ConnectionState(), now); err != nil {
			ms.log.Warn("cluster: a connection's certificate counts no longer", "with", c.RemoteAddr().String(), "err", err)
			c.Close()
		}
	}
}
