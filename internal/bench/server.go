package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"castellan/internal/child"
	"castellan/internal/porttest"
)

// server is a child that serves.
type server struct {
	*child.Process
	addr  string
	codes *codes
}

// start runs this program in a role and returns when it answers. settings are added to the environment.
func start(role string, settings []string) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return launch(exec.Command(self), append(slices.Clone(settings), childRole+"="+role))
}

// launch starts a command that serves and returns when it answers. settings are added to the environment.
func launch(cmd *exec.Cmd, settings []string) (*server, error) {
	addr, err := porttest.Find()
	if err != nil {
		return nil, err
	}
	cmd.Env = append(append(environ(), settings...), "CASTELLAN_HTTP_ADDR="+addr,
		"CASTELLAN_HTTP_MAX_CONNECTIONS_PER_IP=0") // most clients have one address
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	cmd.ExtraFiles = []*os.File{w} // descriptor 3
	s := &server{addr: addr, codes: newCodes()}
	if s.Process, err = child.Interact(cmd); err != nil {
		return nil, err
	}
	go s.codes.read(r)
	if err := ready(addr); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// environ is the environment with the settings of the service, so that a bench can be run with additional CASTELLAN_…
// settings. The bench's own settings have priority. CASTELLAN_TEST_… is for tests and no setting.
func environ() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "CASTELLAN_TEST_") })
}

// order sends an order to the child.
func (s *server) order(words ...string) error {
	answer, err := s.Ask(strings.Join(words, " "))
	if err == nil && answer != "ok" {
		err = errors.New(answer)
	}
	return err
}

// stop stops the child gracefully.
func (s *server) stop() error { return s.End(30 * time.Second) }

// ready waits until /health/ready answers 200.
func ready(addr string) error {
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(500 * time.Microsecond) {
		if c, err := dial(addr); err == nil {
			err = c.expect(200, "GET", "/health/ready", "", "")
			c.Close()
			if err == nil {
				return nil
			}
		}
	}
	return fmt.Errorf("no answer from %s within a minute", addr)
}

// codes are the codes of messages for the users who log in, by the id of the method. The code or the request for it may
// come first.
type codes struct {
	mu     sync.Mutex
	came   map[string]string
	wanted map[string]chan string
	drop   bool
	to     *codes // of all nodes of a cluster
}

func newCodes() *codes { return &codes{came: map[string]string{}, wanted: map[string]chan string{}} }

// forget drops codes from now on: the load does not read them.
func (c *codes) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop = true
}

// passTo passes the codes from now on to others: any node of a cluster sends the message of a login.
func (c *codes) passTo(to *codes) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.to = to
}

// read reads lines "challenge.method.generation code".
func (c *codes) read(r io.ReadCloser) {
	defer r.Close()
	for lines := bufio.NewScanner(r); lines.Scan(); {
		key, code, _ := strings.Cut(lines.Text(), " ")
		c.deliver(key, code)
	}
}

// deliver passes the code of a message, whose key is "challenge.method.generation", to the login that waits for it.
func (c *codes) deliver(key, code string) {
	_, rest, _ := strings.Cut(key, ".")
	method, _, _ := strings.Cut(rest, ".")
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.to != nil {
		c.to.deliver(key, code)
	} else if to := c.wanted[method]; to != nil {
		delete(c.wanted, method)
		to <- code
	} else if !c.drop {
		c.came[method] = code
	}
}

// take waits for the code of a method.
func (c *codes) take(ctx context.Context, method string, to chan string) (string, error) {
	c.mu.Lock()
	code, ok := c.came[method]
	if ok {
		delete(c.came, method)
	} else {
		c.wanted[method] = to
	}
	c.mu.Unlock()
	if ok {
		return code, nil
	}
	select {
	case code := <-to:
		return code, nil
	case <-ctx.Done():
		return "", fmt.Errorf("no code came: %w", ctx.Err())
	}
}
