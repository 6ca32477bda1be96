// Package outbox holds the messages to be sent because of a change (decisions D-EVT-01, D-2FA-29, D-EXT-05). A
// message is a row written with the change that causes it, so no message is lost and none is sent without its change.
// It is delivered afterwards, at least once, under a lease. The text is sealed: the row never holds a code or an
// address in plain text.
package outbox

import (
	"bytes"
	"context"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/kit/id"
)

// State is the state of a message.
type State int16

// The states. A discarded message is never sent: it belongs to a decoy or was held back by a cap. It is kept so that
// both look alike and caps can count it. If its cause proved nothing, it has a payload like any other, which is
// erased when it is settled.
const (
	Queued State = iota
	Sent
	Discarded
	Failed
	Expired
)

// Message is one row of the outbox.
type Message struct {
	ID          string // also the Message-ID or idempotency key at the provider
	ChallengeID string // "" for a notice
	MethodID    string
	Generation  int    // 0 for the first OTP of a method, +1 with each renewal
	UserID      string // or the subject of a decoy
	Channel     message.Channel
	Destination []byte // keyed hash of the canonical destination, for caps
	Prefix      string // IP prefix of its cause, for caps
	Dial        string // dialling prefix whose budget it uses; "" for none
	Proven      bool   // the cause had a session or a right password (D-EXT-05)
	Uncounted   bool   // no cap counts it, and the caps' indexes omit it
	State       State
	CreatedAt   time.Time
	ExpiresAt   time.Time // after it the payload is useless and erased
	Payload     []byte    // sealed message.Rendered; nil once erased
	LeaseUntil  time.Time
	Attempts    int
}

// Add inserts a message. The key (challenge, method, generation) is unique.
type Add struct{ Message }

func (Add) Table() string { return "outbox" }

// AddOnce is Add for a message that is created at most once per period. If the message exists, nothing is added and
// the unit still commits. NewOnce creates it.
type AddOnce struct {
	Message
	Earlier string    // the id of the previous period's message
	Since   time.Time // a message created after it prevents another
}

func (AddOnce) Table() string { return "outbox" }

// NewOnce sets the id of a message from its user, what and the period, which begins at a whole multiple of period. So
// the primary key lets only one node add it. The message of the previous period prevents it too, while it is younger
// than period.
func NewOnce(m Message, what string, period time.Duration) AddOnce {
	begin := m.CreatedAt.Truncate(period)
	m.ID = id.Of(begin, m.UserID, what)
	return AddOnce{Message: m, Earlier: id.Of(begin.Add(-period), m.UserID, what), Since: m.CreatedAt.Add(-period)}
}

// Settle ends a delivery: sent, failed, or to be retried at NextAt.
type Settle struct {
	ID      string
	State   State
	NextAt  time.Time // for Queued
	Keep    bool      // keep the payload (development outbox)
	At      time.Time
	Attempt int
}

func (Settle) Table() string { return "outbox" }

// Sending is a recent message, for the caps of a user.
type Sending struct {
	Destination []byte
	Proven      bool
	At          int64 // ms
}

// hashLen is the length of a destination's keyed hash.
const hashLen = 32

// First returns the hash by which the row of a message names its destination, the first of the concatenated hashes.
func First(hashes []byte) []byte { return hashes[:min(hashLen, len(hashes))] }

// To reports whether the message went to a destination, given all its keyed hashes of the past day, concatenated.
func (s Sending) To(hashes []byte) bool {
	for ; len(hashes) > hashLen; hashes = hashes[hashLen:] {
		if bytes.Equal(s.Destination, First(hashes)) {
			return true
		}
	}
	return bytes.Equal(s.Destination, hashes)
}

// Store is the storage for delivery and caps.
type Store interface {
	// Claim leases up to max queued messages that are due and not leased, and returns them with their payload. No two
	// claims return one message while its lease lasts.
	Claim(ctx context.Context, now time.Time, lease time.Duration, max int) ([]Message, error)
	// Usage, Spent and Sendings omit uncounted messages.

	// Usage counts the messages that an IP prefix caused without a proof in the hour before now, including discarded
	// ones; pushes do not count.
	Usage(ctx context.Context, now time.Time, prefix string) (int, error)
	// Spent counts the messages to a dialling prefix in the day before now, excluding discarded ones, and those of
	// them without a proof.
	Spent(ctx context.Context, now time.Time, dial string) (all, unproven int, err error)
	// Sendings lists the messages to a user since an instant, oldest first, excluding discarded ones and pushes.
	Sendings(ctx context.Context, userID string, since time.Time) ([]Sending, error)
	// Recent lists messages that still have a payload, newest first, excluding discarded ones. It lists those to a
	// destination, or all for nil, and at most limit unless that is 0.
	Recent(ctx context.Context, destination []byte, limit int) ([]Message, error)
	// Backlog returns how many messages are queued, including those that wait for a retry, and when the oldest was
	// created; the zero time without any.
	Backlog(ctx context.Context) (queued int, oldest time.Time, err error)
	// Erase marks queued messages that expired before now as Expired, and erases their payloads.
	Erase(ctx context.Context, now time.Time) error
	// Purge removes messages older than before, which no cap counts any more, except queued ones: these expire first.
	Purge(ctx context.Context, before time.Time) error
}
