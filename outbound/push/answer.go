package push

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"castellan/domain/delivery/message"
)

const (
	maxHeaderBytes = 16 << 10
	// maxAnswerBytes is how much of a response is read, so that the connection can be reused; a longer response costs
	// the connection.
	maxAnswerBytes = 4 << 10
	// maxRetryAfter limits the delay that a faulty receiver can cause.
	maxRetryAfter = time.Hour
)

// judge classifies the status of a response. 410 means that a target no longer exists. So does 404 of a push service
// (RFC 8030, section 7.3), while a webhook may return it during a deployment.
func (s *Sender) judge(r *http.Response, kind string) error {
	defer r.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, maxAnswerBytes)) // only so that the connection can be reused
	code := r.StatusCode
	out := &message.DeliveryError{Err: fmt.Errorf("push: target answered %d", code)}
	switch {
	case code >= 200 && code <= 299:
		return nil
	case code == http.StatusGone, code == http.StatusNotFound && kind == WebPush:
		out.Permanent, out.Gone = true, true
	case code >= 500, code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests:
		out.RetryAfter = s.retryAfter(r.Header.Get("Retry-After"))
	default:
		out.Permanent = true
	}
	return out
}

// retryAfter reads seconds or a date (RFC 9110, section 10.2.3); other values and past dates are 0.
func (s *Sender) retryAfter(v string) time.Duration {
	var wait time.Duration
	if seconds, err := strconv.ParseUint(v, 10, 31); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(v); err == nil {
		wait = at.Sub(s.cfg.Now())
	}
	return min(max(wait, 0), maxRetryAfter)
}

// reason describes a failure without the target, whose name and addresses appear in connection errors.
func reason(err error) string {
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, errRefused):
		return errRefused.Error()
	case timedOut(err):
		return "no answer in time"
	case errors.As(err, &name):
		return "its name cannot be resolved"
	case errors.As(err, &certificate):
		return "its certificate is not trusted"
	}
	return "the connection failed"
}

func timedOut(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}
