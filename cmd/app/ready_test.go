package app

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"castellan/config"
)

// assembled is a service with all of its parts that does not listen.
func assembled(t *testing.T, edit ...func(*config.Config)) *service {
	t.Helper()
	cfg := config.Default()
	cfg.Dev, cfg.DataDir = true, t.TempDir()
	cfg.Password.Argon2MemoryKiB, cfg.Password.Argon2Time = 64, 1
	for _, e := range edit {
		e(&cfg)
	}
	cfg = cfg.Resolved()
	v, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	s := &service{cfg: cfg, o: Options{Log: slog.New(slog.DiscardHandler)}, log: slog.New(slog.DiscardHandler),
		Deployment: v}
	if err := s.build(t.Context(), &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}); err != nil {
		t.Fatal(err)
	}
	if err := s.node.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		s.node.Stop(ctx)
		s.leave()
		v.Close()
	})
	return s
}

// A node is ready if its database and an actor answer; either alone is not enough (D-EXT-01).
func TestReadiness(t *testing.T) {
	s := assembled(t)
	if err := s.ready(t.Context()); err != nil {
		t.Fatalf("a sound node: %v", err)
	}
	if got := s.node.Loads()["probe"].Activated; got != 1 {
		t.Errorf("%d activations of the probe: no actor was asked", got)
	}
	s.node.Stop(t.Context())
	if s.DB.Ping(t.Context()) != nil || s.ready(t.Context()) == nil {
		t.Error("ready, and no actor answers")
	}
	other := assembled(t)
	other.DB.Close()
	if other.client.Probe(t.Context()) != nil || other.ready(t.Context()) == nil {
		t.Error("ready, and no database answers")
	}
}
