// Package porttest finds addresses for servers that a test starts.
package porttest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
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

// Find returns a loopback address without a listener. Its port is below those that the system assigns to connections,
// so that none takes it before the server does.
func Find() (string, error) {
	for range 100 {
		addr := fmt.Sprint("127.0.0.1:", 10_000+rand.IntN(20_000))
		if l, err := net.Listen("tcp", addr); err == nil {
			return addr, l.Close()
		}
	}
	return "", errors.New("no free port")
}
