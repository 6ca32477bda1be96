package message

import (
	"context"
	"errors"
	"time"
)

// Sender hands one message to the outside. Implementations are safe for
// concurrent use and bound their own waiting.
//
// Delivery is at least once (D-EXT-05): after a failure whose effect is
// unknown the caller sends again with the same key, which travels along
// (Message-ID, idempotency header) so that a repeat can be recognised. nil
// means that the next system took responsibility for the message. Every error
// is a *DeliveryError and holds neither content nor code nor recipient.
type Sender interface {
	Send(ctx context.Context, key string, m Rendered) error
}

// DeliveryError reports whether trying again can help.
type DeliveryError struct {
	// Permanent: this message will never be accepted; do not repeat it.
	Permanent bool
	// RetryAfter is the least wait that the other side asked for; 0 when it
	// named none. Only temporary errors have one.
	RetryAfter time.Duration
	// Gone: the destination itself is no more, for any message. Only permanent
	// errors say so.
	Gone bool
	// Unsent: the other side has certainly not taken the message over. A temporary
	// error without it may hide a delivery.
	Unsent bool
	// Timeout: the other side did not answer in time.
	Timeout bool
	Err     error
}

func (e *DeliveryError) Error() string {
	if e.Permanent {
		return "not deliverable: " + e.Err.Error()
	}
	return "not delivered for now: " + e.Err.Error()
}

// Unwrap gives the cause.
func (e *DeliveryError) Unwrap() error { return e.Err }

// IsPermanent reports whether err forbids a repeat. An error that is no
// DeliveryError is taken as temporary: a repeat carries the same key.
func IsPermanent(err error) bool {
	var d *DeliveryError
	return errors.As(err, &d) && d.Permanent
}

// IsUnsent reports whether err says that the message was certainly not taken over.
func IsUnsent(err error) bool {
	var d *DeliveryError
	return errors.As(err, &d) && (d.Permanent || d.Unsent)
}

// IsGone reports whether err says that the destination is no more.
func IsGone(err error) bool {
	var d *DeliveryError
	return errors.As(err, &d) && d.Permanent && d.Gone
}

// IsTimeout reports whether err says that the other side did not answer in time.
func IsTimeout(err error) bool {
	var d *DeliveryError
	return errors.As(err, &d) && d.Timeout
}
