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

// Service starts jobs, and cancels and resends them for users. It is safe for concurrent use.
type Service struct {
	Store   Store
	Changes admin.Changes // without a topic: no node caches jobs
	// Seal is Seal of the keyring.
	Seal func(plain, ad []byte) []byte
	// Kinds and Open are those of the Runner; About needs them.
	Kinds map[string]Kind
	Open  func(sealed, ad []byte) ([]byte, error)
	// Wake notifies the owner of a job; nil: the owner polls twice a second.
	Wake func(id string)
	// Leaving ends when this node begins to drain; nil: never. Waiting calls return then.
	Leaving context.Context
}

// Request is the input of Service.Start.
type Request struct {
	Kind   string
	Key    string // "": a unique one, so that each call starts a job
	Params any    // encodable as JSON
	At     time.Time
}

// Start starts the job of a kind and key, or returns the existing one; then started is false, and its parameters are
// those of the first call. It joins the transaction that ctx carries, and the job is never lost once that is committed.
// The caller writes the audit row.
func (s *Service) Start(ctx context.Context, by audit.By, r Request) (j Job, started bool, err error) {
	if j, err = s.made(by, r); err != nil {
		return j, false, err
	}
	if j, started, err = s.Store.Add(ctx, j); err == nil && started {
		commit.After(ctx, func() { s.wake(j.ID) })
	}
	return j, started, err
}

// Later returns the write that starts a job, for a unit without a transaction of its own. The request has no key.
func (s *Service) Later(by audit.By, r Request) (commit.Write, error) {
	j, err := s.made(by, r)
	return Add{j}, err
}

func (s *Service) made(by audit.By, r Request) (j Job, err error) {
	now := s.Changes.Now()
	params, err := json.Marshal(r.Params)
	if err != nil {
		return j, fmt.Errorf("parameters of job %s: %w", r.Kind, err)
	}
	j = Job{ID: id.New(now), Kind: r.Kind, State: Queued, Version: 1, ActorID: by.UserID, CreatedAt: now, BeatAt: now,
		NextAt: now}
	if j.Key = cmp.Or(r.Key, j.ID); r.At.After(now) {
		j.NextAt = r.At
	}
	j.Params = s.Seal(params, []byte(j.ID))
	return j, nil
}

// MaxAbout is the maximum length of the subject of a job, in characters.
const MaxAbout = 100

// About returns the subject of a job, cut to MaxAbout characters; "" if its kind is unknown or has none, or if the
// parameters cannot be unsealed any more.
func (s *Service) About(j Job) string {
	k := s.Kinds[j.Kind]
	if k.About == nil {
		return ""
	}
	params, err := s.Open(j.Params, []byte(j.ID))
	if err != nil {
		return ""
	}
	j.Params = params
	about := []rune(k.About(j))
	if len(about) > MaxAbout {
		about = append(about[:MaxAbout-1], '…')
	}
	return string(about)
}

func (s *Service) wake(id string) {
	if s.Wake != nil {
		s.Wake(id)
	}
}

// Cancel ends a job before its next step: at once if none is running, otherwise as soon as its owner has seen it. A job
// that is over is unchanged. RECORD_NOT_FOUND.
func (s *Service) Cancel(ctx context.Context, by audit.By, id string) error {
	return s.change(ctx, by, "JOB_CANCEL", id, func(_ context.Context, j Job) (Job, string, error) {
		return j.cancelled(s.Changes.Now()), j.Kind, nil
	})
}

// Resend sends the unknown items of a job again; a failed job resumes where it stopped. RECORD_NOT_FOUND; INVALID_STATE
// for a job that is not over, was cancelled, or is done without unknown items.
func (s *Service) Resend(ctx context.Context, by audit.By, id string) error {
	return s.change(ctx, by, "JOB_RESEND", id, func(ctx context.Context, j Job) (Job, string, error) {
		if j.State != Done && j.State != Failed {
			return j, "", fault.New(fault.InvalidState, "a job in the state %s cannot be resent", j.State)
		}
		n, err := s.Store.Renew(ctx, id)
		if err == nil && n == 0 && j.State == Done {
			err = fault.New(fault.InvalidState, "the job has no unknown items")
		}
		return j.resent(n, s.Changes.Now()), fmt.Sprintf("%s, %d items", j.Kind, n), err
	})
}

// awaitEvery is the polling interval of Await.
const awaitEvery = 250 * time.Millisecond

// Await reads a job until seen returns true for it, or until wait has passed, and returns the last read job.
// RECORD_NOT_FOUND.
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

// changeTries limits how often a change is retried because the owner of the job was faster. The owner saves a few times
// a second.
const changeTries = 32

// change saves the job that f returns, together with its audit row. If f changes nothing, nothing is saved.
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
