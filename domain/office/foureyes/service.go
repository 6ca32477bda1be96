package foureyes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/page"
)

// Store stores requests. Every method joins the transaction that its context carries. It is safe for concurrent use.
type Store interface {
	// Add inserts a request.
	Add(ctx context.Context, r Request) error
	// Get reads a request; RECORD_NOT_FOUND.
	Get(ctx context.Context, id string) (Request, error)
	// Hold is Get with a lock: other holders of the request wait for the end of the transaction.
	Hold(ctx context.Context, id string) (Request, error)
	// Decide saves the status, the decider, the time, the reason, the result and the sealed part of a request;
	// RECORD_NOT_FOUND if no request with a sealed part has the id.
	Decide(ctx context.Context, r Request) error
	// List returns a page of the matching requests, newest first. Their status is that at Query.Now.
	List(ctx context.Context, q Query, p page.Query[Place]) (page.Of[Request], error)
	// Purge deletes the requests made before an instant, in parts.
	Purge(ctx context.Context, before time.Time) error
}

// Query selects requests by their status at Now; "" selects all.
type Query struct {
	Status Status
	Now    time.Time
}

// Service stores requests and decides on them. All fields are required. It is safe for concurrent use.
type Service struct {
	Store   Store
	Changes admin.Changes // without a topic: no node caches requests
	// Account reads an account that may be used; RECORD_NOT_FOUND.
	Account func(ctx context.Context, userID string) (challenge.Account, error)
	// Live reports whether a session may still be used.
	Live func(userID, sessionID string, sv int64) bool
	// Shared reports whether two accounts share a device.
	Shared func(ctx context.Context, userID, other string) (bool, error)
	Seal   func(plain, data []byte) []byte
	Open   func(sealed, data []byte) ([]byte, error)
	TTL    time.Duration
	// Run executes a request in the transaction of ctx as its requester, if the requester still has the permission.
	Run func(ctx context.Context, request json.RawMessage) (json.RawMessage, error)
	// Secret reports whether the response of an endpoint holds a secret, and Public returns such a response without it.
	Secret func(endpoint string) bool
	Public func(endpoint string, response json.RawMessage) (json.RawMessage, error)
}

// Draft is a request to be stored for approval.
type Draft struct {
	Method, Path, Summary string
	Request               json.RawMessage // the argument of Run
	SessionID             string          // of the requester
}

// held is the sealed part of a request, with the state of its requester.
type held struct {
	Request   json.RawMessage `json:"request"`
	SessionID string          `json:"sessionId"`
	CV        int64           `json:"cv"`
	SV        int64           `json:"sv"`
}

// The audit actions. The target of a row is the request.
const (
	actStand   = "FOUR_EYES_REQUEST"
	actApprove = "FOUR_EYES_APPROVE"
	actRefuse  = "FOUR_EYES_REFUSE"
	actFail    = "FOUR_EYES_FAIL"
	actFetch   = "FOUR_EYES_FETCH"
)

// Submit stores a request until another person has decided on it, or it expires.
func (s *Service) Submit(ctx context.Context, by audit.By, d Draft) (Request, error) {
	account, err := s.Account(ctx, by.UserID)
	if err != nil {
		return Request{}, err
	}
	now := s.Changes.Now().UTC().Truncate(time.Millisecond)
	r := Request{ID: id.New(now), Method: d.Method, Path: d.Path, Summary: d.Summary, RequestedBy: by.UserID,
		RequestedAt: now, ExpiresAt: now.Add(s.TTL), Status: Pending}
	plain, err := json.Marshal(held{d.Request, d.SessionID, account.CV, account.SV})
	if err != nil {
		return Request{}, err
	}
	r.Sealed = s.Seal(plain, HeldData(r.ID))
	return r, s.Changes.Do(ctx, by, actStand, func(ctx context.Context) (admin.Done, error) {
		return admin.Done{Target: r.ID, Detail: r.Key()}, s.Store.Add(ctx, r)
	})
}

