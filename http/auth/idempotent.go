package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/idempotency"
	"castellan/domain/kit/keyring"
	"castellan/http/edge"
	"castellan/http/rest"
)

// Idempotent runs an operation at most once per caller and key, and replays its answer
// (D-EXT-02). The key's row commits with the effect, or with the audit rows of a refusal; a running
// operation is known only in this process, so that a crash leaves no lock behind.
type Idempotent struct {
	Store  idempotency.Store
	Commit commit.Committer
	Ring   *keyring.Ring
	Now    func() time.Time
	// Secret reports whether the answer of an endpoint, by its key, holds a secret; nil: none does.
	Secret func(endpoint string) bool

	running sync.Map
}

var _ edge.Idempotency = (*Idempotent)(nil)

// answer is the sealed part of an answer.
type answer struct {
	Status  int           `json:"s"`
	Body    []byte        `json:"b"`
	Headers []rest.Header `json:"h,omitempty"`
}

// errRefused rolls the effects of a refused operation back.
var errRefused = errors.New("auth: the operation was refused")

func (i *Idempotent) Run(ctx context.Context, who rest.Caller, key, method, template string, bodyHash [32]byte,
	admit func(context.Context) error,
	fn func(context.Context) (int, []byte, []rest.Header, error),
) (status int, body []byte, headers []rest.Header, replayed bool, err error) {
	// Under the steady key, so that a rotation does not lose the answer.
	parts := []string{who.By().UserID, who.Cron, method, template, key}
	id := i.Ring.StableHash("idempotency", parts...)
	if _, busy := i.running.LoadOrStore(id, struct{}{}); busy {
		return 0, nil, nil, false, conflict()
	}
	defer i.running.Delete(id)

	since, at := i.window(method + " " + template)
	a, err := i.find(ctx, id, bodyHash, since)
	for _, former := range i.Ring.Former("idempotency", parts...) {
		if fault.CodeOf(err) == fault.RecordNotFound {
			a, err = i.find(ctx, former, bodyHash, since)
		}
	}
	switch {
	case err == nil:
		return a.Status, a.Body, a.Headers, true, nil
	case fault.CodeOf(err) != fault.RecordNotFound:
		return 0, nil, nil, false, err
	}
	if err := admit(ctx); err != nil {
		return 0, nil, nil, false, err
	}
	var unkept error
	ctx, written := commit.Recorded(ctx)
	err = i.Commit.InTx(ctx, func(ctx context.Context) error {
		if status, body, headers, unkept = fn(ctx); unkept != nil {
			return unkept
		}
		if status >= 400 {
			return errRefused
		}
		return i.save(ctx, id, bodyHash, at, answer{status, body, headers})
	})
	switch {
	case unkept != nil:
		return status, body, headers, false, unkept
	case errors.Is(err, errRefused):
		var refusals []commit.Write
		for _, w := range *written {
			if r, is := w.(audit.Record); is && r.Outcome == audit.Refused {
				refusals = append(refusals, w)
			}
		}
		err = i.save(ctx, id, bodyHash, at, answer{status, body, headers}, refusals...)
	}
	if fault.CodeOf(err) == fault.RecordAlreadyExist {
		if _, gone := i.find(ctx, id, bodyHash, since); status >= 400 && fault.CodeOf(gone) == fault.RecordNotFound {
			return status, body, headers, false, nil // the first answer is replayed no more
		}
		err = conflict() // another node has just answered this key
	}
	return status, body, headers, false, err
}

// window returns the earliest Record.At of an answer that is replayed now, and the Record.At of one that is stored now.
// An answer with a secret can be purged as soon as it is not replayed any more.
func (i *Idempotent) window(endpoint string) (since, at time.Time) {
	now := i.Now()
	if i.Secret != nil && i.Secret(endpoint) {
		return now.Add(-idempotency.Kept), now.Add(idempotency.SecretRetention - idempotency.Kept)
	}
	return now.Add(-idempotency.Retention), now
}

func (i *Idempotent) find(ctx context.Context, id string, bodyHash [32]byte, since time.Time) (a answer, err error) {
	r, err := i.Store.Find(ctx, id, since)
	if err != nil {
		return a, err
	}
	if r.BodyHash != bodyHash {
		return a, fault.New(fault.IdempotencyMismatch, "the key was used with another body")
	}
	plain, err := i.Ring.Open(r.Sealed, idempotency.Data(id))
	if err != nil {
		return a, fmt.Errorf("open stored answer: %w", err)
	}
	return a, json.Unmarshal(plain, &a)
}

func (i *Idempotent) save(ctx context.Context, id string, bodyHash [32]byte, at time.Time, a answer,
	with ...commit.Write) error {
	plain, _ := json.Marshal(a) // encoding numbers and texts never fails
	return i.Commit.Commit(ctx, append(with, idempotency.Save{Record: idempotency.Record{ID: id, BodyHash: bodyHash,
		At: at, Sealed: i.Ring.Seal(plain, idempotency.Data(id))}})...)
}

func conflict() error {
	return fault.New(fault.IdempotencyConflict, "a request with this key is still running").After(time.Second)
}
