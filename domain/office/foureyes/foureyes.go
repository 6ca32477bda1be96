// Package foureyes executes requests after a second person has approved them (decision D-EXT-08).
//
// The one idea: such a request is stored sealed, with a summary of its changes. Its approval, its effect and its
// outcome are one transaction, which locks the row of the request: a later decision finds it decided.
//
// Start reading at Service.
package foureyes

import (
	"strings"
	"time"
	"unicode/utf8"

	"castellan/domain/factor/mfa"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/legible"
	"castellan/domain/money/ledger"
)

// ActionApprove is the action of the challenge before an approval.
const ActionApprove = mfa.ApproveRequest

// Status is the status of a request.
type Status string

// The statuses. Expired is stored as Pending or, after an approval, as Approved: it follows from the time alone.
const (
	Pending  Status = "PENDING"
	Approved Status = "APPROVED"
	Refused  Status = "REFUSED"
	Expired  Status = "EXPIRED"
	Failed   Status = "FAILED" // it was approved, but its execution failed
)

// Request is a request for an approval by a second person, pending or decided.
type Request struct {
	ID           string
	Method, Path string // of the endpoint, as its template
	Summary      string // its changes, in the words of the audit trail
	RequestedBy  string
	RequestedAt  time.Time
	ExpiresAt    time.Time
	Status       Status
	DecidedBy    string    // "" until decided
	DecidedAt    time.Time // zero until decided
	Reason       string    // of a refusal
	Sealed       []byte    // the request, sealed with HeldData; nil once it is refused or executed
	Result       []byte    // without secrets, sealed with ResultData; nil before the execution
}

// FetchTime is how long the requester can fetch the response of an approved request.
const FetchTime = 24 * time.Hour

// Fetchable reports whether an approved request is executed when its requester fetches the response. The response
// holds a secret, which no other person sees.
func (r Request) Fetchable() bool { return r.Status == Approved && r.Sealed != nil }

// FetchUntil returns the end of FetchTime.
func (r Request) FetchUntil() time.Time { return r.DecidedAt.Add(FetchTime) }

// HeldData and ResultData return the associated data under which the parts of a request are sealed.
func HeldData(id string) []byte   { return []byte("four-eyes/" + id) }
func ResultData(id string) []byte { return []byte("four-eyes-result/" + id) }

// At returns the request at an instant.
func (r Request) At(now time.Time) Request {
	if r.Status == Pending && !now.Before(r.ExpiresAt) || r.Fetchable() && !now.Before(r.FetchUntil()) {
		r.Status = Expired
	}
	return r
}

// Key identifies the endpoint.
func (r Request) Key() string { return r.Method + " " + r.Path }

// Place is the position of a request in the list, newest first.
type Place struct{ ID string }

func (r Request) Mark() Place { return Place{r.ID} }

// open rejects a request that can no longer be decided.
func (r Request) open(now time.Time) error {
	switch r.At(now).Status {
	case Pending:
		return nil
	case Expired:
		return fault.New(fault.InvalidState, "the request has expired")
	}
	return fault.New(fault.InvalidState, "the request has been decided")
}

// maxSummary is the maximum length of a summary, in characters.
const maxSummary = 2000

// Summary describes audit rows in words. A row's target is named only if the request names it: records made by a
// rehearsal get another id later. Seals of the ledger are left out, because they mean nothing to a reader.
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
	text := legible.Escape(strings.Join(parts, "; "))
	if utf8.RuneCountInString(text) > maxSummary {
		text = string([]rune(text)[:maxSummary]) + " …"
	}
	return text
}
