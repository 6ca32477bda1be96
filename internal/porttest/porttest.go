// Package porttest finds addresses for servers that a test starts.
package porttest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Free is an address on loopback that nothing listens at. It lies below the ports
// that the system hands out by itself, so that no connection takes it before the
// server does.
func Free(t testing.TB) string {
	t.Helper()
	for range 100 {
		addr := fmt.Sprint("127.0.0.1:", 10_000+rand.IntN(20_000))
		if l, err := net.Listen("tcp", addr); err == nil {
			l.Close()
			return addr
		}
	}
	t.Fatal("no free port")
	return ""
}
