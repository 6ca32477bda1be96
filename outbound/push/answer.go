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
	// maxAnswerBytes is read of a reply, so that the connection can be used
	// again; a longer one costs the connection.
	maxAnswerBytes = 4 << 10
	// maxRetryAfter keeps a slip of the other side from parking a message.
	maxRetryAfter = time.Hour
)

// judge lets the status of a reply decide. 410 means that a target is no more;
// so does 404 of a push service (RFC 8030, section 7.3), while a webhook may just
// be in the middle of its deployment.
func (s *Sender) judge(r *http.Response, kind string) error {
	defer r.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, maxAnswerBytes)) // only for the connection's sake
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

// retryAfter reads seconds or a date (RFC 9110, section 10.2.3); anything else
// and the past are 0.
func (s *Sender) retryAfter(v string) time.Duration {
	var wait time.Duration
	if seconds, err := strconv.ParseUint(v, 10, 31); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(v); err == nil {
		wait = at.Sub(s.cfg.Now())
	}
	return min(max(wait, 0), maxRetryAfter)
}

// reason puts a failure in words that hold nothing of the target, whose name and
// addresses are all over the errors of a connection.
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
