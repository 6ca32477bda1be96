package servicekey

import (
	"context"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"castellan/domain/kit/code"
	"castellan/domain/kit/fault"
)

// The limits of a key's scope.
const (
	maxActions  = 64
	maxCallback = 512 // bytes
)

// checkScope returns INVALID_FIELD for actions or a callback that a key cannot have. The key keeps the actions that it
// had: one of an earlier version may have no record.
func (s *Service) checkScope(ctx context.Context, n New, had []string) error {
	if len(n.Actions) > maxActions {
		return fault.Invalid("actions", "must be at most %d codes", maxActions)
	}
	for i, action := range n.Actions {
		if !code.Valid(action) || slices.Contains(n.Actions[:i], action) {
			return fault.Invalid("actions", "must be different codes of actions")
		}
		if slices.Contains(had, action) {
			continue
		}
		known, err := s.Action(ctx, action)
		if err != nil {
			return err
		}
		if !known {
			return fault.Invalid("actions", "must be actions for services; create them first")
		}
	}
	switch {
	case n.Callback == "":
		return nil
	case len(n.Actions) == 0:
		return fault.Invalid("callback", "must not be sent without actions")
	case !s.callable(n.Callback):
		return fault.Invalid("callback", "must be an https URL without user and fragment")
	}
	return nil
}

// callable reports whether a callback may be called: https, or http to loopback where that is permitted.
func (s *Service) callable(text string) bool {
	u, err := url.Parse(text)
	if err != nil || len(text) > maxCallback || u.Hostname() == "" || u.User != nil || u.Fragment != "" ||
		strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && s.AllowPlain && loopback(u.Hostname())
}

func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && a.Unmap().IsLoopback()
}
