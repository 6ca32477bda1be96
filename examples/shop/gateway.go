package main

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"
)

// Gateway asks the service about each request, as nginx does by auth_request. Its address must be in
// http.trusted_proxies of the service.
type Gateway struct {
	Castellan string // base URL
	Upstream  http.Handler
}

// asker asks the service. A redirect is an answer that no gateway follows.
var asker = &http.Client{Timeout: 15 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// ofClient are the headers that the gateway does not repeat in its question. They name another request, or belong to
// the connection of the client.
var ofClient = []string{"X-Original-Method", "X-Original-Uri", "X-Original-Host", "X-Forwarded-Method",
	"X-Forwarded-Uri", "X-Forwarded-Host", "X-Forwarded-Proto", "Forwarded", "Accept-Encoding", "Connection", "Upgrade",
	"Te", "Trailer", "Keep-Alive", "Expect"}

// ServeHTTP passes a request, or answers with the refusal of the service. Without an answer of the service nothing
// passes.
func (g Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, err := g.ask(r)
	if err != nil {
		slog.Error("the service did not answer", "error", err)
		http.Error(w, "the guard does not answer", http.StatusServiceUnavailable)
		return
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusNoContent:
		// The upstream trusts these headers, so those of the client are always replaced.
		for _, name := range []string{"castellan-user", "castellan-assertion"} {
			r.Header.Del(name)
			r.Header.Del(strings.ReplaceAll(name, "-", "_")) // the same variable to an upstream that speaks CGI
			if value := answer.Header.Get(name); value != "" {
				r.Header.Set(name, value)
			}
		}
		r.Header.Del("castellan-grant")
		g.Upstream.ServeHTTP(w, r)
	case http.StatusUnauthorized, http.StatusForbidden:
		for _, name := range []string{"Content-Type", "P-Auth", "WWW-Authenticate", "Retry-After"} {
			if value := answer.Header.Get(name); value != "" {
				w.Header().Set(name, value)
			}
		}
		w.WriteHeader(answer.StatusCode)
		_, _ = io.Copy(w, answer.Body) // the client is gone if that fails
	default:
		slog.Warn("the service refused", "status", answer.StatusCode)
		http.Error(w, "the guard does not answer", http.StatusServiceUnavailable)
	}
}

// ask sends the headers of a request to the service, with its method, target and host.
func (g Gateway) ask(r *http.Request) (*http.Response, error) {
	check, err := http.NewRequestWithContext(r.Context(), http.MethodGet, g.Castellan+"/guard/check", nil)
	if err != nil {
		return nil, err
	}
	check.Header = r.Header.Clone()
	for _, name := range ofClient {
		check.Header.Del(name)
	}
	check.Header.Set("X-Original-Method", r.Method)
	check.Header.Set("X-Original-URI", r.RequestURI)
	check.Header.Set("X-Original-Host", r.Host)
	if ip, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		check.Header.Set("X-Forwarded-For", ip)
	}
	return asker.Do(check)
}
