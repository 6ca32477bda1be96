// Package porttest finds addresses for servers that a test starts.
package porttest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// Free returns a loopback address without a listener (Find).
func Free(t testing.TB) string {
	t.Helper()
	addr, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

const (
	lowest, span = 10_000, 20_000 // below the ports that the system assigns to connections, so that none takes one
	block        = 20
	mostBlocks   = 30
)

// A process owns the ports of its blocks while it listens at the first one of each. So no other process of a test run
// picks the same port before its server listens.
var (
	mu     sync.Mutex
	blocks []net.Listener
	next   int
)

// Find returns a loopback address without a listener.
func Find() (string, error) {
	mu.Lock()
	defer mu.Unlock()
	for range 1000 {
		at := next % (block * mostBlocks)
		if at/block == len(blocks) {
			first, err := listen(lowest + rand.IntN(span/block)*block)
			if err != nil {
				continue
			}
			blocks = append(blocks, first)
		}
		if next++; at%block == 0 {
			continue
		}
		if l, err := listen(blocks[at/block].Addr().(*net.TCPAddr).Port + at%block); err == nil {
			return l.Addr().String(), l.Close()
		}
	}
	return "", errors.New("no free port")
}

func listen(port int) (net.Listener, error) { return net.Listen("tcp", fmt.Sprint("127.0.0.1:", port)) }
