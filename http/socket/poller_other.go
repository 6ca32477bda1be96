//go:build !linux

package socket

import (
	"log/slog"
	"net"
)

// poller exists on Linux only; elsewhere every connection gets a goroutine.
type poller struct{}

func newPoller(*slog.Logger) *poller { return nil }

func (*poller) close()           {}
func (*poller) place(*conn)      {}
func (*poller) watch(*conn) bool { return false }
func (*poller) remove(*conn)     {}

func (c *conn) writeNow(batch net.Buffers) net.Buffers { return batch }
