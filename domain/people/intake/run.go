package intake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/integration"
	"castellan/domain/kit/keyring"
	"castellan/domain/people/registration"
	"castellan/domain/proof/totp"
)

// The audit names of this package.
const (
	ActionImport = "USER_IMPORT"
	ActionExport = "USER_EXPORT"
)

// Service imports and exports users. All fields are required except MustReset, Refused,
// Noted, Progress and Pause.
type Service struct {
	Store    Store
	Commit   commit.Committer
	Hasher   *password.Hasher
	Ring     *keyring.Ring
	Users    user.Store
	TOTP     totp.Store
	Statuses []string // of accounts
	Now      func() time.Time
	// MaxCost is the largest accepted cost of a hash in work units (legacy.Recipe.Work).
	MaxCost uint64
	// MustReset takes a user whose hash costs more, or is of a kind that cannot be computed, without the password.
	MustReset bool
	// Refused and Noted are called for every refused line and every note of a dry run; an import records them.
	Refused func(Refusal)
	Noted   func(Note)
	// Progress is called after each batch.
	Progress func(State)
	// Pause is the rest between two batches. A running service writes to the database meanwhile.
	Pause time.Duration
}

// Sizes of a batch: the records, and those of them whose hash is computed, because each takes tens of milliseconds.
const (
	batchRecords = 500
	batchHashes  = 64
)

// maxRaces bounds how often a batch is decided again because an account with one of its names was made meanwhile.
const maxRaces = 5

// person is an entry with its account.
type person struct {
	Record
	account user.User
	secret  []byte // of the authenticator
	hash    string // as stored
}

// Run imports the users of source, beginning behind the cursor of the import. importID names the content of the file
// and its format. A repeated import that is done changes nothing. An entry whose phone number, mail address or external
// id an account has is refused.
//
// A dry run judges everything and changes nothing. It remembers about 20 bytes for each name of the file.
//
// Errors: INVALID_STATE if another process imports the same file; UNAVAILABLE; the error of source, after which the
// state counts what was read before. Run may be repeated after every error.
func (s *Service) Run(ctx context.Context, importID string, source Source, dry bool) (State, error) {
	state, err := s.Store.State(ctx, importID)
	if err != nil {
		return state, err
	}
	state.ID = importID
	if dry {
		return s.batches(ctx, State{}, source, 0, s.rehearsal())
	}
	if state.Done {
		return state, nil
	}
	if state.Version == 0 {
		state.StartedAt = s.Now()
	}
	for range state.Cursor {
		if _, err := source.Next(); err != nil {
			return state, fmt.Errorf("the file is shorter than before: %w", err)
		}
	}
	return s.batches(ctx, state, source, s.Pause, s.importBatch)
}

// step takes one batch and returns the state after it. last is set for the last one of the file.
type step func(ctx context.Context, state State, batch []Record, last bool) (State, error)

// batches takes the batches of a file, with a rest after each.
func (s *Service) batches(ctx context.Context, state State, source Source, rest time.Duration,
	take step) (State, error) {
	for {
		batch, end := read(source)
		last := errors.Is(end, io.EOF)
		if len(batch) == 0 && !last {
			return state, end
		}
		next, err := take(ctx, state, batch, last)
		if err != nil {
			return state, err
		}
		if state = next; s.Progress != nil {
			s.Progress(state)
		}
		if last {
			return state, nil
		}
		if err := cmp.Or(end, ctx.Err()); err != nil {
			return state, err
		}
		select {
		case <-ctx.Done():
			return state, ctx.Err()
		case <-time.After(rest):
		}
	}
}

// read reads a batch, and the error that ends the file.
func read(source Source) (batch []Record, end error) {
	for hashes := 0; len(batch) < batchRecords && hashes < batchHashes; {
		r, err := source.Next()
		if err != nil {
			return batch, err
		}
		if r.Hash.Foreign != nil && !r.Hash.Foreign.Strong() {
			hashes++
		}
		batch = append(batch, r)
	}
	return batch, nil
}

// importBatch commits a batch.
func (s *Service) importBatch(ctx context.Context, state State, batch []Record, last bool) (State, error) {
	all := s.canonical(batch)
	for range maxRaces {
		taken, err := s.taken(ctx, all)
		if err != nil {
			return state, err
		}
		people, refused, notes := divide(all, taken, newNameSet())
		if err := s.adopt(ctx, people); err != nil {
			return state, err
		}
		next := state.after(len(batch), len(people), len(refused), last)
		writes, err := s.writes(state, next, people, refused, notes)
		if err != nil {
			return state, err
		}
		switch err := s.Commit.Commit(ctx, writes...); {
		case err == nil:
			next.Version = state.Version + 1
			return next, nil
		case errors.Is(err, commit.ErrFenced):
			return state, fault.New(fault.InvalidState, "another process imports this file")
		case fault.CodeOf(err) != fault.RecordAlreadyExist: // an account with one of the names was made meanwhile
			return state, err
		}
	}
	return state, fault.New(fault.Unavailable, "accounts of this file are being created; try again")
}

// rehearsal returns the step of a dry run. It judges a batch and changes nothing.
func (s *Service) rehearsal() step {
	inFile := newNameSet()
	return func(ctx context.Context, state State, batch []Record, last bool) (State, error) {
		all := s.canonical(batch)
		taken, err := s.taken(ctx, all)
		if err != nil {
			return state, err
		}
		people, refused, notes := divide(all, taken, inFile)
		if s.Refused != nil {
			for _, r := range refused {
				s.Refused(r)
			}
		}
		if s.Noted != nil {
			for _, n := range notes {
				s.Noted(n)
			}
		}
		return state.after(len(batch), len(people), len(refused), last), nil
	}
}

