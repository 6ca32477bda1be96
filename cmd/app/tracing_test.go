package app

import "testing"

// Without a collector there is no tracer: no hook, no goroutine, no committer in between.
func TestNoTracer(t *testing.T) {
	s := assembled(t)
	if s.tracer != nil || traceRequests(s.tracer) != nil || s.commit.Committer != committer(s.DB, s.cfg.Database, nil) {
		t.Error("something follows requests, and nobody asked for it")
	}
	if _, same := s.commit.Committer.(interface{ Close() error }); !same {
		t.Errorf("commits go by a %T", s.commit.Committer)
	}
}
