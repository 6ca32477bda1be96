// Package audit describes the audit trail: which actor did which action on which account (decision D-EXT-03). A row is
// a Write like any other, so it commits with the change it reports. Persistence adds the chain that makes tampering
// evident, because only persistence knows the order of rows.
//
// Start reading at Record; Store reads the trail.
package audit

import (
	"cmp"
	"context"
	"time"

	"castellan/domain/kit/page"
)

// Outcome is the outcome of an audited step.
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
	ActorID   string // the actor; "" for an unauthenticated caller
	UserID    string // the affected account; the concealed phone number if there is none
	Action    string // e.g. LOGIN, MFA_METHOD_ADD
	Target    string // the affected record, e.g. a challenge id
	Outcome   Outcome
	IP        string
	RequestID string
	Detail    string // short, human readable
}

// By is the actor: an account, with the address and the request it acts from. Unknown parts are empty.
type By struct{ UserID, IP, RequestID string }

// ByService begins the user id of a service client: "service:wallet".
const ByService = "service:"

// Operator acts on the command line.
var Operator = By{UserID: "operator"}

// Did returns r as an action of b. If r names no outcome, the outcome is success.
func (b By) Did(r Record) Record {
	r.ActorID, r.IP, r.RequestID, r.Outcome = b.UserID, b.IP, b.RequestID, cmp.Or(r.Outcome, Success)
	return r
}

func (Record) Table() string { return "audit" }

// Stored is a chained row as read from the store.
type Stored struct {
	Record
	Chain string // start id and slot of the writer
	Seq   int64
	Hash  []byte // HMAC-SHA256(audit key, previous hash ‖ row)
}

// Place is the position of a row in the list, newest first: by time, and within a millisecond by chain and number.
type Place struct {
	At    time.Time
	Chain string
	Seq   int64
}

func (s Stored) Mark() Place { return Place{At: s.At, Chain: s.Chain, Seq: s.Seq} }

// Query selects rows. A zero field does not filter.
type Query struct {
	UserID, ActorID, Action string
	RequestID, IP, Target   string
	From, To                time.Time // inclusive
}

// Store reads the audit. It is safe for concurrent use.
type Store interface {
	// List returns a page of the matching rows, newest first.
	List(ctx context.Context, q Query, p page.Query[Place]) (page.Of[Stored], error)
}
