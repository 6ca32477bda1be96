// Package audit describes what the service remembers about who did what to
// whom (decision D-EXT-03). A row is a Write like any other, so it commits
// with the change it reports; the chain that makes tampering evident is added
// by persistence, which alone knows the order of rows.
//
// Start reading at Record; Store is how it is read back.
package audit

import (
	"cmp"
	"context"
	"time"

	"castellan/domain/kit/page"
)

// Outcome of an audited step.
type Outcome string

// The outcomes.
const (
	Success Outcome = "success"
	Refused Outcome = "refused"
)

// Record is one audit row before it is chained. It holds no secret: no code,
// token, password or key, and no contact detail in the clear.
type Record struct {
	At        time.Time
	ActorID   string // who did it; "" for an unauthenticated caller
	UserID    string // whose account it concerns; the concealed phone where there is none
	Action    string // e.g. LOGIN, MFA_METHOD_ADD
	Target    string // the record concerned, e.g. a challenge id
	Outcome   Outcome
	IP        string
	RequestID string
	Detail    string // short, human readable
}

// By is who acts: an account, with the address and the request by which it does.
// What is not known is empty.
type By struct{ UserID, IP, RequestID string }

// Operator acts on the command line.
var Operator = By{UserID: "operator"}

// Did is r as an act of b, a success where r names no outcome.
func (b By) Did(r Record) Record {
	r.ActorID, r.IP, r.RequestID, r.Outcome = b.UserID, b.IP, b.RequestID, cmp.Or(r.Outcome, Success)
	return r
}

func (Record) Table() string { return "audit" }

// Stored is a chained row as it is read back.
type Stored struct {
	Record
	Chain string // start id and slot of the writer
	Seq   int64
	Hash  []byte // HMAC-SHA256(audit key, previous hash ‖ row)
}

// Place is where a row stands among all, of which the newest come first: by
// time, and within a millisecond by chain and number.
type Place struct {
	At    time.Time
	Chain string
	Seq   int64
}

func (s Stored) Mark() Place { return Place{At: s.At, Chain: s.Chain, Seq: s.Seq} }

// Query selects rows. What is zero selects nothing out.
type Query struct {
	UserID, ActorID, Action string
	RequestID, IP, Target   string
	From, To                time.Time // inclusive
}

// Store reads the audit. It is safe for concurrent use and passes
// audittest.TestStore.
type Store interface {
	// List returns a page of the selected rows, newest first.
	List(ctx context.Context, q Query, p page.Query[Place]) (page.Of[Stored], error)
}
