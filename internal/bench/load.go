package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// people is how many accounts log in, in turn, in one round: smokePeople with -smoke.
var people = 5000

const smokePeople = 200

// account returns the number of an account of a round. The account people is the administrator.
func account(round, i int) int { return round*(people+1) + i }

const password = "correct horse battery staple"

// loginBody returns the login of an account.
func loginBody(i int) string {
	return fmt.Sprintf(`{"countryCode":"90","phoneNumber":"%s","password":"%s"}`, phone(i), password)
}

func phone(i int) string { return fmt.Sprintf("533%07d", i) }

// visitor is one client that logs in over and over.
type visitor struct {
	*client
	s    *server
	code chan string
}

func newVisitor(s *server) (*visitor, error) { return visitorFrom(s, net.IPv4(127, 0, 0, 1)) }

func visitorFrom(s *server, from net.IP) (*visitor, error) {
	c, err := dialFrom(s.addr, from)
	if err != nil {
		return nil, err
	}
	return &visitor{client: c, s: s, code: make(chan string, 1)}, nil
}

// home returns the address of a client, in a separate network (/24).
func home(client int) net.IP { return net.IPv4(127, 1, byte(client), 1) }

// administrator is a client that has logged in as one; header is the line of the token.
func administrator(s *server) (v *visitor, header string) {
	v = need(newVisitor(s))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, _, err := v.flow(ctx, people)
	must(err)
	return v, "x-auth: " + v.xAuth
}

// login begins a challenge and names its method.
func (v *visitor) login(i int) (method string, err error) {
	status, err := v.do("POST", "/auth/login", "", loginBody(i))
	if err != nil {
		return "", err
	}
	if status != 200 || v.pAuth == "" {
		return "", v.refusal(status)
	}
	return member(v.body, "id"), nil
}

const completePath = "/auth/2fa/challenge/complete"

// answerBody returns the answer to a method of a challenge.
func answerBody(method, code string) string {
	return `{"methodId":"` + method + `","method":"SMS","value":"` + code + `"}`
}

// complete answers the challenge of the last login; the session's token is in xAuth.
func (v *visitor) complete(method, code string) error {
	status, err := v.do("POST", completePath, "p-auth: "+v.pAuth, answerBody(method, code))
	if err != nil {
		return err
	}
	if status != 200 || v.xAuth == "" {
		return v.refusal(status)
	}
	return nil
}

// flow is a whole login; it returns the time of each of the two steps.
func (v *visitor) flow(ctx context.Context, i int) (login, complete time.Duration, err error) {
	began := time.Now()
	method, err := v.login(i)
	login = time.Since(began)
	if err != nil {
		return 0, 0, fmt.Errorf("login: %w", err)
	}
	code, err := v.s.codes.take(ctx, method, v.code)
	if err != nil {
		return 0, 0, err
	}
	began = time.Now()
	if err := v.complete(method, code); err != nil {
		return 0, 0, fmt.Errorf("complete: %w", err)
	}
	return login, time.Since(began), nil
}

// window is the result of a period of load.
type window struct {
	took   time.Duration
	count  int64
	server time.Duration // processor time of the service,
	base   time.Duration // of the database's processes,
	driver time.Duration // of this one,
	others time.Duration // and of all other processes on this machine
}

func (w window) rate() float64 { return float64(w.count) / w.took.Seconds() }

// each returns a processor time per operation, in milliseconds.
func (w window) each(d time.Duration) float64 { return d.Seconds() * 1e3 / float64(w.count) }

// meter reads the processor time of all processes involved.
type meter struct {
	servers []*server
	base    int // the database's first process; 0: there is none
	count   *atomic.Int64
}

type reading struct {
	at                         time.Time
	count                      int64
	server, base, driver, busy time.Duration
}

func (m meter) read() (r reading, err error) {
	for _, s := range m.servers {
		used, err := cpu(s.PID(), false)
		if err != nil {
			return r, err
		}
		r.server += used
	}
	if m.base != 0 {
		if r.base, err = cpu(m.base, true); err != nil {
			return r, err
		}
	}
	r.at, r.count, r.driver, r.busy = time.Now(), m.count.Load(), own(), busy()
	return r, nil
}

