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
	checkConnsEvery = 30     // readings: certificates expire even if no file changes
	warnEvery       = 43_200 // readings: a day
	// RenewWithin is how long before its expiry a certificate should be renewed.
	RenewWithin = 30 * 24 * time.Hour
)

// CertificateEnds returns when this node's certificate expires; zero without keys.
func (n *Node) CertificateEnds() time.Time {
	if n.membership == nil || n.membership.o.Keys == nil {
		return time.Time{}
	}
	return n.membership.o.Keys.ends()
}

// Unmet returns the number of nodes in the gossip that have shown no member certificate, neither to this node nor to
// another member.
func (n *Node) Unmet() int64 { return n.unmet.Load() }

// TurnedAway counts the rejected incoming connections: those that no member opened.
func (n *Node) TurnedAway() int64 { return n.turnedAway.Load() }

// watchKeys reads the keys again when their files change. It closes connections whose certificate is no longer valid,
// and warns before the node's own certificate expires.
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
			ms.log.Warn("cluster: the changed keys are invalid; the previous keys stay in use", "err", err)
		case err == nil:
			complaint = ""
		}
		if changed {
			ms.log.Info("cluster: the keys were reloaded", "ends", ms.o.Keys.ends())
			ms.warnOfEnd(time.Now())
		}
		if changed || i%checkConnsEvery == 0 {
			ms.checkConns(time.Now())
		}
	}
}

// warnOfEnd warns of a certificate that expires soon: without one a node is no member.
func (ms *membership) warnOfEnd(now time.Time) {
	if ends := ms.o.Keys.ends(); ends.Sub(now) < RenewWithin {
		ms.log.Warn("cluster: this node's certificate expires soon; renew it", "ends", ends)
	}
}

// checkConns closes the connections, in either direction, whose other end is no member under the current keys.
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
			ms.log.Warn("cluster: a connection's certificate is no longer valid", "with", c.RemoteAddr().String(), "err", err)
			c.Close()
		}
	}
}