// Judge rejects an approval by a person who may not give it. may checks the permission of that person for the endpoint
// of the request. Errors: RECORD_NOT_FOUND; INVALID_STATE for a decided or expired request; FORBIDDEN for the requester
// and for an account that shares a device with the requester's; those of may.
func (s *Service) Judge(ctx context.Context, userID, id string, may func(Request) error) (Request, error) {
	r, err := s.Store.Get(ctx, id)
	if err != nil {
		return r, err
	}
	return r, s.judge(ctx, userID, r, may)
}

func (s *Service) judge(ctx context.Context, userID string, r Request, may func(Request) error) error {
	if err := r.open(s.Changes.Now()); err != nil {
		return err
	}
	if err := may(r); err != nil {
		return err
	}
	same := userID == r.RequestedBy
	if !same {
		var err error
		if same, err = s.Shared(ctx, userID, r.RequestedBy); err != nil {
			return err
		}
	}
	if same {
		return fault.New(fault.Forbidden, "a person other than the requester must decide")
	}
	return nil
}

// notDone is the error of an approved request whose execution failed.
type notDone struct{ error }

func (e notDone) Unwrap() error { return e.error }

// Approve executes a request, in the transaction of ctx and once. If its response holds a secret, Fetch executes it
// later. Errors: those of Judge. After any other error the execution has failed: the caller rolls back and calls Fail
// with the error.
func (s *Service) Approve(ctx context.Context, by audit.By, id string, may func(Request) error) (Request, error) {
	r, err := s.Store.Hold(ctx, id)
	if err != nil {
		return r, err
	}
	if err := s.judge(ctx, by.UserID, r, may); err != nil {
		return r, err
	}
	result, err := s.carryOut(audit.WithApprover(ctx, by.UserID), r)
	if err != nil {
		return r, notDone{err}
	}
	return s.decide(ctx, by, r, Approved, actApprove, result)
}

// opened returns the sealed part of a request.
func (s *Service) opened(r Request) (h held, err error) {
	plain, err := s.Open(r.Sealed, HeldData(r.ID))
	if err != nil {
		return h, fmt.Errorf("open the request %s: %w", r.ID, err)
	}
	if err := json.Unmarshal(plain, &h); err != nil {
		return h, fmt.Errorf("read the request %s: %w", r.ID, err)
	}
	return h, nil
}

// Asked returns the argument of Run for a request that can still be executed; nil for any other.
func (s *Service) Asked(r Request) (json.RawMessage, error) {
	if r = r.At(s.Changes.Now()); r.Status != Pending && !r.Fetchable() {
		return nil, nil
	}
	h, err := s.opened(r)
	return h.Request, err
}

// carryOut executes the request, if the requester still has the permission. It leaves one with a secret to Fetch.
func (s *Service) carryOut(ctx context.Context, r Request) (json.RawMessage, error) {
	h, err := s.opened(r)
	if err != nil {
		return nil, err
	}
	account, err := s.Account(ctx, r.RequestedBy)
	if err != nil && fault.CodeOf(err) != fault.RecordNotFound {
		return nil, err
	}
	if err != nil || account.CV != h.CV || account.SV != h.SV || !s.Live(r.RequestedBy, h.SessionID, h.SV) {
		return nil, fault.New(fault.Forbidden, "the requester no longer has the permission")
	}
	if s.Secret(r.Key()) {
		return nil, nil
	}
	return s.Run(ctx, h.Request)
}

