package edge

import (
	"context"
	"log/slog"
)

// report logs an answered request and notifies the observers.
func (s *Server) report(r *Request) {
	took := s.opts.Now().Sub(r.start)
	ctx := context.Background()
	if r.internal != nil {
		s.opts.Logger.LogAttrs(ctx, slog.LevelError, "request failed", r.withIDs(slog.String("route", r.key),
			slog.Int("status", r.status), slog.Any("err", r.internal))...)
	}
	if s.opts.Logger.Enabled(ctx, s.opts.AccessLog) {
		s.opts.Logger.LogAttrs(ctx, s.opts.AccessLog, "request", r.withIDs(slog.String("route", r.key),
			slog.Int("status", r.status), slog.String("code", string(r.code)), slog.Duration("took", took),
			slog.Any("ip", r.Caller.IP), slog.String("userId", r.Caller.UserID))...)
	}
	if s.opts.Observe != nil {
		s.opts.Observe(ctx, Answered{Endpoint: r.Endpoint, Key: r.key, Caller: r.Caller, Status: r.status, Code: r.code,
			Took: took})
	}
}

// withIDs adds the ids of a request: our own, as in the answer and the audit, and the client's,
// which can be any text.
func (r *Request) withIDs(attrs ...slog.Attr) []slog.Attr {
	attrs = append(attrs, slog.String("requestId", r.Caller.RequestID))
	if r.clientID != "" {
		attrs = append(attrs, slog.String("clientRequestId", r.clientID))
	}
	return attrs
}
