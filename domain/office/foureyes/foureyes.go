// Package foureyes owns requests that are carried out once a second person has
// approved them (decision D-EXT-08).
//
// The one idea: such a request stands sealed, beside words that say what it would
// change. Its approval, its effect and its outcome are one transaction, in which the
// row of the request is held: whoever comes later finds it decided.
//
// Start reading at Service.
package foureyes

import (
	"strings"
	"time"
	"unicode/utf8"

	"castellan/domain/access/mfa"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/money/ledger"
)

// ActionApprove is the action of the challenge in front of an approval.
const ActionApprove = mfa.ApproveRequest

// Status of a request.
type Status string

// The statuses. Expired is stored as Pending: time alone makes it.
const (
	Pending  Status = "PENDING"
	Approved Status = "APPROVED"
	Refused  Status = "REFUSED"
	Expired  Status = "EXPIRED"
	Failed   Status = "FAILED" // it was approved, and could not be carried out
)

// Request is a request that stands, or has stood, for a second person.
type Request struct {
	ID           string
	Method, Path string // of the endpoint, as its template
	Summary      string // what it would change, as the audit would say it
	RequestedBy  string
	RequestedAt  time.Time
	ExpiresAt    time.Time
	Status       Status
	DecidedBy    string    // "" while nobody has decided
	DecidedAt    time.Time // zero while nobody has decided
	Reason       string    // of a refusal
	Sealed       []byte    // the request, with HeldData; nil once it is decided
	Result       []byte    // sealed with ResultData; nil before it is carried out
}

// HeldData and ResultData are the associated data under which the parts of a request
// are sealed.
func HeldData(id string) []byte   { return []byte("four-eyes/" + id) }
func ResultData(id string) []byte { return []byte("four-eyes-result/" + id) }

// At is the request at an instant.
func (r Request) At(now time.Time) Request {
	if r.Status == Pending && !now.Before(r.ExpiresAt) {
		r.Status = Expired
	}
	return r
}

// Key names the endpoint.
func (r Request) Key() string { return r.Method + " " + r.Path }

// Place is where a request stands in the list: the newest come first.
type Place struct{ ID string }

func (r Request) Mark() Place { return Place{r.ID} }

// open refuses a request that can no longer be decided on.
func (r Request) open(now time.Time) error {
	switch r.At(now).Status {
	case Pending:
		return nil
	case Expired:
		return fault.New(fault.InvalidState, "the request has expired")
	}
	return fault.New(fault.InvalidState, "the request has been decided")
}

// maxSummary bounds a summary, in characters.
const maxSummary = 2000

// Summary says in the words of the audit what some rows of it report. A row's target
// is named where the request itself names it: what a rehearsal made has another id
// than what will be made. Seals of the ledger say nothing to a person.
func Summary(rows []audit.Record, names func(target string) bool) string {
	var parts []string
	for _, r := range rows {
		if r.Action == ledger.ActionTransfer {
			continue
		}
		part := r.Action
		if r.Target != r.UserID && names(r.Target) {
			part += " " + r.Target
		}
		if r.UserID != "" {
			part += " of " + r.UserID
		}
		if r.Detail != "" {
			part += ": " + r.Detail
		}
		parts = append(parts, part)
	}
	text := strings.Join(parts, "; ")
	if utf8.RuneCountInString(text) > maxSummary {
		text = string([]rune(text)[:maxSummary]) + " …"
	}
	return text
}
