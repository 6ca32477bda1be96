package app

import (
	"context"
	"log/slog"
	"net"

	"castellan/config"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/http/edge"
	"castellan/outbound/tracing"
	"castellan/persistence"
)

// newTracer returns nil if no collector is configured: then tracing is off and costs nothing.
func newTracer(c config.Config, version string, addr net.Addr, log *slog.Logger) (*tracing.Tracer, error) {
	if c.Tracing.Endpoint == "" {
		return nil, nil
	}
	headers := make(map[string]string, len(c.Tracing.Headers))
	for name, value := range c.Tracing.Headers {
		headers[name] = value.Reveal()
	}
	node := c.Cluster.ActorAddr
	if node == "" {
		node = addr.String()
	}
	return tracing.New(tracing.Config{Endpoint: c.Tracing.Endpoint, Headers: headers, Ratio: c.Tracing.SampleRatio,
		Version: version, Node: node, Log: log})
}

// committer returns the database as a Committer, traced if there is a tracer.
func committer(db *persistence.DB, c config.Database, t *tracing.Tracer) commit.Committer {
	if t == nil {
		return db
	}
	system := "postgresql"
	if _, lite := c.SQLitePath(); lite {
		system = "sqlite"
	}
	return tracing.Committer{Gathering: db, Tracer: t, System: system}
}

// traceRequests is the hook of the HTTP server; nil without a tracer.
func traceRequests(t *tracing.Tracer) func(context.Context, edge.Traceable) (context.Context, func(int, fault.Code)) {
	if t == nil {
		return nil
	}
	return func(ctx context.Context, q edge.Traceable) (context.Context, func(int, fault.Code)) {
		ctx, ended := t.Request(ctx, q.Key, q.Start, q.Parent, q.State, q.Trusted)
		return ctx, func(status int, code fault.Code) { ended(status, string(code)) }
	}
}
