package push

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"castellan/domain/delivery/message"
	"castellan/outbound/fetch"
)

const (
	maxHeaderBytes = 16 << 10
	// maxRetryAfter limits the delay that a faulty receiver can cause.
	maxRetryAfter = time.Hour
)

// judge classifies the status of a response. 410 means that a target no longer exists. So does 404 of a push service
// (RFC 8030, section 7.3), while a webhook may return it during a deployment.
func (s *Sender) judge(r *http.Response, kind string) error {
	defer fetch.Drain(r)
	code := r.StatusCode
	out := &message.DeliveryError{Err: fmt.Errorf("push: target answered %d", code)}
	switch {
	case code >= 200 && code <= 299:
		return nil
	case code == http.StatusGone, code == http.StatusNotFound && kind == webPushKind:
		out.Permanent, out.Gone = true, true
	case code >= 500, code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests:
		out.RetryAfter = fetch.RetryAfter(r, s.cfg.Now(), maxRetryAfter)
	default:
		out.Permanent = true
	}
	return out
}

// reason describes a failure without the target, whose name and addresses appear in connection errors.
func reason(err error) string {
	_, nameless := errors.AsType[*net.DNSError](err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case errors.Is(err, fetch.ErrRefused):
		return fetch.ErrRefused.Error()
	case timedOut(err):
		return "no answer in time"
	case nameless:
		return "its name cannot be resolved"
	case untrusted:
		return "its certificate is not trusted"
	}
	return "the connection failed"
}

func timedOut(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}
