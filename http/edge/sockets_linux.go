package edge

import (
	"syscall"
	"time"
)

// setUserTimeout has the kernel end a connection whose client has not acknowledged sent bytes
// for the time d (tcp(7), TCP_USER_TIMEOUT).
func setUserTimeout(fd int, d time.Duration) {
	const tcpUserTimeout = 18
	_ = syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, tcpUserTimeout, int(d.Milliseconds()))
}
