package blackbox

import (
	"maps"
	"strings"
	"testing"
)

// Addresses of countries.
const (
	Turkey = "78.160.0.1"
	Dutch  = "193.0.6.139"
	Here   = "" // loopback, without a proxy in front
)

// Place is a client at an address, behind a proxy that reports the address.
type Place struct {
	*Node
	T  *testing.T
	IP string
}

func From(t *testing.T, n *Node, ip string) Place { return Place{n, t, ip} }

func (p Place) With(headers Headers) Headers {
	all := Headers{}
	if p.IP != Here {
		all["X-Forwarded-For"] = p.IP
	}
	maps.Copy(all, headers)
	return all
}

func (p Place) Ask(method, path string, body any, headers Headers) Answer {
	p.T.Helper()
	return p.Do(p.T, method, path, body, p.With(headers))
}

func (p Place) Complete(f Flow, m Method, value string) Answer {
	p.T.Helper()
	return p.Ask("POST", CompletePath, CompleteBody(m, value), Headers{"p-auth": f.PAuth})
}

func (p Place) Result(f Flow) Answer {
	p.T.Helper()
	return p.Ask("GET", ResultPath, nil, Headers{"p-auth": f.PAuth})
}

func (p Place) Login(a Account) Answer {
	p.T.Helper()
	return p.Ask("POST", "/auth/login", LoginBody(a), nil)
}

// Session completes a login.
func (p Place) Session(a Account) Headers {
	p.T.Helper()
	f := FlowOf(p.T, p.Login(a))
	got := p.Complete(f, f.Method(p.T, "SMS"), p.Code(p.T, a, "SMS")).Is(p.T, 200, "")
	return Headers{"x-auth": got.Header.Get("x-auth")}
}

// RawStatus sends a request line unchanged, from the place, and returns the status.
func (p Place) RawStatus(target string, headers ...string) string {
	p.T.Helper()
	text := "GET " + target + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Forwarded-For: " + p.IP + "\r\n"
	for _, h := range headers {
		text += h + "\r\n"
	}
	return strings.Fields(p.Raw(p.T, text+"\r\n") + " none none")[1]
}
