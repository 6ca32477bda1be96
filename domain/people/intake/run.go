package intake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"sync"
	"time"

	"castellan/domain/access/password"
	"castellan/domain/access/password/legacy"
	"castellan/domain/access/totp"
	"castellan/domain/access/user"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/integration"
	"castellan/domain/kit/keyring"
	"castellan/domain/people/registration"
)

// The audit names of this package.
const (
	ActionImport = "USER_IMPORT"
	ActionExport = "USER_EXPORT"
)

// Service imports and exports users. All fields are required except Refused, Progress and Pause.
type Service struct {
	Store    Store
	Commit   commit.Committer
	Hasher   *password.Hasher
	Ring     *keyring.Ring
	Users    user.Store
	TOTP     totp.Store
	Statuses []string // of accounts
	Now      func() time.Time
	// Refused is called for every refused line of a dry run; an import records them.
	Refused func(Refusal)
	// Progress is called after each batch.
	Progress func(State)
	// Pause is the rest between two batches. A running service writes to the database meanwhile.
	Pause time.Duration

	recipes legacy.Costliest // that this process has recorded
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
		return s.rehearse(ctx, source)
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
	for {
		batch, end := read(source)
		if len(batch) == 0 && !errors.Is(end, io.EOF) {
			return state, end
		}
		next, err := s.importBatch(ctx, state, batch, errors.Is(end, io.EOF))
		if err != nil {
			return state, err
		}
		if state = next; s.Progress != nil {
			s.Progress(state)
		}
		if end != nil {
			if errors.Is(end, io.EOF) {
				end = nil
			}
			return state, end
		}
		select {
		case <-ctx.Done():
			return state, ctx.Err()
		case <-time.After(s.Pause):
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
		people, refused := divide(all, taken, newNameSet())
		if err := s.adopt(ctx, people); err != nil {
			return state, err
		}
		next := state
		next.Cursor += int64(len(batch))
		next.Imported += int64(len(people))
		next.Refused += int64(len(refused))
		next.Done = last
		writes, err := s.writes(state, next, people, refused)
		if err != nil {
			return state, err
		}
		switch err := s.Commit.Commit(ctx, writes...); {
		case err == nil:
			for _, w := range writes {
				if used, ok := w.(password.UseRecipe); ok {
					s.recipes.Add(used.Recipe)
				}
			}
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

// rehearse judges a file and changes nothing.
func (s *Service) rehearse(ctx context.Context, source Source) (state State, err error) {
	inFile := newNameSet()
	for {
		batch, end := read(source)
		all := s.canonical(batch)
		taken, err := s.taken(ctx, all)
		if err != nil {
			return state, err
		}
		people, refused := divide(all, taken, inFile)
		state.Cursor += int64(len(batch))
		state.Imported += int64(len(people))
		state.Refused += int64(len(refused))
		if s.Refused != nil {
			for _, r := range refused {
				s.Refused(r)
			}
		}
		if s.Progress != nil {
			s.Progress(state)
		}
		if errors.Is(end, io.EOF) {
			state.Done = true
			return state, nil
		}
		if end != nil || ctx.Err() != nil {
			return state, cmp.Or(end, ctx.Err())
		}
	}
}

// canonical returns the entries of a batch with their accounts.
func (s *Service) canonical(batch []Record) []*person {
	now, all := s.Now(), make([]*person, len(batch))
	for i, r := range batch {
		p := &person{Record: r}
		if all[i] = p; p.Refused != "" {
			continue
		}
		var err error
		if p.account, p.secret, err = r.account(id.New(now), now, s.Statuses); err != nil {
			p.Refused = reason(err)
		}
	}
	return all
}

// names returns the names of a person, in the order email, phone number, external id; "" for none.
func (p *person) names() [3]string { return [3]string{p.account.Email, p.account.Phone, p.ExternalID} }

var nameFields = [3]string{"email", "phoneNumber", "externalId"}

// taken returns the names of a batch that accounts have.
func (s *Service) taken(ctx context.Context, all []*person) (nameSet, error) {
	var wanted [3][]string
	for _, p := range all {
		if p.Refused != "" {
			continue
		}
		for i, name := range p.names() {
			if name != "" {
				wanted[i] = append(wanted[i], name)
			}
		}
	}
	have := newNameSet()
	found, err := s.Store.Taken(ctx, Names{Mails: wanted[0], Phones: wanted[1], ExternalIDs: wanted[2]})
	for i, list := range [3][]string{found.Mails, found.Phones, found.ExternalIDs} {
		for _, name := range list {
			have.add(i, name)
		}
	}
	return have, err
}

// divide divides a batch into people and refusals. inFile are the names of earlier lines; it receives those of the
// people.
func divide(all []*person, taken, inFile nameSet) (people []*person, refused []Refusal) {
	for _, p := range all {
		why := p.Refused
		for i, name := range p.names() {
			if why == "" && name != "" && (taken.has(i, name) || inFile.has(i, name)) {
				why = nameFields[i] + " is already used by an account or an earlier line"
			}
		}
		if why != "" {
			refused = append(refused, Refusal{p.Line, why})
			continue
		}
		for i, name := range p.names() {
			if name != "" {
				inFile.add(i, name)
			}
		}
		people = append(people, p)
	}
	return people, refused
}

// nameSet is a set of names of accounts by their hashes. A collision among millions has a chance below one in a
// million.
type nameSet struct {
	seed maphash.Seed
	set  map[uint64]struct{}
}

func newNameSet() nameSet { return nameSet{maphash.MakeSeed(), map[uint64]struct{}{}} }

func (n nameSet) key(kind int, name string) uint64 {
	return maphash.String(n.seed, nameFields[kind]+"\x00"+name)
}

func (n nameSet) add(kind int, name string) { n.set[n.key(kind, name)] = struct{}{} }

func (n nameSet) has(kind int, name string) bool {
	_, ok := n.set[n.key(kind, name)]
	return ok
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
func (s *Service) writes(state, next State, people []*person, refused []Refusal) ([]commit.Write, error) {
	now := s.Now()
	writes := []commit.Write{Save{State: withVersion(next, state.Version), At: now}}
	var fresh legacy.Costliest
	for _, p := range people {
		u := p.account
		writes = append(writes, user.Add{User: u, PasswordHash: p.hash})
		if p.ExternalID != "" {
			writes = append(writes, integration.Add{Claim: claim(p)})
		}
		if p.secret != nil {
			writes = append(writes, totp.Adopt(s.Ring, u.ID, p.secret, now))
		}
		if password.Imported(p.hash) {
			recipes, err := s.Hasher.Recipes(p.hash)
			if err != nil {
				return nil, err
			}
			for _, r := range recipes {
				if !s.recipes.Covers(r) {
					fresh.Add(r)
				}
			}
		}
	}
	for _, r := range refused {
		writes = append(writes, Refuse{state.ID, r})
	}
	for i, r := range fresh.List() {
		if writes = append(writes, password.UseRecipe{Recipe: r, At: now}); i == 0 {
			writes = append(writes, change.Note{Topic: change.Hashes})
		}
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

func withVersion(s State, version int64) State {
	s.Version = version
	return s
}

// claim returns the claim on the external id. A registration with the same fields finds the account (D-INT-02).
func claim(p *person) integration.Claim {
	u := p.account
	return integration.Claim{Kind: integration.Users, ExternalID: p.ExternalID, RecordID: u.ID, At: u.CreatedAt,
		Digest: integration.Digest(registration.Newcomer{ExternalID: p.ExternalID, CountryCode: u.CountryCode,
			Phone: u.Phone, Email: u.Email, Name: u.Name, Surname: u.Surname, Language: u.Language, Type: u.Type})}
}

// AllRefusals calls each for every refused line of an import, in ascending order.
func (s *Service) AllRefusals(ctx context.Context, importID string, each func(Refusal) error) error {
	const page = 1000
	for after := int64(0); ; {
		list, err := s.Store.Refusals(ctx, importID, after, page)
		if err != nil {
			return err
		}
		for _, r := range list {
			if err := each(r); err != nil {
				return err
			}
			after = r.Line
		}
		if len(list) < page {
			return nil
		}
	}
}
