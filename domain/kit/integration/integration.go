// Package integration links the records of this service to those of the platform's other services (D-INT-02, D-INT-03).
// With an external id a repeated request gets the same record, and other services read a feed of events.
//
// The one idea: an external id commits with its record, and an event with its cause. A service that lost a response
// repeats its request; a service that was down resumes the feed at its last place.
//
// Start reading at Once and Publish.
package integration

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/page"
)

// Kind is the kind of record of an external id. Each kind has its own ids.
type Kind string

// The kinds.
const (
	Users        Kind = "user"
	Deposits     Kind = "deposit"
	Withdrawals  Kind = "withdrawal"
	Findings     Kind = "aml-finding"
	Applications Kind = "corporate-application"
)

// MaxExternalID is the longest external id, in bytes.
const MaxExternalID = 128

// Claim binds an external id to the record that was made under it.
type Claim struct {
	Kind       Kind
	ExternalID string
	Digest     []byte // of the first request (Digest)
	RecordID   string
	At         time.Time
}

// Add inserts a claim. The unit is rejected with RECORD_ALREADY_EXIST if the external id has one; then Once reads its
// record.
type Add struct{ Claim }

func (Add) Table() string { return "integration_claim" }

// Rebind binds an external id to another record, if it is bound to From. The digest is unchanged.
type Rebind struct {
	Kind       Kind
	ExternalID string
	From, To   string // ids of records
}

// Table names the table of the row.
func (Rebind) Table() string { return "integration_claim" }

// Fence returns the external id with its kind. From is fenced in place of a version.
func (w Rebind) Fence() (key string, version int64) { return string(w.Kind) + "/" + w.ExternalID, 0 }

// Digest is the SHA-256 of a request's fields that a repetition must not change. v must be a
// plain value: equal values give equal digests.
func Digest(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("integration: digest of %T: %v", v, err))
	}
	sum := sha256.Sum256(text)
	return sum[:]
}

// Store reads claims and events. Every method joins the transaction that its context carries. It is safe for concurrent
// use.
type Store interface {
	// Claim reads the claim of an external id. RECORD_NOT_FOUND.
	Claim(ctx context.Context, kind Kind, externalID string) (Claim, error)
	// ClaimOf reads the claim that is bound to a record. RECORD_NOT_FOUND.
	ClaimOf(ctx context.Context, kind Kind, recordID string) (Claim, error)
	// Events lists events in commit order, beginning after a place. An event is listed only when no earlier event can
	// still appear. ErrLost for a place after the point of a restore.
	Events(ctx context.Context, q EventQuery, p page.Query[Place]) (page.Of[Event], error)
}

// ErrOtherBody rejects an external id that was used with another body.
var ErrOtherBody = fault.New(fault.InvalidState, "the externalId was used before with another body")

// ErrLost rejects a place that was given out after the point to which the database was restored later (D-EXT-17).
var ErrLost = &fault.Error{Code: fault.InvalidState, Field: "cursor",
	Message: "the events before this cursor were lost: the database was restored from a backup; read again from an " +
		"older cursor, or from the oldest event",
	Fields: []fault.Problem{{Field: "cursor", Message: "is of an event that a restore has lost"}}}

// Find returns the claim of the external id of c; an empty claim if the id is free. ErrOtherBody if it was used with
// another digest.
func Find(ctx context.Context, s Store, c Claim) (Claim, error) {
	first, err := s.Claim(ctx, c.Kind, c.ExternalID)
	switch {
	case fault.CodeOf(err) == fault.RecordNotFound:
		return Claim{}, nil
	case err == nil && subtle.ConstantTimeCompare(first.Digest, c.Digest) != 1:
		err = ErrOtherBody
	}
	return first, err
}

// Once makes the record of an external id, or reads the existing one. make must commit Add{c} with the record, whose id
// is c.RecordID; read returns the record of an id. repeated reports that the record existed.
//
// Errors: INVALID_STATE (ErrOtherBody) if the external id was used with another digest; those of make and read.
func Once[T any](ctx context.Context, s Store, c Claim, read func(ctx context.Context, recordID string) (T, error),
	make func(context.Context) (T, error)) (record T, repeated bool, err error) {
	find := func() (record T, found bool, err error) {
		first, err := Find(ctx, s, c)
		if err != nil || first.RecordID == "" {
			return record, false, err
		}
		record, err = read(ctx, first.RecordID)
		return record, true, err
	}
	if record, repeated, err = find(); repeated || err != nil {
		return record, repeated, err
	}
	if record, err = make(ctx); fault.CodeOf(err) != fault.RecordAlreadyExist || commit.Inside(ctx) {
		return record, false, err
	}
	taken := err // by a concurrent request of the same external id, or another unique key
	if record, repeated, err = find(); repeated || err != nil {
		return record, repeated, err
	}
	return record, false, taken
}

// Type of an event.
type Type string

// The types of events.
const (
	WithdrawalQueued    Type = "withdrawal.queued"    // a withdrawal waits for the wallet
	WithdrawalResumed   Type = "withdrawal.resumed"   // a stuck withdrawal waits again
	WithdrawalCancelled Type = "withdrawal.cancelled" // its hold was released; the wallet must not send it
	WithdrawalHeld      Type = "withdrawal.held"      // it waits for a person; the wallet cannot claim it
	WithdrawalRecall    Type = "withdrawal.recall"    // the wallet has claimed it and should not sign it
	DepositDecided      Type = "deposit.decided"      // the treasury decided on a deposit
	AccountStatus       Type = "account.status"       // an account was closed or opened
	KYCDecided          Type = "kyc.decided"          // the identity of an account was approved or rejected
)

// Types are all types of events.
var Types = []Type{WithdrawalQueued, WithdrawalResumed, WithdrawalCancelled, WithdrawalHeld, WithdrawalRecall,
	DepositDecided, AccountStatus, KYCDecided}

// Event notifies other services. Data holds ids, amounts and states, and no contact data.
type Event struct {
	ID     string // begins with At
	Type   Type
	UserID string
	Data   map[string]string
	At     time.Time
	// Tx is the position of the committing transaction; the store sets it.
	Tx int64
}

// Place is the position of an event in the feed.
type Place struct {
	Tx int64
	ID string
}

func (e Event) Mark() Place { return Place{e.Tx, e.ID} }

// EventQuery selects events; none: every type.
type EventQuery struct{ Types []Type }

// Publish inserts an event, which commits with its cause.
type Publish struct{ Event }

func (Publish) Table() string { return "integration_event" }
