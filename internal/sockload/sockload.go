// Package sockload holds idle sockets open in a separate process. So the cost of sockets in a service can be measured
// without the cost in a client, and ten thousand readers do not disturb the measuring process.
//
// The one idea: the process is the program that calls Open, started once more. Child, first thing in main or TestMain,
// makes that second process the driver. Start reading at Open.
package sockload

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gobwas/ws"

	"castellan/internal/child"
)

// role names the variable that makes a started process the driver; its value is the address.
const role = "SOCKLOAD_ADDR"

// dialers is the number of concurrent handshakes.
const dialers = 64

// endTimeout is how long the driver has to report its sockets.
const endTimeout = time.Minute

// Open opens one socket of the service at addr (host:port) per p-auth token and returns when all of them are open. They
// answer pings and do nothing else until close, which reports an error if some had ended before.
//
// The calling program must call Child before anything else.
func Open(addr string, tokens []string) (close func() error, err error) {
	cmd, err := child.Self(role + "=" + addr)
	if err != nil {
		return nil, err
	}
	p, err := child.Interact(cmd)
	if err != nil {
		return nil, err
	}
	end := func() error {
		if err := p.End(endTimeout); err != nil {
			return fmt.Errorf("sockload: %w", err)
		}
		return nil
	}
	for _, t := range tokens {
		if err := p.Send(t); err != nil {
			return nil, errors.Join(err, end())
		}
	}
	line, err := p.Ask("")
	if line != "open" {
		return nil, errors.Join(errors.New("sockload: "+line), err, end())
	}
	return end, nil
}

// Child makes the process the driver if Open started it, and then does not return. In any other process it does
// nothing.
func Child() {
	addr := os.Getenv(role)
	if addr == "" {
		return
	}
	if err := drive(addr, os.Stdin, os.Stdout); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// drive reads tokens up to an empty line, opens a socket for each, reports that, and keeps them open until its input
// ends.
func drive(addr string, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	var tokens []string
	for lines.Scan() && lines.Text() != "" {
		tokens = append(tokens, lines.Text())
	}
	conns := make([]net.Conn, len(tokens))
	errs := make(chan error, len(tokens))
	next := atomic.Int64{}
	var wg sync.WaitGroup
	for range dialers {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(tokens)); i = next.Add(1) - 1 {
				var err error
				conns[i], err = Dial(addr, tokens[i])
				errs <- err
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return fmt.Errorf("open: %w", err)
		}
	}
	var lost atomic.Int64
	var reason atomic.Value // of one of them
	for _, c := range conns {
		go func() {
			for {
				if _, err := Next(c); err != nil {
					lost.Add(1)
					reason.Store(err.Error())
					return
				}
			}
		}()
	}
	if _, err := fmt.Fprintln(out, "open"); err != nil {
		return err
	}
	for lines.Scan() {
	}
	if n := lost.Load(); n > 0 {
		return fmt.Errorf("%d of %d sockets had ended, one with: %v", n, len(conns), reason.Load())
	}
	return nil
}

// Dial opens one socket.
func Dial(addr, token string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	d := ws.Dialer{
		ReadBufferSize:  512,
		WriteBufferSize: 512,
		Header:          ws.HandshakeHeaderHTTP(http.Header{"p-auth": {token}}),
	}
	c, early, _, err := d.Dial(ctx, "ws://"+addr+"/2fa")
	if err != nil {
		return nil, err
	}
	if early != nil {
		return &buffered{c, early}, nil
	}
	return c, nil
}

// buffered is a connection whose first frames arrived with the handshake.
type buffered struct {
	net.Conn
	r *bufio.Reader
}

func (b *buffered) Read(p []byte) (int, error) { return b.r.Read(p) }

// Next returns the payload of the next text frame, and answers pings before it. A close frame is an error that names
// its code.
func Next(c net.Conn) ([]byte, error) {
	for {
		h, err := ws.ReadHeader(c)
		if err != nil {
			return nil, err
		}
		payload := make([]byte, h.Length) // the other side is our own service
		if _, err := io.ReadFull(c, payload); err != nil {
			return nil, err
		}
		switch h.OpCode {
		case ws.OpText:
			return payload, nil
		case ws.OpPing:
			if _, err := c.Write(ws.MustCompileFrame(ws.MaskFrame(ws.NewPongFrame(payload)))); err != nil {
				return nil, err
			}
		case ws.OpClose:
			code, reason := ws.ParseCloseFrameData(payload)
			return nil, fmt.Errorf("closed with %d %s", code, reason)
		}
	}
}
