// Package geofilter owns the geographic filter of an account (sections 2.7 and 4.21 of the interface): the countries
// from which it may be used. None means all.
//
// The one idea: the filter is stored twice. The owner sees its records, with ids and times. The account's own row
// repeats the codes, so that a reader of the account (a login, a reset, the start of a challenge) has the filter of
// that version. Both change in one unit, fenced by the account's credential version, together with the end of every
// session. Requests are checked against a copy in memory (Cache).
//
// Start reading at Service, then Cache. Package geo determines the country of an address, and the meaning of an
// unknown one. The package implements D-GEO-02…06.
package geofilter

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/geo"
	"castellan/domain/session/session"
)

// The codes of the actions, which are also their names in the audit, and the audit's name for the change of an
// operator.
const (
	ActionAdd    = "GEOFILTER_ADD"
	ActionRemove = "GEOFILTER_REMOVE"
	ActionClear  = "GEOFILTER_CLEAR"
)

// Country is one country of an account's filter.
type Country struct {
	ID                   int64
	UserID               string
	Code                 string // ISO 3166-1 alpha-2
	CreatedAt, UpdatedAt time.Time
}

// Service manages the filters of accounts. All fields are required; only Clear needs Commit.
type Service struct {
	Store   Store
	Users   user.Store
	Commit  commit.Committer
	Notices challenge.Notices
	Now     func() time.Time
}

// Command is the change that a challenge stores.
type Command struct {
	Code string `json:"c"`
}

// PrepareAdd checks an addition before its challenge is created (D-GEO-04). The only country may be one where the
// caller is not (D-GEO-05).
//
// Errors: INVALID_FIELD, RECORD_ALREADY_EXIST.
func (s *Service) PrepareAdd(ctx context.Context, userID, code string) (Command, error) {
	return s.prepare(ctx, userID, code, addable)
}

// PrepareRemove is PrepareAdd for the removal of a country.
//
// Errors: INVALID_FIELD, RECORD_NOT_FOUND.
func (s *Service) PrepareRemove(ctx context.Context, userID, code string) (Command, error) {
	return s.prepare(ctx, userID, code, removable)
}

func (s *Service) prepare(ctx context.Context, userID, sent string,
	may func(geo.Filter, string) error) (Command, error) {
	code, err := geo.Parse(sent)
	if err != nil {
		return Command{}, err
	}
	u, err := s.Users.Get(ctx, userID)
	if err == nil {
		err = may(u.Countries, code)
	}
	return Command{code}, err
}

func addable(f geo.Filter, code string) error {
	if f.Has(code) {
		return fault.New(fault.RecordAlreadyExist, "the country is already in the filter")
	}
	return nil
}

func removable(f geo.Filter, code string) error {
	if !f.Has(code) {
		return fault.New(fault.RecordNotFound, "the country is not in the filter")
	}
	return nil
}

func (s *Service) AddAction() challenge.Action { return s.action(ActionAdd, s.add) }

func (s *Service) RemoveAction() challenge.Action { return s.action(ActionRemove, s.remove) }

// action changes the filter when its challenge is complete, and ends every session, including the caller's
// (D-AUTH-11). The challenge keeps the filter of its start. So its starter can read the outcome even where the
// account may not be used any more (D-GEO-02).
func (s *Service) action(code string, change func(u user.User, cmd Command, now time.Time) ([]commit.Write,
	error)) challenge.Action {
	return challenge.Action{Code: code, Flow: challenge.FlowSession, KeepsFilter: true,
		Describe: func(command []byte) []challenge.Detail {
			var cmd Command
			if json.Unmarshal(command, &cmd) != nil {
				return nil
			}
			return []challenge.Detail{{Key: mfa.HeaderAllowed, Value: cmd.Code}}
		},
		Build: func(ctx context.Context, x challenge.Execution) (challenge.Result, []commit.Write, error) {
			var cmd Command
			if err := json.Unmarshal(x.Command, &cmd); err != nil {
				return challenge.Result{}, nil, fmt.Errorf("geographic filter: command: %w", err)
			}
			c := x.Challenge
			u, err := s.Users.Get(ctx, c.UserID)
			if err != nil {
				return challenge.Result{}, nil, err
			}
			writes, err := change(u, cmd, x.Now)
			if err != nil {
				return challenge.Result{}, nil, err
			}
			writes = append(writes, s.Notices.Notice(u.Account(), message.FilterChanged, nil, c.Starter.IP)...)
			return challenge.Result{Success: true}, append(writes,
				audit.Record{At: x.Now, ActorID: c.UserID, UserID: c.UserID, Action: code, Target: cmd.Code, Outcome: audit.Success,
					IP: c.Starter.IP, RequestID: c.Starter.RequestID, Detail: "all sessions ended"}), nil
		}}
}

