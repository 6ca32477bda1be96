package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
)

// gateway is an SMS gateway that passes the codes of messages to the logins that wait for them. It accepts every
// request. Like client it uses as little of the driver's time as possible.
type gateway struct {
	listener net.Listener
	codes    *codes
}

func newGateway() (*gateway, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g := &gateway{listener: l, codes: newCodes()}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // it was closed
			}
			go g.serve(c)
		}
	}()
	return g, nil
}

// settings make a service in development mode send its SMS here.
func (g *gateway) settings() []string {
	return []string{"CASTELLAN_SMS_URL=http://" + g.listener.Addr().String() + "/", "CASTELLAN_SMS_FORMAT=json",
		"CASTELLAN_SMS_PARAMS=to={{to}},text={{text}}", "CASTELLAN_OUTBOX_WORKERS=64"}
}

// smsCode is the code in the text of a message.
var smsCode = regexp.MustCompile(`\b[0-9]{6}\b`)

// serve answers the requests of one connection until it ends.
func (g *gateway) serve(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		key, body, err := readMessage(in)
		if err != nil {
			return // the service closed the connection, and repeats unanswered requests
		}
		if code := smsCode.Find(body); code != nil {
			g.codes.deliver(key, string(code))
		}
		if _, err := c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")); err != nil {
			return
		}
	}
}

// readMessage reads a request; its idempotency key names the message.
func readMessage(in *bufio.Reader) (key string, body []byte, err error) {
	length := -1
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return "", nil, err
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
			break
		}
		name, value, _ := strings.Cut(string(line), ": ")
		switch {
		case strings.EqualFold(name, "Content-Length"):
			if length, err = strconv.Atoi(value); err != nil {
				return "", nil, err
			}
		case strings.EqualFold(name, "Idempotency-Key"):
			key = value
		}
	}
	if length < 0 || length > 1<<16 {
		return "", nil, errors.New("the length of the message is missing or too large")
	}
	body = make([]byte, length)
	_, err = io.ReadFull(in, body)
	return key, body, err
}
