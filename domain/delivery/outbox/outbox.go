// Package outbox holds the messages that a change wants sent (decisions
// D-EVT-01, D-2FA-29, D-EXT-05). A message is a row written with the change
// that causes it, so that there is no lost and no phantom message; it is
// delivered afterwards, at least once, under a lease. The text is sealed: the
// row never holds a code or an address in the clear.
package outbox

import (
	"bytes"
	"context"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/kit/id"
)

// State of a message.
type State int16

// The states. A discarded message was born dead: it belongs to a decoy or met
// a cap, and is kept so that both look alike and caps can be counted. Where
// its cause proved nothing it has a payload like any other, which is
// erased when it is settled, and is never sent.
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
	Dial        string // dialling prefix with a budget that it spends; "" for none
	Proven      bool   // the cause held a session or a right password (D-EXT-05)
	Uncounted   bool   // no cap counts it: it is in no index of theirs
	State       State
	CreatedAt   time.Time
	ExpiresAt   time.Time // after it the payload is of no use and is erased
	Payload     []byte    // sealed message.Rendered; nil once erased
	LeaseUntil  time.Time
	Attempts    int
}

// Add inserts a message. The key (challenge, method, generation) is unique.
type Add struct{ Message }

func (Add) Table() string { return "outbox" }

// AddOnce is Add for a message of which one at most is made in a time. Where one is
// there nothing is added, and the unit stands. NewOnce makes it.
type AddOnce struct {
	Message
	Earlier string    // the id of the one before
	Since   time.Time // one made after it forbids another
}

func (AddOnce) Table() string { return "outbox" }

// NewOnce gives a message the id of what it tells whom in the time that began with a
// whole multiple of period: the primary key lets one node of many add it. The one of
// the time before forbids it too, while it is younger than period.
func NewOnce(m Message, what string, period time.Duration) AddOnce {
	begin := m.CreatedAt.Truncate(period)
	m.ID = id.Of(begin, m.UserID, what)
	return AddOnce{Message: m, Earlier: id.Of(begin.Add(-period), m.UserID, what), Since: m.CreatedAt.Add(-period)}
}

// Settle ends a delivery: sent, failed, or to be tried again at NextAt.
type Settle struct {
	ID      string
	State   State
	NextAt  time.Time // for Queued
	Keep    bool      // keep the payload (development outbox)
	At      time.Time
	Attempt int
}

func (Settle) Table() string { return "outbox" }

// Sending is a message of the recent past, for the caps of a user.
type Sending struct {
	Destination []byte
	Proven      bool
	At          int64 // ms
}

// hashLen is the length of a destination's keyed hash.
const hashLen = 32

// First is the hash by which the row of a message names its destination, of those
// that stand one behind the other.
func First(hashes []byte) []byte { return hashes[:min(hashLen, len(hashes))] }

// To reports whether the message went to a place, which is named by all the keyed
// hashes that it may have had in the past day, one behind the other.
func (s Sending) To(hashes []byte) bool {
	for ; len(hashes) > hashLen; hashes = hashes[hashLen:] {
		if bytes.Equal(s.Destination, First(hashes)) {
			return true
		}
	}
	return bytes.Equal(s.Destination, hashes)
}

// Store is what delivery and caps need of persistence.
type Store interface {
	// Claim leases up to max queued messages that are due and not leased, and
	// returns them with their payload. No two claims return one message while
	// its lease lasts.
	Claim(ctx context.Context, now time.Time, lease time.Duration, max int) ([]Message, error)
	// Usage, Spent and Sendings leave out what is uncounted.

	// Usage counts the messages, discarded ones included, that an IP prefix
	// caused without a proof in the hour before now; pushes do not count.
	Usage(ctx context.Context, now time.Time, prefix string) (int, error)
	// Spent counts the messages, discarded ones excluded, that went to a
	// dialling prefix in the day before now, and those of them without a proof.
	Spent(ctx context.Context, now time.Time, dial string) (all, unproven int, err error)
	// Sendings lists the messages, discarded ones and pushes excluded, that went
	// to a user since an instant, oldest first.
	Sendings(ctx context.Context, userID string, since time.Time) ([]Sending, error)
	// Recent lists messages that still have a payload, newest first, discarded
	// ones excluded: those to a destination, or all where it is nil; at most
	// limit, where that is not 0.
	Recent(ctx context.Context, destination []byte, limit int) ([]Message, error)
	// Backlog tells how many messages are queued, those that wait for another
	// try included, and when the oldest of them was made; the zero time when
	// there is none.
	Backlog(ctx context.Context) (queued int, oldest time.Time, err error)
	// Erase gives up the messages that expired before now, and their payloads.
	Erase(ctx context.Context, now time.Time) error
	// Purge removes messages older than before: nothing counts them any more.
	Purge(ctx context.Context, before time.Time) error
}
