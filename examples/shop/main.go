// Command shop is a small shop behind the guard for gateways (docs/guard.md). It has a page with a withdrawal form, an
// upstream of twenty lines, and a gateway in front of both. It needs no other program, so a newcomer sees the guard in
// two minutes. It is no gateway for production: deploy/gateways has the settings of those.
//
// The one idea: the upstream knows nothing of challenges. The gateway asks Castellan about each request, and passes the
// ones that need no challenge or carry the grant of one.
//
// Start reading at Gateway.ServeHTTP in gateway.go, then upstream.go and page/shop.js.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	if err := command(os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "shop:", err)
		os.Exit(1)
	}
}

func command(args []string) error {
	f := flag.NewFlagSet("shop", flag.ContinueOnError)
	listen := f.String("listen", "127.0.0.1:8085", "`address` of the shop; the service lists it in http.cors_origins")
	base := f.String("castellan", "http://127.0.0.1:8080", "base `URL` of the service")
	other := f.String("upstream", "", "base `URL` of an upstream of your own (default: the shop)")
	if err := f.Parse(args); err != nil {
		return err
	}
	upstream, err := upstreamOf(*base, *other)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	server := &http.Server{Addr: *listen, Handler: Gateway{*base, upstream}, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	slog.Info("the shop is open", "page", "http://"+*listen+"/", "service", *base)
	select {
	case err = <-failed:
		return err
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return server.Shutdown(end)
}

// upstreamOf returns the handler behind the gateway: the shop, or a server at another address.
func upstreamOf(castellan, other string) (http.Handler, error) {
	if other == "" {
		return Upstream(castellan)
	}
	u, err := url.Parse(other)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("--upstream %q must be an address such as http://127.0.0.1:9000", other)
	}
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(u)
		r.Out.Host = r.In.Host
	}}, nil
}
