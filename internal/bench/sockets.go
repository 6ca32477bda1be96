package main

import (
	"bufio"
	"bytes"
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

const (
	socketsEach   = 2  // challenges of an account, with a socket each: fewer than may be open
	socketDialers = 64 // concurrent handshakes
)

// sockets measures the memory of idle sockets and their challenges, on one node and on three, and the latency of an
// event meanwhile.
func sockets(b *bench) {
	settings := cheap("CASTELLAN_HTTP_MAX_CONNECTIONS=40000")
	b.report.begin("%d idle sockets, each of a challenge", socketsEach*socketAccounts())
	b.onEach(settings, 0, func(p *place, s *server) { b.idleSockets(p, p.name, []*server{s}) })
	if b.on == "sqlite" {
		return
	}
	p := b.postgresql(settings)
	defer p.bare.close()
	p.seed(1)
	three, err := b.cluster(p.environ, 3)
	for _, s := range three {
		defer s.stop()
	}
	must(err)
	b.idleSockets(p, "three nodes", three)
}

// socketAccounts returns how many accounts have sockets. The others are for the warm-up and for the events.
func socketAccounts() int { return people - people/50 }

// idleSockets opens the sockets and reports their memory: in the processes as they are, and after a collection. Nothing
// that later runs uses the challenges.
func (b *bench) idleSockets(p *place, name string, servers []*server) {
	collected := func() float64 {
		for _, s := range servers {
			must(s.order(orderCollect))
		}
		return float64(need(resident(servers...)))
	}
	n := socketAccounts()
	warm := need(challenges(servers, n, people)) // pools, prepared statements, grown tables
	must(need(openSockets(servers, warm))())
	time.Sleep(b.long(2 * time.Second))
	before := collected()
	tokens := need(challenges(servers, 0, n))
	started := collected()
	end := need(openSockets(servers, tokens))
	time.Sleep(b.long(25 * time.Second)) // each was pinged, and its challenge requested, once
	idle := need(resident(servers...))
	after := collected()
	of := series{}
	b.events(p, servers[0], n, of)
	must(end())
	each := func(more, less float64) []float64 { return []float64{(more - less) / float64(n*socketsEach) / 1e3} }
	r := &b.report
	r.line(name+": a socket and its challenge, as it is", "kB", each(float64(idle), before), bar{})
	r.line(name+": … after a collection", "kB", each(after, before), atMost(11))
	r.line(name+": … of it the socket", "kB", each(after, started), bar{})
	r.line(name+": bare durable commit", "ms", of["commit"], bar{})
	r.line(name+": from the answer to its event", "ms", of["event"], bar{})
}

// challenges starts the challenges of accounts, at the servers in turn, and returns their tokens.
func challenges(servers []*server, first, last int) ([]string, error) {
	tokens, failed := make([]string, (last-first)*socketsEach), make([]error, 16)
	var all sync.WaitGroup
	for part := range failed {
		all.Go(func() {
			v, err := newVisitor(servers[part%len(servers)])
			if err != nil {
				failed[part] = err
				return
			}
			defer v.Close()
			for i := part; i < len(tokens) && failed[part] == nil; i += len(failed) {
				_, failed[part] = v.login(first + i/socketsEach)
				tokens[i] = v.pAuth
			}
		})
	}
	all.Wait()
	return tokens, errors.Join(failed...)
}

// events measures the time from the answer to a method to its frame, in turn with a bare commit. It uses the accounts
// from first on.
func (b *bench) events(p *place, s *server, first int, of series) {
	v := need(newVisitor(s))
	defer v.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for i := range b.many(300, 100, 5) {
		v.event(ctx, p, first+i%(people-first), of)
	}
}

func (v *visitor) event(ctx context.Context, p *place, account int, of series) {
	method := need(v.login(account))
	code := need(v.s.codes.take(ctx, method, v.code))
	conn := need(dialSocket(v.s.addr, v.pAuth))
	defer conn.Close()
	one := insertTimes(p, 1, 1)
	began := time.Now()
	must(v.send("POST", completePath, "p-auth: "+v.pAuth, answerBody(method, code)))
	frame, err := nextFrame(conn)
	of.add("event", time.Since(began).Seconds()*1e3)
	of.add("commit", one[0]/1e3)
	if err == nil && !bytes.Contains(frame, []byte("METHOD_COMPLETE")) {
		err = fmt.Errorf("got the event %s", frame)
	}
	status, aerr := v.answer()
	if aerr == nil && status != 200 {
		aerr = v.refusal(status)
	}
	must(errors.Join(err, aerr))
}

// openSockets opens a socket for each token in separate processes, so that their cost is not that of the driver. They
// answer pings until end, which reports an error if some had ended before. The node of a socket is not always that of
// its challenge.
func openSockets(servers []*server, tokens []string) (end func() error, err error) {
	var all []*child.Process
	end = func() (err error) {
		for _, p := range all {
			err = errors.Join(err, p.End(time.Minute))
		}
		return err
	}
	for n, s := range servers {
		cmd, err := child.Self(childRole+"="+roleSockets, "CASTELLAN_HTTP_ADDR="+s.addr)
		if err != nil {
			return nil, errors.Join(err, end())
		}
		p, err := child.Interact(cmd)
		if err != nil {
			return nil, errors.Join(err, end())
		}
		all = append(all, p)
		for i, token := range tokens {
			if err == nil && i/socketsEach%len(servers) == n {
				err = p.Send(token)
			}
		}
		if line, aerr := p.Ask(""); line != "open" {
			return nil, errors.Join(err, aerr, errors.New("sockets: "+line), end())
		}
	}
	return end, nil
}

// holdSockets reads tokens up to an empty line, opens a socket for each, reports that, and keeps them open until its
// input ends.
func holdSockets(addr string, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	var tokens []string
	for lines.Scan() && lines.Text() != "" {
		tokens = append(tokens, lines.Text())
	}
	conns, failed := make([]net.Conn, len(tokens)), make([]error, len(tokens))
	var next, lost atomic.Int64
	var dialers sync.WaitGroup
	for range socketDialers {
		dialers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(tokens)); i = next.Add(1) - 1 {
				conns[i], failed[i] = dialSocket(addr, tokens[i])
			}
		})
	}
	dialers.Wait()
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	for _, c := range conns {
		go func() {
			for {
				if _, err := nextFrame(c); err != nil {
					fmt.Fprintln(os.Stderr, "a socket ended:", err)
					lost.Add(1)
					return
				}
			}
		}()
	}
	fmt.Fprintln(out, "open")
	for lines.Scan() {
	}
	if n := lost.Load(); n > 0 {
		return fmt.Errorf("%d of %d sockets had ended", n, len(conns))
	}
	return nil
}

// socket is a connection whose first frames may have arrived with the handshake.
type socket struct {
	net.Conn
	in io.Reader
}

func (s socket) Read(p []byte) (int, error) { return s.in.Read(p) }

func dialSocket(addr, token string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	d := ws.Dialer{ReadBufferSize: 512, WriteBufferSize: 512,
		Header: ws.HandshakeHeaderHTTP(http.Header{"p-auth": {token}})}
	c, early, _, err := d.Dial(ctx, "ws://"+addr+"/2fa")
	if err != nil || early == nil {
		return c, err
	}
	return socket{c, early}, nil
}

// nextFrame returns the payload of the next text frame, and answers pings before it. A close frame is an error.
func nextFrame(c net.Conn) ([]byte, error) {
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
