package socket

import (
	"log/slog"
	"net"
	"os"
	"sync"
	"syscall"
)

// poller reads many connections in one goroutine: the kernel reports which of them have data,
// so that an idle one needs neither a goroutine nor a buffer. They are most of the cost of a
// socket.
//
// The kernel's queue is itself a file that can be waited for, so the Go
// runtime does the waiting: no thread is blocked, and closing the file ends
// the loop. Connections stay with the runtime for writing.
type poller struct {
	file *os.File
	raw  syscall.RawConn
	done chan struct{}

	mu    sync.Mutex
	conns []*conn // by slot
	free  []int32
}

// newPoller starts a poller; nil if the system does not provide one. Every connection then gets a goroutine.
func newPoller(log *slog.Logger) *poller {
	p, err := openPoller()
	if err != nil {
		log.Warn("sockets are read by a goroutine each", "err", err)
		return nil
	}
	go p.run()
	return p
}

func openPoller() (*poller, error) {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if err := syscall.SetNonblock(fd, true); err != nil { // or the runtime would not wait for it
		syscall.Close(fd)
		return nil, os.NewSyscallError("set nonblocking", err)
	}
	p := &poller{file: os.NewFile(uintptr(fd), "epoll"), done: make(chan struct{})}
	if p.raw, err = p.file.SyscallConn(); err != nil {
		p.file.Close()
		return nil, err
	}
	return p, nil
}

// close ends the loop. Connections that are still there are not read any more.
func (p *poller) close() {
	if p != nil {
		p.file.Close()
		<-p.done
	}
}

// place prepares c for the poller. It must precede any other use of c.
func (p *poller) place(c *conn) {
	sc, ok := c.net.(syscall.Conn)
	if p == nil || !ok {
		return
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c.raw = raw
	if n := len(p.free); n > 0 {
		c.slot, p.free = p.free[n-1], p.free[:n-1]
		p.conns[c.slot] = c
	} else {
		c.slot = int32(len(p.conns))
		p.conns = append(p.conns, c)
	}
}

// watch begins to read c and reports whether it does.
func (p *poller) watch(c *conn) bool {
	if p == nil || c.slot < 0 {
		return false
	}
	event := syscall.EpollEvent{Events: syscall.EPOLLIN | syscall.EPOLLRDHUP, Fd: c.slot}
	var ended, err error
	p.mu.Lock() // the reader sees what was done to c before
	defer p.mu.Unlock()
	closed := p.raw.Control(func(queue uintptr) {
		ended = c.raw.Control(func(fd uintptr) { err = syscall.EpollCtl(int(queue), syscall.EPOLL_CTL_ADD, int(fd), &event) })
	})
	if ended != nil {
		return true // there is nothing to read
	}
	return closed == nil && err == nil
}

// remove forgets c. The kernel forgets a closed connection by itself, but may have reported it
// before: such a report for a reused slot causes a read without data.
func (p *poller) remove(c *conn) {
	if p == nil || c.slot < 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns[c.slot] == c {
		p.conns[c.slot] = nil
		p.free = append(p.free, c.slot)
	}
}

func (p *poller) run() {
	defer close(p.done)
	events := make([]syscall.EpollEvent, 128)
	buf := make([]byte, 4*maxFrame)
	for {
		ready := 0
		err := p.raw.Read(func(fd uintptr) bool {
			n, err := syscall.EpollWait(int(fd), events, 0)
			ready = max(n, 0)
			return n > 0 || err != nil && err != syscall.EINTR
		})
		if err != nil {
			return // closed
		}
		for _, e := range events[:ready] {
			p.mu.Lock()
			c := p.conns[e.Fd]
			p.mu.Unlock()
			if c != nil {
				c.readNow(buf)
			}
		}
	}
}

// readNow takes the arrived bytes that fit into buf; the kernel reports the rest again.
func (c *conn) readNow(buf []byte) {
	var n int
	var err error
	closed := c.raw.Read(func(fd uintptr) bool {
		n, err = syscall.Read(int(fd), buf)
		return true
	})
	switch {
	case closed == nil && n > 0:
		c.received(buf[:n])
	case closed == nil && (err == syscall.EAGAIN || err == syscall.EINTR):
	default:
		c.end()
	}
}

// writeNow writes as much of batch as the connection takes without waiting,
// and returns the rest.
func (c *conn) writeNow(batch net.Buffers) net.Buffers {
	if c.raw == nil {
		return batch
	}
	for len(batch) > 0 {
		var n int
		var err error
		closed := c.raw.Write(func(fd uintptr) bool {
			n, err = syscall.Write(int(fd), batch[0])
			return true
		})
		if closed != nil || err != nil {
			return batch // the goroutine that retries will find the reason
		}
		if n < len(batch[0]) {
			batch[0] = batch[0][n:]
			return batch
		}
		batch = batch[1:]
	}
	return nil
}
