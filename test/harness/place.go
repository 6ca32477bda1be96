package harness

import (
	"maps"
	"strings"
	"testing"

	"castellan/internal/blackbox"
)

// Addresses of countries, and one that no table contains.
const (
	Turkey  = "78.160.0.1"
	States  = "8.8.8.8"
	Dutch   = "193.0.6.139"
	Nowhere = "203.0.113.7"
	Here    = "" // loopback, without a proxy in front
)

const CountriesPath = "/user/geofilter/countries"

// Place is a client at an address, behind a proxy that reports the address.
type Place struct {
	*blackbox.Node
	T  *testing.T
	IP string
}

func From(t *testing.T, n *blackbox.Node, ip string) Place { return Place{n, t, ip} }

func (p Place) With(headers blackbox.Headers) blackbox.Headers {
	all := blackbox.Headers{}
	if p.IP != Here {
		all["X-Forwarded-For"] = p.IP
	}
	maps.Copy(all, headers)
	return all
}

func (p Place) Ask(method, path string, body any, headers blackbox.Headers) blackbox.Answer {
	p.T.Helper()
	return p.Do(p.T, method, path, body, p.With(headers))
}

func (p Place) Complete(f blackbox.Flow, m blackbox.Method, value string) blackbox.Answer {
	p.T.Helper()
	return p.Ask("POST", blackbox.CompletePath, blackbox.CompleteBody(m, value), blackbox.Headers{"p-auth": f.PAuth})
}

func (p Place) Result(f blackbox.Flow) blackbox.Answer {
	p.T.Helper()
	return p.Ask("GET", blackbox.ResultPath, nil, blackbox.Headers{"p-auth": f.PAuth})
}

func (p Place) Login(a blackbox.Account) blackbox.Answer {
	p.T.Helper()
	return p.Ask("POST", "/auth/login", blackbox.LoginBody(a), nil)
}

// Session completes a login.
func (p Place) Session(a blackbox.Account) blackbox.Headers {
	p.T.Helper()
	f := blackbox.FlowOf(p.T, p.Login(a))
	got := p.Complete(f, f.Method(p.T, "SMS"), p.Code(p.T, a, "SMS")).Is(p.T, 200, "")
	return blackbox.Headers{"x-auth": got.Header.Get("x-auth")}
}

// Change starts a change of the filter.
func (p Place) Change(method, code string, me blackbox.Headers) blackbox.Flow {
	p.T.Helper()
	return blackbox.FlowOf(p.T, p.Ask(method, CountriesPath, map[string]string{"countryCode": code}, me))
}

// Changed completes a change of the filter.
func (p Place) Changed(method, code string, a blackbox.Account, me blackbox.Headers) blackbox.Flow {
	p.T.Helper()
	f := p.Change(method, code, me)
	final := blackbox.ReadFinal(p.T, p.Complete(f, f.Method(p.T, "SMS"), p.Code(p.T, a, "SMS")).Is(p.T, 200, ""))
	if want := map[string]string{"POST": "GEOFILTER_ADD",
		"DELETE": "GEOFILTER_REMOVE"}[method]; !final.ExecResult.Success ||
		final.Action != want ||
		final.ExecResult.Data != nil {
		p.T.Fatalf("%s %s: %+v", method, code, final)
	}
	return f
}

// Handshake sends the socket's handshake as a plain request, to read its refusal.
func (p Place) Handshake(f blackbox.Flow) blackbox.Answer {
	p.T.Helper()
	return p.Ask(
		"GET",
		"/2fa",
		nil,
		blackbox.Headers{"p-auth": f.PAuth, "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
			"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="},
	)
}

type country struct {
	ID                               int64
	UserID, CountryCode, CountryName string
	CreateDateTimeStamp              int64
	UpdateDateTimeStamp              int64
	FlagImage, IOSFlagImage          string
	PNGFlagImage                     string
}

func (p Place) Countries(me blackbox.Headers) (all []country) {
	p.T.Helper()
	p.Ask("GET", CountriesPath, nil, me).Is(p.T, 200, "").Read(p.T, &all)
	return all
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
