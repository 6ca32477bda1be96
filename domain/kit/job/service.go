package job

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
)

// Service starts jobs, and carries out what people do to them. It is safe for
// concurrent use.
type Service struct {
	Store   Store
	Changes admin.Changes // of no topic: no node caches jobs
	// Seal is that of the keyring.
	Seal func(plain, ad []byte) []byte
	// Wake has the owner of a job look at it; nil: the owner looks twice a second.
	Wake func(id string)
	// Leaving ends when this node begins to drain; nil: never. Nobody waits any more.
	Leaving context.Context
}

// Request asks for a job.
type Request struct {
	Kind   string
	Key    string // "": one of its own, so that each call starts a job
	Params any    // JSON can hold it
	At     time.Time
}

// Start starts the job of a kind and key, or returns the one that is there; then
// started is false, and its parameters are those of the first call. It joins the
// transaction that ctx carries and is never lost once that is committed. Who
// starts a job writes its audit row.
func (s *Service) Start(ctx context.Context, by audit.By, r Request) (j Job, started bool, err error) {
	now := s.Changes.Now()
	params, err := json.Marshal(r.Params)
	if err != nil {
		return j, false, fmt.Errorf("parameters of job %s: %w", r.Kind, err)
	}
	j = Job{ID: id.New(now), Kind: r.Kind, State: Queued, Version: 1, ActorID: by.UserID, CreatedAt: now, BeatAt: now,
		NextAt: now}
	if j.Key = cmp.Or(r.Key, j.ID); r.At.After(now) {
		j.NextAt = r.At
	}
	j.Params = s.Seal(params, []byte(j.ID))
	if j, started, err = s.Store.Add(ctx, j); err == nil && started {
		commit.After(ctx, func() { s.wake(j.ID) })
	}
	return j, started, err
}

func (s *Service) wake(id string) {
	if s.Wake != nil {
		s.Wake(id)
	}
}

// Cancel has a job end before its next step: at once where none is under way, else
// as soon as its owner has seen it. A job that is over stays as it is.
// RECORD_NOT_FOUND.
func (s *Service) Cancel(ctx context.Context, by audit.By, id string) error {
	return s.change(ctx, by, "JOB_CANCEL", id, func(_ context.Context, j Job) (Job, string, error) {
		return j.cancelled(s.Changes.Now()), j.Kind, nil
	})
}

// Resend has the unknown items of a job sent again; a failed job goes on where it
// stood. RECORD_NOT_FOUND; INVALID_STATE for a job that is not over, was cancelled,
// or is done and has no unknown item.
func (s *Service) Resend(ctx context.Context, by audit.By, id string) error {
	return s.change(ctx, by, "JOB_RESEND", id, func(ctx context.Context, j Job) (Job, string, error) {
		if j.State != Done && j.State != Failed {
			return j, "", fault.New(fault.InvalidState, "a job that is %s is not sent again", j.State)
		}
		n, err := s.Store.Renew(ctx, id)
		if err == nil && n == 0 && j.State == Done {
			err = fault.New(fault.InvalidState, "the job has no unknown item")
		}
		return j.resent(n, s.Changes.Now()), fmt.Sprintf("%s, %d items", j.Kind, n), err
	})
}

// awaitEvery is how old what Await sees may be.
const awaitEvery = 250 * time.Millisecond

// Await reads a job until seen holds for it, for as long as wait, and returns what it
// read last. RECORD_NOT_FOUND.
func (s *Service) Await(ctx context.Context, id string, wait time.Duration, seen func(Job) bool) (Job, error) {
	bound, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if s.Leaving != nil {
		defer context.AfterFunc(s.Leaving, cancel)()
	}
	for {
		j, err := s.Store.Get(ctx, id)
		if err != nil || seen(j) || !pause(bound, awaitEvery) {
			return j, err
		}
	}
}

// changeTries bounds how often a change is decided anew because the owner of the
// job was faster. The owner saves a few times a second.
const changeTries = 32

// change saves what f makes of a job, as one step with its audit row. A job that f
// leaves as it is is not saved.
func (s *Service) change(ctx context.Context, by audit.By, action, id string,
	f func(context.Context, Job) (next Job, detail string, err error)) (err error) {
	for range changeTries {
		err = s.Changes.Do(ctx, by, action, func(ctx context.Context) (done admin.Done, err error) {
			j, err := s.Store.Get(ctx, id)
			if err != nil {
				return done, err
			}
			next, detail, err := f(ctx, j)
			if err != nil || next.State == j.State && next.Cancel == j.Cancel {
				return done, err
			}
			return admin.Done{Target: id, Detail: detail, Writes: []commit.Write{Save{next}}}, nil
		})
		if !errors.Is(err, commit.ErrFenced) {
			break
		}
	}
	if err == nil {
		s.wake(id)
	}
	return err
}
