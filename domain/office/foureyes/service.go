package foureyes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"castellan/domain/access/challenge"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/page"
)

// Store keeps requests. Every method joins the transaction that its context carries.
// It is safe for concurrent use and passes foureyestest.Run.
type Store interface {
	// Add inserts a request.
	Add(ctx context.Context, r Request) error
	// Get reads a request; RECORD_NOT_FOUND.
	Get(ctx context.Context, id string) (Request, error)
	// Hold is Get that makes others who hold the request wait for the end of the
	// transaction.
	Hold(ctx context.Context, id string) (Request, error)
	// Decide saves status, who decided and when, reason and result of a pending request,
	// and forgets what was sealed; RECORD_NOT_FOUND when none of the id is pending.
	Decide(ctx context.Context, r Request) error
	// List returns a page of the selected requests, newest first. Their status is that of
	// Query.Now.
	List(ctx context.Context, q Query, p page.Query[Place]) (page.Of[Request], error)
	// Purge removes the requests made before an instant, a part of them at a time.
	Purge(ctx context.Context, before time.Time) error
}

// Query selects requests by their status at Now; "" selects all.
type Query struct {
	Status Status
	Now    time.Time
}

// Service keeps requests and has them decided. All fields are needed. It is safe for
// concurrent use.
type Service struct {
	Store   Store
	Changes admin.Changes // of no topic: no node caches requests
	// Account reads an account that may be used; RECORD_NOT_FOUND.
	Account func(ctx context.Context, userID string) (challenge.Account, error)
	// Live reports whether a session may still be used.
	Live func(userID, sessionID string, sv int64) bool
	// Shared reports whether two accounts have a device in common.
	Shared func(ctx context.Context, userID, other string) (bool, error)
	Seal   func(plain, data []byte) []byte
	Open   func(sealed, data []byte) ([]byte, error)
	TTL    time.Duration
	// Run carries out a request in the transaction of ctx, as its requester, if that one
	// may still ask for it.
	Run func(ctx context.Context, request json.RawMessage) (json.RawMessage, error)
}

// Draft is a request that shall stand.
type Draft struct {
	Method, Path, Summary string
	Request               json.RawMessage // what Run will get
	SessionID             string          // of the requester
}

// held is what is sealed of a request, with what was true of its requester.
type held struct {
	Request   json.RawMessage `json:"request"`
	SessionID string          `json:"sessionId"`
	CV        int64           `json:"cv"`
	SV        int64           `json:"sv"`
}

// The acts in the audit. Its row names the request as the target.
const (
	actStand   = "FOUR_EYES_REQUEST"
	actApprove = "FOUR_EYES_APPROVE"
	actRefuse  = "FOUR_EYES_REFUSE"
	actFail    = "FOUR_EYES_FAIL"
)

// Stand keeps a request until another person has decided on it, or its time is over.
func (s *Service) Stand(ctx context.Context, by audit.By, d Draft) (Request, error) {
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

// Judge refuses an approval by a person who may not give it. may reports whether that
// person may ask for the endpoint of the request. Errors: RECORD_NOT_FOUND;
// INVALID_STATE for a request that is decided or expired; FORBIDDEN for the requester
// and for an account that has a device in common with the requester's; those of may.
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
		return fault.New(fault.Forbidden, "another person than the requester must decide")
	}
	return nil
}

// notDone is why an approved request could not be carried out.
type notDone struct{ error }

func (e notDone) Unwrap() error { return e.error }

// Approve carries a request out, in the transaction of ctx and once. Errors: those of
// Judge; else the request could not be carried out, and the caller rolls everything
// back and calls Fail with the error.
func (s *Service) Approve(ctx context.Context, by audit.By, id string, may func(Request) error) (Request, error) {
	r, err := s.Store.Hold(ctx, id)
	if err != nil {
		return r, err
	}
	if err := s.judge(ctx, by.UserID, r, may); err != nil {
		return r, err
	}
	result, err := s.carryOut(ctx, r)
	if err != nil {
		return r, notDone{err}
	}
	return s.decide(ctx, by, r, Approved, actApprove, result)
}

// opened is what is sealed of a request.
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

// Asked is what Run would get of a request that waits; nil of any other.
func (s *Service) Asked(r Request) (json.RawMessage, error) {
	if r.At(s.Changes.Now()).Status != Pending {
		return nil, nil
	}
	h, err := s.opened(r)
	return h.Request, err
}

// carryOut does what was asked for, if the requester may still ask for it.
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
		return nil, fault.New(fault.Forbidden, "the requester may not do this any more")
	}
	return s.Run(ctx, h.Request)
}

// Fail notes that a request which was approved could not be carried out, for the reason
// that Approve returned. Of another reason nothing is noted: the request stands as it
// did. It joins the transaction of ctx.
func (s *Service) Fail(ctx context.Context, by audit.By, id string, why error) error {
	var f *fault.Error
	if !errors.As(why, new(notDone)) || !errors.As(why, &f) {
		return nil
	}
	r, err := s.Store.Hold(ctx, id)
	if err != nil || r.Status != Pending { // somebody else was faster meanwhile
		return err
	}
	result, err := json.Marshal(map[string]string{"code": string(f.Code), "message": f.Message})
	if err == nil {
		_, err = s.decide(ctx, by, r, Failed, actFail, result)
	}
	return err
}

// Refuse ends a request without carrying it out. Whoever may ask for the endpoint may,
// and the requester. Errors: RECORD_NOT_FOUND, INVALID_STATE, those of may.
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
		if err := r.open(s.Changes.Now()); err != nil {
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
	r.Status, r.DecidedBy, r.DecidedAt, r.Sealed = to, by.UserID, now, nil
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

// Result opens the result of a request; nil where there is none.
func (s *Service) Result(r Request) (json.RawMessage, error) {
	if r.Result == nil {
		return nil, nil
	}
	return s.Open(r.Result, ResultData(r.ID))
}