// Fetch executes an approved request whose response holds a secret, once and for its requester, and returns the
// response. The stored result is the response without the secret. run is Run with the permissions of the caller.
//
// Errors: RECORD_NOT_FOUND; FORBIDDEN for any other caller, and after a change of the requester's credentials;
// INVALID_STATE if there is nothing to fetch; those of run. After an error nothing has changed.
func (s *Service) Fetch(ctx context.Context, by audit.By, id string,
	run func(context.Context, json.RawMessage) (json.RawMessage, error)) (r Request, answer json.RawMessage, err error) {
	err = s.Changes.Commit.InTx(ctx, func(ctx context.Context) error {
		if r, err = s.Store.Hold(ctx, id); err != nil {
			return err
		}
		if r.RequestedBy != by.UserID {
			return fault.New(fault.Forbidden, "only the requester can fetch the response")
		}
		if !r.At(s.Changes.Now()).Fetchable() {
			return fault.New(fault.InvalidState, "the request has no response to be fetched")
		}
		h, err := s.opened(r)
		if err != nil {
			return err
		}
		account, err := s.Account(ctx, by.UserID)
		if err != nil {
			return err
		}
		if account.CV != h.CV { // a reset of the password must not bring the secret to a thief
			return fault.New(fault.Forbidden,
				"the credentials of the requester have changed since: withdraw the request and make it again")
		}
		if answer, err = run(ctx, h.Request); err != nil {
			return err
		}
		public, err := s.Public(r.Key(), answer)
		if err != nil {
			return err
		}
		r.Sealed, r.Result = nil, s.Seal(public, ResultData(r.ID))
		if err := s.Store.Decide(ctx, r); err != nil {
			return err
		}
		return s.Changes.Commit.Commit(ctx, by.Did(audit.Record{At: s.Changes.Now(), UserID: r.RequestedBy,
			Action: actFetch, Target: r.ID, Detail: r.Key()}))
	})
	if err != nil {
		return Request{}, nil, err
	}
	return r, answer, nil
}

// Fail records that the execution of an approved request failed, for the reason that Approve returned. For any other
// error nothing is recorded, and the request is unchanged. It joins the transaction of ctx.
func (s *Service) Fail(ctx context.Context, by audit.By, id string, why error) error {
	var f *fault.Error
	if !errors.As(why, new(notDone)) || !errors.As(why, &f) {
		return nil
	}
	r, err := s.Store.Hold(ctx, id)
	if err != nil || r.Status != Pending { // decided concurrently
		return err
	}
	result, err := json.Marshal(map[string]string{"code": string(f.Code), "message": f.Message})
	if err == nil {
		_, err = s.decide(ctx, by, r, Failed, actFail, result)
	}
	return err
}

// Refuse ends a request without executing it, also one that waits for Fetch. The requester may refuse it, and every
// user with the permission for its endpoint. Errors: RECORD_NOT_FOUND, INVALID_STATE, those of may.
func (s *Service) Refuse(ctx context.Context, by audit.By, id, reason string,
	may func(Request) error) (r Request, err error) {
	err = s.Changes.Commit.InTx(ctx, func(ctx context.Context) error {
		if r, err = s.Store.Hold(ctx, id); err != nil {
			return err
		}
		if r.RequestedBy != by.UserID {
			if err := may(r); err != nil {
				return err
			}
		}
		now := s.Changes.Now()
		if err := r.open(now); err != nil && !r.At(now).Fetchable() {
			return err
		}
		r.Reason = reason
		r, err = s.decide(ctx, by, r, Refused, actRefuse, nil)
		return err
	})
	return r, err
}

// decide saves a decision with its audit row.
func (s *Service) decide(ctx context.Context, by audit.By, r Request, to Status, act string,
	result json.RawMessage) (Request, error) {
	now := s.Changes.Now().UTC().Truncate(time.Millisecond)
	r.Status, r.DecidedBy, r.DecidedAt = to, by.UserID, now
	if to != Approved || !s.Secret(r.Key()) {
		r.Sealed = nil
	}
	if result != nil {
		r.Result = s.Seal(result, ResultData(r.ID))
	}
	row := audit.Record{At: now, UserID: r.RequestedBy, Action: act, Target: r.ID, Detail: r.Key()}
	if to == Failed {
		row.Outcome = audit.Refused
	}
	if err := s.Store.Decide(ctx, r); err != nil {
		return r, err
	}
	return r, s.Changes.Commit.Commit(ctx, by.Did(row))
}

// Result opens the result of a request; nil if there is none. Version 0.9 stored secrets too, which are left out.
func (s *Service) Result(r Request) (json.RawMessage, error) {
	if r.Result == nil {
		return nil, nil
	}
	plain, err := s.Open(r.Result, ResultData(r.ID))
	if err != nil || !s.Secret(r.Key()) {
		return plain, err
	}
	return s.Public(r.Key(), plain)
}
