package contract

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
)

type Status string

// The statuses. Only a replaced version is final.
const (
	StatusDraft    Status = "draft"    // never published
	StatusActive   Status = "active"   // a sign-up must accept it
	StatusInactive Status = "inactive" // was published, and no longer applies
	StatusReplaced Status = "replaced" // a later version was published
)

// Status returns the status of a contract among all contracts.
func (c Contract) Status(all []Contract) Status {
	switch {
	case c.Active:
		return StatusActive
	case slices.ContainsFunc(all, func(o Contract) bool {
		return o.Code == c.Code && o.ID > c.ID && !o.PublishedAt.IsZero()
	}):
		return StatusReplaced
	case c.PublishedAt.IsZero():
		return StatusDraft
	}
	return StatusInactive
}

// Title returns the contract's name in a language: tr, en or ar. Without a name in the language it is the English one.
func (c Contract) Title(language string) string {
	switch {
	case language == "tr" && c.Turkish != "":
		return c.Turkish
	case language == "ar" && c.Arabic != "":
		return c.Arabic
	}
	return c.Name
}

// Add adds a contract with a new code and returns it. It is a draft or, if Active is set, published. INVALID_FIELD;
// RECORD_ALREADY_EXIST if the code is taken.
func (s *Service) Add(ctx context.Context, by audit.By, c Contract) (Contract, error) {
	if err := c.Check(); err != nil {
		return c, err
	}
	err := s.Changes.Do(ctx, by, "CONTRACT_ADD", func(ctx context.Context) (done admin.Done, err error) {
		same, err := s.Store.Contracts(ctx, Query{Code: &c.Code})
		if err != nil {
			return done, err
		}
		if len(same) > 0 {
			return done, fault.New(fault.RecordAlreadyExist, "a contract with this code already exists")
		}
		c, err = s.added(ctx, c)
		return admin.Done{Target: c.Code, Detail: admin.Values(c)}, err
	})
	return c, err
}

// AddVersion adds a draft of another version of a contract and returns it. The draft has the names and copies of the
// details of the contract with the id. INVALID_FIELD; RECORD_NOT_FOUND; RECORD_ALREADY_EXIST if a contract of the code
// has the version.
func (s *Service) AddVersion(ctx context.Context, by audit.By, id int64, version string) (c Contract, err error) {
	err = s.Changes.Do(ctx, by, "CONTRACT_VERSION_ADD", func(ctx context.Context) (done admin.Done, err error) {
		of, _, err := s.find(ctx, id)
		if err != nil {
			return done, err
		}
		c = Contract{Code: of.Code, Name: of.Name, Turkish: of.Turkish, Arabic: of.Arabic, Version: version}
		if err := c.Check(); err != nil {
			return done, err
		}
		if c, err = s.added(ctx, c); err != nil {
			return done, err
		}
		details, err := s.Store.Details(ctx, of.ID)
		for _, d := range details {
			d.ContractID = c.ID
			if _, err := s.Store.AddDetail(ctx, d); err != nil {
				return done, err
			}
		}
		return admin.Done{Target: number(c.ID), Detail: c.labelled() + " from " + number(of.ID)}, err
	})
	return c, err
}

// Edit edits the names of a contract, and the version of a draft. If nothing differs afterwards, nothing is written.
//
// Errors: RECORD_NOT_FOUND; INVALID_FIELD as in Check; INVALID_STATE if the contract is replaced, or published and its
// version differs; RECORD_ALREADY_EXIST if a contract of the code has the version.
func (s *Service) Edit(ctx context.Context, by audit.By, id int64, edit func(*Contract)) (Contract, Status, error) {
	return s.change(ctx, by, "CONTRACT_UPDATE", id, func(_ context.Context, c *Contract, all []Contract) error {
		before := *c
		if edit(c); *c == before {
			return nil
		}
		if before.Status(all) == StatusReplaced {
			return replaced()
		}
		if c.Version != before.Version && !c.PublishedAt.IsZero() {
			return fault.New(fault.InvalidState, "the version of a published contract does not change")
		}
		return c.Check()
	})
}

