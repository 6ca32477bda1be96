package edge

import (
	"context"
	"log/slog"
	"net/netip"
	"regexp"
)

// report logs an answered request and notifies the observers.
func (s *Server) report(r *Request) {
	took := s.opts.Now().Sub(r.start)
	ctx := context.Background()
	if r.internal != nil {
		s.opts.Logger.LogAttrs(ctx, slog.LevelError, "request failed", r.withIDs(slog.String("route", r.key),
			slog.Int("status", r.status), slog.Any("err", r.internal))...)
	}
	level := s.opts.AccessLog
	if s.opts.Dev && r.status >= 400 {
		level = max(level, slog.LevelInfo)
	} else if r.refused != nil && r.refused.Limit != "" {
		s.capped(r)
	}
	if s.opts.Logger.Enabled(ctx, level) {
		s.opts.Logger.LogAttrs(ctx, level, "request", r.withIDs(r.withReason(slog.String("route", r.key),
			slog.Int("status", r.status), slog.String("code", string(r.code)), slog.Duration("took", took),
			slog.Any("ip", r.Caller.IP), slog.String("userId", r.Caller.UserID))...)...)
	}
	if s.opts.Observe != nil {
		s.opts.Observe(ctx, Answered{Endpoint: r.Endpoint, Key: r.key, Caller: r.Caller, Status: r.status, Code: r.code,
			Took: took})
	}
}

// fieldName matches the name of a field of the interface. A client may send any text as the name of an unknown field.
var fieldName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.\[\]-]{0,63}$`)

// withReason adds the invalid field of a refused request.
func (r *Request) withReason(attrs ...slog.Attr) []slog.Attr {
	if r.refused != nil && fieldName.MatchString(r.refused.Field) {
		attrs = append(attrs, slog.String("field", r.refused.Field))
	}
	if r.refused != nil && r.refused.Limit != "" {
		attrs = append(attrs, slog.String("limit", r.refused.Limit))
	}
	return attrs
}

// capped reports a refusal by a limit, at most once a minute for each limit.
func (s *Server) capped(r *Request) {
	line, _ := s.refusing.LoadOrStore(r.refused.Limit, &rateLimitedLog{})
	line.(*rateLimitedLog).warn(s.opts.Logger, "a limit refuses requests", slog.String("limit", r.refused.Limit),
		slog.String("route", r.key), slog.String("requestId", r.Caller.RequestID))
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

// unreadable reports a trusted proxy whose address of a client cannot be read. Its clients have the address of the
// proxy.
func (s *Server) unreadable(peer netip.Addr, entry string) {
	text := shape(entry)
	s.unread.Store(&text)
	s.forwards.warn(s.opts.Logger, "a trusted proxy writes an address of the client that cannot be read; the client has "+
		"the address of the proxy", slog.String("peer", peer.String()), slog.String("shape", text))
}

// Unreadable returns the shape of the newest address of a client that a trusted proxy wrote and that could not be read.
// The shape has 9 for each digit and a for each letter. It is "" if there was none.
func (s *Server) Unreadable() string {
	if text := s.unread.Load(); text != nil {
		return *text
	}
	return ""
}
