// Package errand owns the operations that other services of the platform put behind a challenge (D-EXT-10). A service
// starts the challenge of a user, the user completes it, and the service gets a grant.
//
// The one idea: an errand is the record of a challenge's outcome and of nothing else. It commits with the challenge,
// and its outcome with that of the challenge, so a crash never separates them. The operation itself stays with its
// service. The payload of a service is part of the sealed command. So the grant covers the bytes that were approved.
//
// Start reading at Service.Start, then grant.go for the grant and outcome.go for the ends of a challenge.
package errand

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/integration"
	"castellan/domain/kit/token"
	"castellan/domain/permit/servicekey"
	"castellan/domain/proof/stepup"
)

// The limits of a request.
const (
	MaxReference    = 128      // bytes
	MaxRows         = 20       // of 1
	MaxPayloadBytes = 16 << 10 // of its JSON text
)

// Status is the state of an errand, in its wire spelling.
type Status string

// The states. Every state but Pending is final.
const (
	Pending   Status = "PENDING"
	Completed Status = "COMPLETED"
	Denied    Status = "DENIED"
	Expired   Status = "EXPIRED"
	Failed    Status = "FAILED"
)

// Errand is the stored form of an operation of another service.
type Errand struct {
	ID        string // of the challenge
	Service   string // name of the service client
	Reference string // unique for each service
	Digest    []byte // of the request, which a repetition must equal
	Action    string
	UserID    string
	Status    Status
	CreatedAt time.Time
	ExpiresAt time.Time // of the challenge
	// The rest is set with the outcome. Intent is the digest of the signed document, and Methods are the completed ones.
	SettledAt time.Time
	Intent    string
	Methods   []string
	Payload   []byte // sealed, until it is redeemed; nil for none
	// RedeemedAt is zero until the grant is redeemed; Redemption identifies the call that did it.
	RedeemedAt time.Time
	Redemption string
}

// Add inserts a pending errand. The unit is rejected with RECORD_ALREADY_EXIST if the service has used the reference.
type Add struct{ Errand }

func (Add) Table() string { return "errand" }

// Settle saves the outcome of an errand that is pending: Status, SettledAt, Intent, Methods and Payload.
type Settle struct{ Errand }

func (Settle) Table() string { return "errand" }

// Fence returns the id. The state Pending is fenced in place of a version.
func (w Settle) Fence() (key string, version int64) { return w.ID, 0 }

// Redeem ends the grant of a completed errand and deletes its payload, if it was never redeemed.
type Redeem struct {
	ID         string
	At         time.Time
	Redemption string
}

func (Redeem) Table() string { return "errand" }

// Fence returns the id. The absence of a redemption is fenced in place of a version.
func (w Redeem) Fence() (key string, version int64) { return w.ID, 0 }

// Store reads errands. It is safe for concurrent use.
type Store interface {
	// Get reads an errand by the id of its challenge. RECORD_NOT_FOUND.
	Get(ctx context.Context, id string) (Errand, error)
	// Referenced reads the errand of a reference. RECORD_NOT_FOUND.
	Referenced(ctx context.Context, service, reference string) (Errand, error)
	// Overdue lists pending errands that expired at or before an instant, oldest first, at most max.
	Overdue(ctx context.Context, expired time.Time, max int) ([]Errand, error)
	// Purge removes errands created before an instant.
	Purge(ctx context.Context, before time.Time) error
}

// Request is a service's request to approve one operation.
type Request struct {
	Service   string
	Action    string
	UserID    string
	Title     string
	Rows      []challenge.Detail // that the user sees
	Reference string
	Payload   json.RawMessage // nil for none
}

// command is the sealed command of the challenge.
type command struct {
	Service   string             `json:"service"`
	Reference string             `json:"reference"`
	Title     string             `json:"title"`
	Rows      []challenge.Detail `json:"rows"`
	Payload   json.RawMessage    `json:"payload,omitempty"`
}

// Service starts, reads and settles errands. All fields but Mixed are required. It is safe for concurrent use.
type Service struct {
	Store      Store
	Commit     commit.Committer
	Challenges challenge.Store
	Engine     challenge.Restarts
	// Result waits at most wait for the outcome of a challenge (stepup.Answerer.Result).
	Result func(ctx context.Context, challengeID string, wait time.Duration) (stepup.Completion, error)
	// Account reads an account that may be used. RECORD_NOT_FOUND.
	Account func(ctx context.Context, userID string) (challenge.Account, error)
	// Key returns the current key of a service client; false without one.
	Key   func(name string) (servicekey.Key, bool)
	Seals interface {
		Seal(plain, ad []byte) []byte
		Open(sealed, ad []byte) ([]byte, error)
	}
	Statements *token.Issuer
	Issuer     string // of grants
	// Mixed reports whether a node of another release is in the cluster; nil: never.
	Mixed func() bool
	Now   func() time.Time
	// Own reports whether this service starts an action itself: a key of an earlier version may have its code.
	Own func(code string) bool
}

