package main

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/http"
	"net/mail"
	"net/netip"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

type sinkCmd struct {
	SMS  string `name:"sms" help:"Loopback address of the SMS gateway." default:"127.0.0.1:8025"`
	Mail string `help:"Loopback address of the mail server." default:"127.0.0.1:8026"`
}

func (sinkCmd) Help() string {
	return `Plays an SMS gateway and a mail server for a trial, and prints each message in one line.
It sends nothing. Set sms.url to http://ADDRESS/ and mail.host, mail.port and mail.tls: none.
It accepts loopback addresses only, because the messages contain codes.`
}

func (c sinkCmd) Run(e *env) error {
	for _, addr := range []string{c.SMS, c.Mail} {
		if a, err := netip.ParseAddrPort(addr); err != nil || !a.Addr().IsLoopback() {
			return fmt.Errorf("%q is not a loopback address with a port, such as 127.0.0.1:8025", addr)
		}
	}
	s := sink{out: e.out}
	failed := make(chan error, 2)
	for _, one := range []struct {
		addr  string
		serve func(net.Listener) error
	}{{c.SMS, s.serveSMS}, {c.Mail, s.serveMail}} {
		l, err := net.Listen("tcp", one.addr)
		if err != nil {
			return err
		}
		defer l.Close()
		go func() { failed <- one.serve(l) }()
	}
	select {
	case <-e.ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}

// sink prints messages.
type sink struct {
	mu  sync.Mutex
	out io.Writer
}

// print writes a message as one line of printable text.
func (s *sink) print(parts ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintln(s.out, strings.Join(strings.Fields(strings.Join(parts, " ")), " "))
}

// sinkIdle is how long a connection may be silent, and maxLetter the length of a message in bytes.
const (
	sinkIdle  = time.Minute
	maxLetter = 1 << 20
)

func (s *sink) serveSMS(l net.Listener) error {
	server := http.Server{ReadTimeout: sinkIdle, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxLetter))
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		parts := []string{"sms"}
		query := r.URL.Query()
		if form, err := url.ParseQuery(string(body)); err == nil &&
			strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
			for name, values := range form {
				query[name] = append(query[name], values...)
			}
		} else {
			parts = append(parts, string(body))
		}
		for _, name := range slices.Sorted(maps.Keys(query)) {
			parts = append(parts, name+"="+strings.Join(query[name], ","))
		}
		s.print(parts...)
	})}
	return server.Serve(l)
}

func (s *sink) serveMail(l net.Listener) error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			s.converse(c)
		}()
	}
}

// converse is the server's side of SMTP (RFC 5321), without extensions.
func (s *sink) converse(c net.Conn) {
	t := textproto.NewConn(c)
	say := func(text string) bool { return t.PrintfLine("%s", text) == nil }
	if !say("220 castellan sink") {
		return
	}
	for {
		if c.SetDeadline(time.Now().Add(sinkIdle)) != nil {
			return
		}
		line, err := t.ReadLine()
		if err != nil {
			return
		}
		verb, _, _ := strings.Cut(strings.ToUpper(line), " ")
		answer := "250 ok"
		switch verb {
		case "DATA":
			if !say("354 end with a dot") {
				return
			}
			text, err := io.ReadAll(io.LimitReader(t.DotReader(), maxLetter+1))
			if err != nil || len(text) > maxLetter {
				return
			}
			s.letter(string(text))
		case "QUIT":
			say("221 bye")
			return
		case "EHLO", "HELO", "MAIL", "RCPT", "RSET", "NOOP":
		default:
			answer = "502 not supported"
		}
		if !say(answer) {
			return
		}
	}
}

// letter prints a mail: its recipient, its subject and its plain text.
func (s *sink) letter(text string) {
	m, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		s.print("mail", text)
		return
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	if err != nil {
		subject = m.Header.Get("Subject")
	}
	body, err := plainText(textproto.MIMEHeader(m.Header), bufio.NewReader(m.Body))
	if err != nil {
		body = err.Error()
	}
	s.print("mail", "to="+m.Header.Get("To"), "subject="+subject, "text="+body)
}

// plainText returns the first plain text of a mail.
func plainText(h textproto.MIMEHeader, body io.Reader) (string, error) {
	kind, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err == nil && strings.HasPrefix(kind, "multipart/") {
		parts := multipart.NewReader(body, params["boundary"])
		for {
			p, err := parts.NextRawPart()
			if err != nil {
				return "", errors.New("without plain text")
			}
			if text, err := plainText(p.Header, p); err == nil {
				return text, nil
			}
		}
	}
	if err == nil && kind != "text/plain" {
		return "", errors.New("without plain text")
	}
	switch strings.ToLower(h.Get("Content-Transfer-Encoding")) {
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	}
	text, err := io.ReadAll(body)
	return string(text), err
}