// Publish makes a contract the active one of its code; the version that was active is replaced in the same
// transaction. Publishing the active contract changes nothing. RECORD_NOT_FOUND; INVALID_STATE if the contract is
// replaced.
func (s *Service) Publish(ctx context.Context, by audit.By, id int64) (Contract, Status, error) {
	return s.change(ctx, by, "CONTRACT_PUBLISH", id, func(ctx context.Context, c *Contract, all []Contract) error {
		if c.Status(all) == StatusReplaced {
			return replaced()
		}
		for _, o := range all {
			if o.Code == c.Code && o.Active && o.ID != c.ID {
				o.Active = false
				if err := s.Store.Save(ctx, o); err != nil {
					return err
				}
			}
		}
		if c.Active = true; c.PublishedAt.IsZero() {
			c.PublishedAt = s.Changes.Now()
		}
		return nil
	})
}

// Deactivate makes a contract inactive: a sign-up need not accept it. Of a contract that is not active it changes
// nothing. RECORD_NOT_FOUND.
func (s *Service) Deactivate(ctx context.Context, by audit.By, id int64) (Contract, Status, error) {
	return s.change(ctx, by, "CONTRACT_DEACTIVATE", id, func(_ context.Context, c *Contract, _ []Contract) error {
		c.Active = false
		return nil
	})
}

// change applies a change to the contract with the id, among all contracts, and saves it if it differs. It returns the
// contract with its status.
func (s *Service) change(ctx context.Context, by audit.By, action string, id int64,
	do func(ctx context.Context, c *Contract, all []Contract) error) (c Contract, status Status, err error) {
	err = s.Changes.Do(ctx, by, action, func(ctx context.Context) (done admin.Done, err error) {
		before, all, err := s.find(ctx, id)
		if err != nil {
			return done, err
		}
		c = before
		if err := do(ctx, &c, all); err != nil {
			return done, err
		}
		if status = c.Status(all); c == before {
			return done, nil
		}
		detail := c.labelled()
		if action == "CONTRACT_UPDATE" {
			detail += ": " + admin.Difference(before, c)
		}
		return admin.Done{Target: number(c.ID), Detail: detail}, s.Store.Save(ctx, c)
	})
	return c, status, err
}

// find returns the contract with the id, and all contracts. RECORD_NOT_FOUND.
func (s *Service) find(ctx context.Context, id int64) (Contract, []Contract, error) {
	all, err := s.Store.Contracts(ctx, Query{})
	if err != nil {
		return Contract{}, nil, err
	}
	c, err := among(all, id)
	return c, all, err
}

// among returns the contract with the id. RECORD_NOT_FOUND.
func among(all []Contract, id int64) (Contract, error) {
	i := slices.IndexFunc(all, func(c Contract) bool { return c.ID == id })
	if i < 0 {
		return Contract{}, fault.New(fault.RecordNotFound, "no such contract")
	}
	return all[i], nil
}

// added inserts a contract and returns it with its id and its time of creation.
func (s *Service) added(ctx context.Context, c Contract) (Contract, error) {
	id, err := s.Store.Add(ctx, c)
	if err != nil {
		return c, err
	}
	c, _, err = s.find(ctx, id)
	return c, err
}

// editable returns RECORD_NOT_FOUND if one of the contracts does not exist, and INVALID_STATE if one is replaced: its
// text does not change, so that an acceptance stays readable.
func (s *Service) editable(ctx context.Context, ids ...int64) error {
	all, err := s.Store.Contracts(ctx, Query{})
	if err != nil {
		return err
	}
	for _, id := range ids {
		c, err := among(all, id)
		if err != nil {
			return err
		}
		if c.Status(all) == StatusReplaced {
			return replaced()
		}
	}
	return nil
}

func replaced() error {
	return fault.New(fault.InvalidState, "a later version of the contract was published")
}

// labelled returns code and version for the audit row.
func (c Contract) labelled() string { return strings.TrimSpace(c.Code + " " + c.Version) }

func number(id int64) string { return strconv.FormatInt(id, 10) }