// canonical returns the entries of a batch with their accounts.
func (s *Service) canonical(batch []Record) []*person {
	now, all := s.Now(), make([]*person, len(batch))
	for i, r := range batch {
		p := &person{Record: r}
		if all[i] = p; p.Refused != "" || p.Other {
			continue
		}
		var err error
		if p.account, p.secret, err = r.account(id.New(now), now, s.Statuses); err != nil {
			p.Refused = reason(err)
			continue
		}
		switch why := s.unaffordable(p.Hash); {
		case why != "" && !s.MustReset:
			p.Refused = hashReason(errors.New(why))
			continue
		case why != "":
			p.MustReset = true
			p.Notes = append(slices.Clip(p.Notes), "the password must be reset: "+why)
		}
		if p.MustReset {
			p.account.MustReset, p.Hash = true, Hash{}
		}
	}
	return all
}

// unaffordable returns why a hash cannot be taken; "" if it can.
func (s *Service) unaffordable(h Hash) string {
	if h.Beyond != "" {
		return h.Beyond
	}
	var work uint64
	if h.Foreign != nil {
		work = h.Foreign.Work()
	} else if k, err := password.KindOf(h.Stored); err == nil {
		work = k.Work()
	}
	if work > s.MaxCost {
		return fmt.Sprintf("its cost of %d work units is above password.import_max_cost, which is %d", work, s.MaxCost)
	}
	return ""
}

// adopt sets the stored hashes of people who have none yet. Weak hashes are wrapped, as many at once as the hasher has
// slots.
func (s *Service) adopt(ctx context.Context, people []*person) error {
	var wg sync.WaitGroup
	errs := make([]error, len(people))
	slots := make(chan struct{}, s.Hasher.Slots())
	for i, p := range people {
		if p.hash != "" || p.Hash.Stored == "" && p.Hash.Foreign == nil {
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if p.Hash.Stored != "" {
				p.hash, errs[i] = s.Hasher.AdoptStored(ctx, p.Hash.Stored)
			} else {
				p.hash, errs[i] = s.Hasher.Adopt(ctx, *p.Hash.Foreign)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// writes returns the unit of a batch.
func (s *Service) writes(state, next State, people []*person, refused []Refusal, notes []Note) ([]commit.Write, error) {
	now := s.Now()
	writes := []commit.Write{Save{State: next, At: now}}
	kinds := map[password.Kind]int64{}
	for _, p := range people {
		u := p.account
		writes = append(writes, user.Add{User: u, PasswordHash: p.hash})
		if p.ExternalID != "" {
			writes = append(writes, integration.Add{Claim: claim(p)})
		}
		if p.secret != nil {
			writes = append(writes, totp.Adopt(s.Ring, u.ID, p.secret, now))
		}
		if p.hash != "" {
			k, err := password.KindOf(p.hash)
			if err != nil {
				return nil, err
			}
			kinds[k]++
		}
	}
	for _, r := range refused {
		writes = append(writes, Refuse{state.ID, r})
	}
	for _, n := range notes {
		writes = append(writes, Remark{state.ID, n})
	}
	for k, n := range kinds {
		writes = append(writes, password.UseKind{Kind: k, Accounts: n})
	}
	if len(kinds) > 0 {
		writes = append(writes, change.Note{Topic: change.Hashes})
	}
	if next.Cursor == state.Cursor { // only the end of the file
		return writes, nil
	}
	detail := fmt.Sprintf("users %d to %d of the file: %d added, %d refused", state.Cursor+1, next.Cursor, len(people),
		len(refused))
	return append(writes, audit.Operator.Did(audit.Record{At: now, Action: ActionImport, Target: short(state.ID),
		Detail: detail})), nil
}

// short returns the part of an import's id that identifies it to a person.
func short(importID string) string { return importID[:min(16, len(importID))] }

// claim returns the claim on the external id. A registration with the same fields finds the account (D-INT-02).
func claim(p *person) integration.Claim {
	u := p.account
	return integration.Claim{Kind: integration.Users, ExternalID: p.ExternalID, RecordID: u.ID, At: u.CreatedAt,
		Digest: integration.Digest(registration.Newcomer{ExternalID: p.ExternalID, CountryCode: u.CountryCode,
			Phone: u.Phone, Email: u.Email, Name: u.Name, Surname: u.Surname, Language: u.Language, Type: u.Type})}
}

// AllRefusals calls each for every refused line of an import, in ascending order.
func (s *Service) AllRefusals(ctx context.Context, importID string, each func(Refusal) error) error {
	return all(ctx, importID, s.Store.Refusals, func(r Refusal) int64 { return r.Line }, each)
}

// AllNotes calls each for every note of an import, in ascending order.
func (s *Service) AllNotes(ctx context.Context, importID string, each func(Note) error) error {
	return all(ctx, importID, s.Store.Notes, func(n Note) int64 { return n.Line }, each)
}

func all[T any](ctx context.Context, importID string, list func(context.Context, string, int64, int) ([]T, error),
	line func(T) int64, each func(T) error) error {
	const page = 1000
	for after := int64(0); ; {
		part, err := list(ctx, importID, after, page)
		if err != nil {
			return err
		}
		for _, one := range part {
			if err := each(one); err != nil {
				return err
			}
			after = line(one)
		}
		if len(part) < page {
			return nil
		}
	}
}
