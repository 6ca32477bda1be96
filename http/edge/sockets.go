package edge

import (
	"log/slog"
	"syscall"
	"time"
)

// sendBuffer is the kernel's buffer for unread answers, in bytes; the kernel doubles it for
// its own overhead. With half of it an answer over the loopback waits for delayed
// acknowledgements (2 instead of 700 MB/s). The rest of an answer waits for its client, and so
// do the later requests of the connection.
const sendBuffer = 64 << 10

// filesReserved are the descriptors that connections may not take: they are for
// refused connections, the database, other nodes and files.
const filesReserved = turningAway + 256

// limitSending bounds how much of an unread answer the kernel keeps, and for how long,
// also after the connection was closed. Where the kernel cannot, its own bounds stay.
func (c *connection) limitSending(longest time.Duration) {
	_ = c.SetWriteBuffer(sendBuffer)
	if raw, err := c.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { setUserTimeout(int(fd), longest) })
	}
}

// clampConnections bounds MaxConnections by the limit of open files.
func (o *Options) clampConnections() {
	var files syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) != nil {
		return
	}
	if most := connectionsFor(files.Cur); o.MaxConnections > most {
		o.Logger.Warn("the limit of open files allows fewer connections than http.max_connections",
			slog.Int("max_connections", o.MaxConnections), slog.Uint64("open_files", files.Cur), slog.Int("limit", most))
		o.MaxConnections = most
	}
}

// connectionsFor is the number of connections that a number of descriptors allows.
func connectionsFor(files uint64) int {
	files = min(files, 1<<30)
	return int(max(files-min(files, filesReserved), files/2))
}
