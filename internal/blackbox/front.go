package blackbox

import (
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
)

// Front is one address before the nodes of a site, like a load balancer of connections.
type Front struct {
	URL string

	mu sync.Mutex
	to []string
}

// NewFront passes each connection to one of the nodes, chosen at random.
func NewFront(t *testing.T, nodes ...*Node) *Front {
	t.Helper()
	l := storetest.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	f := &Front{URL: "http://" + l.Addr().String()}
	f.Route(nodes...)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go f.pass(c)
		}
	}()
	return f
}

// Route replaces the nodes. Open connections stay where they are.
func (f *Front) Route(nodes ...*Node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.to = f.to[:0:0]
	for _, n := range nodes {
		f.to = append(f.to, strings.TrimPrefix(n.URL, "http://"))
	}
}

// pass serves a connection. If its node accepts none, the client loses it.
func (f *Front) pass(c net.Conn) {
	defer c.Close()
	f.mu.Lock()
	to := ""
	if len(f.to) > 0 {
		// #nosec G404: any node serves any client.
		to = f.to[rand.IntN(len(f.to))]
	}
	f.mu.Unlock()
	n, err := net.DialTimeout("tcp", to, time.Second)
	if err != nil {
		return
	}
	defer n.Close()
	go func() {
		_, _ = io.Copy(n, c)
		n.Close()
	}()
	_, _ = io.Copy(c, n)
}
