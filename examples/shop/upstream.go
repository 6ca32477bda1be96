package main

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
)

//go:embed page
var embedded embed.FS

// Upstream is the shop. It pays out for each request that the gateway passes, and knows nothing of challenges.
func Upstream(castellan string) (http.Handler, error) {
	pages, err := newPages(castellan)
	if err != nil {
		return nil, err
	}
	var paid atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("POST /withdrawals", func(w http.ResponseWriter, r *http.Request) {
		user := r.Header.Get("castellan-user")
		if user == "" { // no route guards this path, so its user approved nothing
			http.Error(w, "no route guards withdrawals; make demo adds it", http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"withdrawal": paid.Add(1), "user": user,
			"amount": r.URL.Query().Get("amount"), "iban": r.URL.Query().Get("iban")})
	})
	mux.Handle("GET /", pages)
	return mux, nil
}

// newPages serves the page. It may talk to its own origin and to the service, and loads the client module of the
// service from its own origin.
func newPages(castellan string) (http.Handler, error) {
	service, err := url.Parse(castellan)
	if err != nil || service.Host == "" {
		return nil, fmt.Errorf("--castellan %q must be an address such as http://127.0.0.1:8080", castellan)
	}
	files, err := fs.Sub(embedded, "page")
	if err != nil {
		return nil, err
	}
	origin := service.Scheme + "://" + service.Host
	policy := fmt.Sprintf("default-src 'self'; connect-src 'self' %s %s; base-uri 'none'; form-action 'self'; "+
		"frame-ancestors 'none'", origin, strings.Replace(origin, "http", "ws", 1))
	module := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(service)
		r.Out.URL.Path = service.Path + "/static/castellan-client.js"
	}}
	mux := http.NewServeMux()
	mux.Handle("GET /castellan-client.js", module)
	mux.HandleFunc("GET /settings.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"castellan": castellan})
	})
	mux.Handle("GET /", http.FileServerFS(files))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Referrer-Policy", "no-referrer")
		mux.ServeHTTP(w, r)
	}), nil
}