func (s *Service) add(u user.User, cmd Command, now time.Time) ([]commit.Write, error) {
	if err := addable(u.Countries, cmd.Code); err != nil {
		return nil, err
	}
	return set(u, u.Countries.With(cmd.Code), now, Add{Country{UserID: u.ID, Code: cmd.Code, CreatedAt: now,
		UpdatedAt: now}}), nil
}

func (s *Service) remove(u user.User, cmd Command, now time.Time) ([]commit.Write, error) {
	if err := removable(u.Countries, cmd.Code); err != nil {
		return nil, err
	}
	return set(u, u.Countries.Without(cmd.Code), now, Remove{u.ID, cmd.Code}), nil
}

// set returns all writes of a change of the records.
func set(u user.User, next geo.Filter, now time.Time, records ...commit.Write) []commit.Write {
	return append(append(records, user.SetCountries{UserID: u.ID, CV: u.CV, Countries: next},
		change.Note{Topic: change.Geofilter, Key: u.ID}),
		session.EndAll(u, now)...)
}

// maxFenced bounds how often a decision is repeated because the account changed meanwhile.
const maxFenced = 5

// Clear empties an account's filter for a user who is locked out (D-GEO-05), and returns the removed countries. by is
// the operator, for the audit. If the filter is empty, it changes nothing and ends no session.
//
// Errors: RECORD_NOT_FOUND when the account does not exist, UNAVAILABLE.
func (s *Service) Clear(ctx context.Context, userID string, by audit.By) (codes []string, err error) {
	err = commit.Retry(maxFenced, func() error {
		u, err := s.Users.Get(ctx, userID)
		if err != nil || u.Countries == "" {
			return err
		}
		now, had := s.Now(), u.Countries.Codes()
		var records []commit.Write
		for _, code := range had {
			records = append(records, Remove{u.ID, code})
		}
		err = s.Commit.Commit(ctx, append(append(set(u, "", now, records...),
			s.Notices.Notice(u.Account(), message.FilterChanged, nil, by.IP)...),
			by.Did(audit.Record{At: now, UserID: u.ID, Action: ActionClear, Target: u.ID, Detail: string(u.Countries)}))...)
		if err == nil {
			codes = had
		}
		return err
	})
	return codes, err
}

// Add inserts a country; the store ignores its ID and assigns one. The unit fails with RECORD_ALREADY_EXIST when the
// account has the country. user.SetCountries accompanies it.
type Add struct{ Country }

func (Add) Table() string { return "geofilter_country" }

// Remove removes a country from an account's filter; a missing one changes nothing. user.SetCountries accompanies it.
type Remove struct{ UserID, Code string }

func (Remove) Table() string { return "geofilter_country" }

// Held is the filter in the row of an account, and the credential version at the read. Of two, the one with the
// higher version is newer.
type Held struct {
	UserID string
	CV     int64
	Filter geo.Filter
}

// Store reads filters. Writes go through commit.Committer as the values above.
// It is safe for concurrent use.
type Store interface {
	// Countries lists the countries of an account, oldest first; none if the account does not exist.
	Countries(ctx context.Context, userID string) ([]Country, error)
	// All lists the accounts that have a filter.
	All(ctx context.Context) ([]Held, error)
	// Get reads the filter of one account; an empty one of version 0 if the account does not exist.
	Get(ctx context.Context, userID string) (Held, error)
}
