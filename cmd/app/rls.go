package app

import (
	"context"
	"crypto/tls"
	"net"

	"golang.org/x/net/netutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

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
	var options []grpc.ServerOption
	if of.RLSCertFile != "" {
		load := func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(of.RLSCertFile, of.RLSKeyFile)
			if err != nil {
				s.log.Warn("the certificate of limits.rls_addr cannot be read", "err", err)
			}
			return &pair, err
		}
		if _, err := load(nil); err != nil {
			return err
		}
		options = append(options, grpc.Creds(credentials.NewTLS(&tls.Config{GetCertificate: load,
			MinVersion: tls.VersionTLS12})))
	}
	server := h.Server(options...)
	l, err := net.Listen("tcp", of.RLSAddr)
	if err != nil {
		return err
	}
	l = netutil.LimitListener(l, rlsConnections)
	go func() {
		if err := server.Serve(l); err != nil {
			s.log.Error("the listener of limits.rls_addr failed", "err", err)
		}
	}()
	s.stopRLS = func(ctx context.Context) { // calls end until ctx is done
		defer context.AfterFunc(ctx, server.Stop)()
		server.GracefulStop()
	}
	return nil
}