func (m meter) during(what func() error) (window, error) {
	from, err := m.read()
	if err != nil {
		return window{}, err
	}
	if err := what(); err != nil {
		return window{}, err
	}
	to, err := m.read()
	w := window{
		took:   to.at.Sub(from.at),
		count:  to.count - from.count,
		server: to.server - from.server,
		base:   to.base - from.base,
		driver: to.driver - from.driver,
	}
	w.others = max(0, to.busy-from.busy-w.server-w.base-w.driver)
	return w, err
}

// opening begins a client of a load. step does its operations, one by one.
type opening func() (step func(ctx context.Context, i int) error, end func(), err error)

// load runs one loop per client until stop, and measures the period between warm and warm+span. The first error ends
// all.
func load(clients int, warm, span time.Duration, m meter, open opening) (window, error) {
	ctx, stop := context.WithTimeout(context.Background(), warm+span+30*time.Second)
	defer stop()
	var running sync.WaitGroup
	var mu sync.Mutex
	var failed error
	var next atomic.Int64
	done := make(chan struct{})
	var count atomic.Int64
	m.count = &count
	fail := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if failed == nil {
			failed = err
			stop()
		}
	}
	for range clients {
		step, end, err := open()
		if err != nil {
			return window{}, err
		}
		running.Go(func() {
			defer end()
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := step(ctx, int(next.Add(1))%people); err != nil {
					fail(err)
					return
				}
				count.Add(1)
			}
		})
	}
	wait := func(d time.Duration) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	err := wait(warm)
	var w window
	if err == nil {
		w, err = m.during(func() error { return wait(span) })
	}
	close(done)
	running.Wait()
	return w, errors.Join(failed, err)
}

// dialled begins clients with a connection each, to the servers in turn. do sends the i-th request.
func dialled(servers []*server, do func(c *client, i int) error) opening {
	turn := 0
	return func() (func(context.Context, int) error, func(), error) {
		turn++
		c, err := dial(servers[turn%len(servers)].addr)
		if err != nil {
			return nil, nil, err
		}
		return func(_ context.Context, i int) error { return do(c, i) }, func() { c.Close() }, nil
	}
}

// requests is load of single requests on one server.
func (b *bench) requests(s *server, do func(c *client, i int) error) (window, error) {
	only := []*server{s}
	return load(b.clients, b.long(time.Second), b.long(4*time.Second), meter{servers: only}, dialled(only, do))
}

// flows is load of whole logins by the first n accounts of a round. Each client has its own network and accounts, so
// that an account that has logged in before returns.
func flows(servers []*server, base, clients, round, n int, warm, span time.Duration) (window, error) {
	client := 0
	open := func() (func(context.Context, int) error, func(), error) {
		v, err := visitorFrom(servers[client%len(servers)], home(client))
		if err != nil {
			return nil, nil, err
		}
		first, i := client, client
		client++
		return func(ctx context.Context, _ int) error {
			_, _, err := v.flow(ctx, account(round, i))
			if i += clients; i >= n {
				i = first
			}
			return err
		}, func() { v.Close() }, nil
	}
	return load(clients, warm, span, meter{servers: servers, base: base}, open)
}

// firsts measures the first login of each of the first n accounts of a round.
func firsts(s *server, base, clients, round, n int) (window, error) {
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Minute)
	defer stop()
	visitors := make([]*visitor, clients)
	for k := range visitors {
		v, err := visitorFrom(s, home(k))
		if err != nil {
			return window{}, err
		}
		defer v.Close()
		visitors[k] = v
	}
	var count atomic.Int64
	return meter{servers: []*server{s}, base: base, count: &count}.during(func() error {
		failed := make([]error, clients)
		var running sync.WaitGroup
		for k, v := range visitors {
			running.Go(func() {
				for i := k; i < n && failed[k] == nil; i += clients {
					_, _, failed[k] = v.flow(ctx, account(round, i))
					count.Add(1)
				}
			})
		}
		running.Wait()
		return errors.Join(failed...)
	})
}
