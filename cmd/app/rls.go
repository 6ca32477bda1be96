package app

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"

	"golang.org/x/net/netutil"

	"castellan/http/guard/rls"
)

// rlsConnections is how many connections the listener of the rate limit service has at a time; others wait.
const rlsConnections = 256

// rateLimitService serves Envoy's rate limit service (D-WAF-22), if it has an address.
func (s *service) rateLimitService() error {
	of := s.cfg.Limits
	if of.RLSAddr == "" {
		return nil
	}
	s.server.App.Handler() // completes the routes, which the server would do only later
	h := rls.Handler{Serve: s.server.App.Server().Handler, Path: s.cfg.HTTP.BasePath + "/limit"}
	s.rls = h.Server()
	s.rls.ErrorLog = slog.NewLogLogger(s.log.Handler(), slog.LevelWarn)
	serve := s.rls.Serve
	if of.RLSCertFile != "" {
		load := func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(of.RLSCertFile, of.RLSKeyFile)
			return &pair, err
		}
		if _, err := load(nil); err != nil {
			return err
		}
		s.rls.TLSConfig = &tls.Config{GetCertificate: load, MinVersion: tls.VersionTLS12}
		serve = func(l net.Listener) error { return s.rls.ServeTLS(l, "", "") }
	}
	l, err := net.Listen("tcp", of.RLSAddr)
	if err != nil {
		return err
	}
	l = netutil.LimitListener(l, rlsConnections)
	go func() {
		if err := serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("the listener of limits.rls_addr failed", "err", err)
		}
	}()
	return nil
}