// maxFenced limits how often a start is decided again.
const maxFenced = 5

// Start starts the challenge of r.UserID, who is identified by from. An equal request returns the challenge that the
// first one started, whatever its state, with another token and repeated set.
//
// Errors: FORBIDDEN if the key has not the action; INVALID_STATE if the reference was used with another body, or its
// challenge was deleted since; RECORD_NOT_FOUND for an account that cannot be used; MFA_NOT_AVAILABLE, RATE_LIMITED,
// UNAVAILABLE and OVERLOADED of the engine.
func (s *Service) Start(ctx context.Context, by audit.By, r Request,
	from challenge.Starter) (started challenge.Started, repeated bool, err error) {
	if key, _ := s.Key(r.Service); !key.May(r.Action) || s.Own(r.Action) {
		return started, false, fault.New(fault.Forbidden, "the key does not permit this action")
	}
	for range maxFenced {
		started, repeated, err = s.start(ctx, by, r, from)
		if !errors.Is(err, commit.ErrFenced) && fault.CodeOf(err) != fault.RecordAlreadyExist {
			return started, repeated, err
		}
	}
	return started, false, fault.New(fault.Unavailable, "the account is busy; try again").After(time.Second)
}

func (s *Service) start(ctx context.Context, by audit.By, r Request,
	from challenge.Starter) (none challenge.Started, repeated bool, err error) {
	digest := integration.Digest(r)
	first, err := s.Store.Referenced(ctx, r.Service, r.Reference)
	switch {
	case err == nil:
		again, err := s.repeatedChallenge(ctx, first, digest)
		return again, true, err
	case fault.CodeOf(err) != fault.RecordNotFound:
		return none, false, err
	}
	account, err := s.Account(ctx, r.UserID)
	if err != nil {
		return none, false, err
	}
	sealed, err := json.Marshal(command{r.Service, r.Reference, r.Title, r.Rows, r.Payload})
	if err != nil {
		return none, false, fmt.Errorf("errand: %w", err)
	}
	bind := func(c challenge.Challenge) []commit.Write {
		return []commit.Write{
			Add{Errand{ID: c.ID, Service: r.Service, Reference: r.Reference, Digest: digest, Action: r.Action,
				UserID: r.UserID, Status: Pending, CreatedAt: time.UnixMilli(c.CreatedAt),
				ExpiresAt: time.UnixMilli(c.ExpiresAt)}},
			by.Did(audit.Record{At: s.Now(), Action: "GUARD_START", UserID: r.UserID, Target: c.ID,
				Detail: r.Action + " " + r.Reference})}
	}
	none, err = s.Engine.Start(ctx, challenge.StartRequest{Action: r.Action, Account: account, Starter: from, Proven: true,
		Command: sealed, Service: r.Service, Title: r.Title, Bind: bind})
	return none, false, err
}

// repeatedChallenge returns the challenge of an earlier request, if this one equals it.
func (s *Service) repeatedChallenge(ctx context.Context, first Errand, digest []byte) (challenge.Started, error) {
	if string(first.Digest) != string(digest) {
		return challenge.Started{}, fault.New(fault.InvalidState, "the reference was used before with another body")
	}
	started, err := s.Engine.Again(ctx, first.ID)
	if fault.CodeOf(err) == fault.ChallengeNotFound {
		err = fault.New(fault.InvalidState, "the challenge of this reference has ended and was deleted")
	}
	return started, err
}

// Get returns an errand of a service with its present status. It waits at most wait for the outcome. RECORD_NOT_FOUND,
// also for the errand of another service.
func (s *Service) Get(ctx context.Context, service, id string, wait time.Duration) (Errand, error) {
	e, err := s.owned(ctx, service, id)
	if err == nil && e.Status == Pending && wait > 0 {
		// The row is the answer, whatever this call returns: no outcome yet, none ever, or an owner that is away.
		if _, err := s.Result(ctx, id, wait); err != nil && ctx.Err() != nil {
			return Errand{}, ctx.Err()
		}
		e, err = s.owned(ctx, service, id)
	}
	if err != nil || e.Status != Pending {
		return e, err
	}
	c, err := s.Challenges.Load(ctx, id)
	switch {
	case fault.CodeOf(err) == fault.ChallengeNotFound, err == nil && c.Expired(s.Now()):
		e.Status = Expired
	case err != nil:
		return Errand{}, err
	case c.State == challenge.Closed:
		e.Status = Failed
	case c.State == challenge.Done, c.State == challenge.Denied: // settled since the first read
		return s.owned(ctx, service, id)
	}
	return e, nil
}

func (s *Service) owned(ctx context.Context, service, id string) (Errand, error) {
	e, err := s.Store.Get(ctx, id)
	if err == nil && e.Service != service {
		return Errand{}, fault.New(fault.RecordNotFound, "there is no such challenge of this service")
	}
	return e, err
}
