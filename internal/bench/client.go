package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
)

// client is one kept connection that sends a request and waits for the answer. It is as simple as HTTP permits, because
// the driver's processor time is lost to the service.
type client struct {
	net.Conn
	in   *bufio.Reader
	out  []byte
	body []byte // of the last answer

	// Headers of the last answer.
	pAuth, xAuth string
	retryAfter   string
	next         string // path of the next page; "" on the last one
}

func dial(addr string) (*client, error) { return dialFrom(addr, net.IPv4(127, 0, 0, 1)) }

// dialFrom is dial from an address of this machine.
func dialFrom(addr string, from net.IP) (*client, error) {
	c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: from}}).Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &client{Conn: c, in: bufio.NewReader(c)}, nil
}

// do sends a request and reads the answer; header is one whole line or "".
func (c *client) do(method, path, header, body string) (status int, err error) {
	if err := c.send(method, path, header, body); err != nil {
		return 0, err
	}
	return c.answer()
}

// expect is do for a request that must get this status.
func (c *client) expect(want int, method, path, header, body string) error {
	status, err := c.do(method, path, header, body)
	if err == nil && status != want {
		err = c.refusal(status)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

func (c *client) send(method, path, header, body string) error {
	o := append(c.out[:0], method...)
	o = append(
		append(append(o, ' '), path...),
		" HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench/1\r\nAccept-Language: en\r\nDevice-Brand: "+
			"Acme\r\nDevice-Model: One\r\n"...)
	if header != "" {
		o = append(append(o, header...), "\r\n"...)
	}
	if body != "" {
		o = append(o, "Content-Type: application/json\r\nContent-Length: "...)
		o = append(strconv.AppendInt(o, int64(len(body)), 10), "\r\n"...)
	}
	o = append(append(o, "\r\n"...), body...)
	c.out = o
	_, err := c.Write(o)
	return err
}

func (c *client) answer() (status int, err error) {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if len(line) < 12 {
		return 0, fmt.Errorf("not an answer: %q", line)
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, err
	}
	c.pAuth, c.xAuth, c.retryAfter, c.next = "", "", "", ""
	length := 0
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(value)); err != nil {
				return 0, err
			}
		case bytes.EqualFold(name, []byte("p-auth")):
			c.pAuth = string(value)
		case bytes.EqualFold(name, []byte("x-auth")):
			c.xAuth = string(value)
		case bytes.EqualFold(name, []byte("Retry-After")):
			c.retryAfter = string(value)
		case bytes.EqualFold(name, []byte("Link")):
			address, _, _ := bytes.Cut(value, []byte(">"))
			c.next = string(bytes.TrimPrefix(address, []byte("<")))
		}
	}
	if cap(c.body) < length {
		c.body = make([]byte, length)
	}
	c.body = c.body[:length]
	_, err = io.ReadFull(c.in, c.body)
	return status, err
}

// member returns the first value of a JSON member that is a plain string. A parser would cost the driver more than the
// answer costs the service.
func member(body []byte, name string) string {
	_, rest, ok := bytes.Cut(body, []byte(`"`+name+`":"`))
	if !ok {
		return ""
	}
	value, _, _ := bytes.Cut(rest, []byte{'"'})
	return string(value)
}

// refusal is an unexpected answer.
type refusal struct {
	status     int
	retryAfter string
	body       string
}

func (r refusal) Error() string { return fmt.Sprintf("answered %d: %s", r.status, r.body) }

// refusal returns the last answer as an error.
func (c *client) refusal(status int) error { return refusal{status, c.retryAfter, string(c.body)} }
