package sms

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"castellan/domain/delivery/message"
	"castellan/outbound/fetch"
)

const (
	// maxAnswerBytes is how much of a response is read, so that the connection can be reused; a longer response costs
	// the connection.
	maxAnswerBytes = 64 << 10
	// maxRetryAfter limits the delay that a faulty gateway can cause.
	maxRetryAfter = 24 * time.Hour
)

// judge reads the response and classifies its status and, if success has a sign, its body. The body's text is not
// shown: gateways quote the text and the recipient.
func (s *Sender) judge(r *http.Response) error {
	defer r.Body.Close()
	body, err := io.ReadAll(io.LimitReader(r.Body, maxAnswerBytes)) // also so that the connection can be reused
	if s.success(r.StatusCode) {
		if !s.sign.needed() {
			return nil
		}
		if err != nil { // the message may have been accepted
			return &message.DeliveryError{Err: fmt.Errorf("sms: answer of the gateway broke off: %w", unquoted(err))}
		}
		if missing := s.sign.missing(body); missing != "" {
			return &message.DeliveryError{Permanent: true,
				Err: fmt.Errorf("sms: gateway answered %d without the sign of success: %s", r.StatusCode, missing)}
		}
		return nil
	}
	out := &message.DeliveryError{Permanent: true, Err: fmt.Errorf("sms: gateway answered %d", r.StatusCode)}
	switch code := r.StatusCode; {
	case code >= 500, code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests:
		out.Permanent = false
		out.Unsent = code == http.StatusServiceUnavailable || code < 500
		out.RetryAfter = fetch.RetryAfter(r, s.cfg.Now(), maxRetryAfter)
	}
	return out
}

func (s *Sender) success(code int) bool {
	if len(s.cfg.SuccessCodes) == 0 {
		return code >= 200 && code <= 299
	}
	return slices.Contains(s.cfg.SuccessCodes, code)
}
