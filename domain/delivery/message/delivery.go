package message

import (
	"context"
	"errors"
	"time"
)

// Sender sends one message out of the service. Implementations are safe for concurrent use and bound their own
// waiting.
//
// Delivery is at least once (D-EXT-05): after a failure with unknown effect the caller sends again with the same key.
// The message carries the key (Message-ID, idempotency header), so a repeat can be recognised. nil means that the
// next system took responsibility for the message. Every error is a *DeliveryError and holds neither content nor code
// nor recipient.
type Sender interface {
	Send(ctx context.Context, key string, m Rendered) error
}

// DeliveryError describes a failed delivery and whether a retry can help.
type DeliveryError struct {
	// Permanent: this message will never be accepted; do not repeat it.
	Permanent bool
	// RetryAfter is the minimum wait that the receiver requested; 0 if it requested none. Only temporary errors have
	// one.
	RetryAfter time.Duration
	// Gone: the destination no longer exists, for any message. Only permanent errors have it.
	Gone bool
	// Unsent: the receiver has certainly not accepted the message. A temporary error without it may hide a delivery.
	Unsent bool
	// Timeout: the receiver did not answer in time.
	Timeout bool
	Err     error
}

func (e *DeliveryError) Error() string {
	if e.Permanent {
		return "not deliverable: " + e.Err.Error()
	}
	return "not delivered for now: " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *DeliveryError) Unwrap() error { return e.Err }

// failed returns the failed delivery that err reports; the zero value if it reports none.
func failed(err error) DeliveryError {
	if d, ok := errors.AsType[*DeliveryError](err); ok {
		return *d
	}
	return DeliveryError{}
}

// IsPermanent reports whether err forbids a repeat. An error that is not a DeliveryError counts as temporary: a
// repeat carries the same key.
func IsPermanent(err error) bool { return failed(err).Permanent }

// IsUnsent reports whether the message was certainly not accepted.
func IsUnsent(err error) bool { return failed(err).Unsent || IsPermanent(err) }

// IsGone reports whether the destination no longer exists.
func IsGone(err error) bool { return failed(err).Gone && IsPermanent(err) }

// IsTimeout reports whether the receiver did not answer in time.
func IsTimeout(err error) bool { return failed(err).Timeout }
