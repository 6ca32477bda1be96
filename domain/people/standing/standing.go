// Package standing owns whether an account may be used: its status, which an
// administrator sets, and what the AML control says of it (sections 3.5 and 4.16 of
// the interface; decisions D-KYC-03, D-KYC-04, D-KYC-06).
//
// The one idea: a status takes effect as a whole. The status, the end of the
// sessions, the blockages with their holds and balances, and the audit row are one
// unit, which is fenced by the account's credential version. What stands in the
// account's row is judged by every login; what it ended is known to this node before
// the answer and to the others within a second.
//
// Start reading at Service.Set.
package standing

import (
	"context"
	"fmt"
	"slices"
	"time"

	"castellan/domain/access/session"
	"castellan/domain/access/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/integration"
	"castellan/domain/kit/page"
	"castellan/domain/kit/parameter"
	"castellan/domain/money/blockage"
	"castellan/domain/money/ledger"
)

// The audit names of what is done with a standing.
const (
	ActionStatus = "USER_STATUS"
	ActionAML    = "USER_AML_CONFIRM"
)

// Standing is the status of an account and what was said when it was set; "" for
// nothing.
type Standing struct {
	UserID              string
	Status              user.Status
	Description, Reason string
	By                  string // id of who set it
	At                  time.Time
}

// Put notes a standing in the place of the one before it.
type Put struct{ Standing }

func (Put) Table() string { return "user_standing" }

// Row tells the writer which row it changes.
func (w Put) Row() string { return w.UserID }

// Store reads standings. Every method joins the transaction that its context carries.
// It is safe for concurrent use and passes standingtest.Run.
type Store interface {
	// Lock makes the transaction that ctx carries the only one between its Lock and
	// its end that has called it, on all nodes.
	Lock(ctx context.Context) error
	// Get reads what was said of an account; the zero value where nothing ever was.
	Get(ctx context.Context, userID string) (Standing, error)
	// Risky lists the accounts that the AML control found and that nobody has
	// confirmed, newest first: those of the parameter AMLCONTROL are left out.
	Risky(ctx context.Context, _ struct{}, p page.Query[user.Place]) (page.Of[user.User], error)
	// Finding reads a finding. RECORD_NOT_FOUND.
	Finding(ctx context.Context, findingID string) (Finding, error)
}

// Administrators reports whether one is left (D-AUTH-03); resource.Store is that.
type Administrators interface {
	Lock(ctx context.Context) error
	HeldByAnother(ctx context.Context, role, userID string, demo bool) (bool, error)
}

// Service sets standings. All fields are needed. The committer of the ledger must
// tell this node's revocations of the sessions that it ends (session.Revoking).
type Service struct {
	Store          Store
	Users          user.Store
	Blockages      *blockage.Service
	Administrators Administrators
	Dev            bool // demonstration accounts count as administrators
	Parameters     *parameter.Live
	Ignored        parameter.Store // keeps the parameter AMLCONTROL
	Changes        admin.Changes   // of topic change.Parameters, under Store.Lock
	ClosureType    int64           // type id of the blockages of closed accounts
	Claims         integration.Store
}

// Set gives an account a status. Active releases what closing it blocked. Any other
// status ends its sessions and locks all that is available; of a status that the
// account has, it locks what has come in since. The same again changes nothing.
//
// Errors: INVALID_FIELD status; RECORD_NOT_FOUND; INVALID_STATE for the last active
// administrator.
func (s *Service) Set(ctx context.Context, by audit.By, next Standing) (u user.User, err error) {
	if !parameter.UserStatus.In(s.Parameters.Set()).Allows(string(next.Status)) {
		return u, fault.Invalid("status", "is no status of accounts")
	}
	if u, err = s.Users.Get(ctx, next.UserID); err != nil {
		return u, err
	}
	if next.Status == user.Active || !s.administers(u) {
		return s.set(ctx, by, next)
	}
	err = s.Changes.Commit.InTx(ctx, func(ctx context.Context) error {
		if err := s.Administrators.Lock(ctx); err != nil {
			return err
		}
		others, err := s.Administrators.HeldByAnother(ctx, user.RoleAdmin, u.ID, s.Dev)
		if err == nil && !others {
			err = fault.New(fault.InvalidState, "the account is the last active administrator")
		}
		if err == nil {
			u, err = s.set(ctx, by, next)
		}
		return err
	})
	return u, err
}

func (s *Service) set(ctx context.Context, by audit.By, next Standing) (u user.User, err error) {
	money := s.Blockages.Ledger
	owned, err := money.Store.Owned(ctx, next.UserID)
	if err != nil {
		return u, err
	}
	accounts := make([]ledger.Account, len(owned))
	for i, b := range owned {
		accounts[i] = b.Account
	}
	next.By = by.UserID
	plan := func(ctx context.Context, has []ledger.Balance) (m ledger.Movement, err error) {
		if u, err = s.Users.Get(ctx, next.UserID); err != nil {
			return m, err
		}
		was, err := s.Store.Get(ctx, u.ID)
		if err != nil {
			return m, err
		}
		next.At = s.Changes.Now().Truncate(time.Millisecond)
		var told string
		if next.Status == user.Active {
			m, told, err = s.Blockages.Reopen(ctx, next.At, u.ID)
		} else {
			m, told, err = s.Blockages.Close(ctx, next.At, u.ID, s.ClosureType, has)
		}
		moved := u.Status != next.Status
		said := moved || was.Description != next.Description || was.Reason != next.Reason
		if err != nil || !said && len(m.With) == 0 {
			return m, err
		}
		if said {
			m.With = append(m.With, Put{next})
		}
		if moved || told != "" {
			m.With = append(m.With, user.SetStatus{UserID: u.ID, CV: u.CV, Status: next.Status})
		}
		if moved {
			m.With = append(m.With, s.known(u, next)...)
			m.With = append(m.With, integration.Publish{Event: integration.Event{ID: id.New(next.At),
				Type: integration.AccountStatus, UserID: u.ID, At: next.At,
				Data: map[string]string{"status": string(next.Status), "previousStatus": string(u.Status)}}})
		}
		m.With = append(m.With, by.Did(audit.Record{At: next.At, Action: ActionStatus, UserID: u.ID, Target: u.ID,
			Detail: because(fmt.Sprintf("%s -> %s%s", u.Status, next.Status, told), next.Reason)}))
		u.Status = next.Status
		return m, nil
	}
	_, err = money.Decide(ctx, by, accounts, plan)
	return u, err
}

// because is a detail with the reason, where one was given: whoever reads of the change asks why.
func because(detail, reason string) string {
	if reason == "" {
		return detail
	}
	return detail + "; " + reason
}

// known is what the nodes are told of another status.
func (s *Service) known(u user.User, next Standing) []commit.Write {
	if next.Status == user.Active {
		return []commit.Write{change.Note{Topic: change.Users, Key: u.ID}}
	}
	return session.EndAll(u, next.At)
}

func (s *Service) administers(u user.User) bool {
	return slices.Contains(u.Roles, user.RoleAdmin) && u.Active() && (s.Dev || !u.Demo)
}

// maxChanged bounds how often a confirmation is made again because an administrator
// changed the parameter meanwhile.
const maxChanged = 5

// ConfirmAML declares an account harmless: its AML status, and the list of those whom
// the AML control leaves alone, change together (D-KYC-06). Of one that is harmless
// nothing changes. RECORD_NOT_FOUND.
func (s *Service) ConfirmAML(ctx context.Context, by audit.By, userID string) (u user.User, err error) {
	for range maxChanged {
		err = s.Changes.Do(ctx, by, ActionAML, func(ctx context.Context) (admin.Done, error) {
			if u, err = s.Users.Get(ctx, userID); err != nil || u.AMLStatus == user.NotRisky {
				return admin.Done{}, err
			}
			u.AMLStatus = user.NotRisky
			return admin.Done{Target: u.ID, UserID: u.ID, Key: parameter.AMLControl.Code,
				Writes: []commit.Write{user.SetAMLStatus{UserID: u.ID, Status: user.NotRisky}}}, s.ignore(ctx, u.ID)
		})
		if fault.CodeOf(err) != fault.InvalidState {
			break
		}
	}
	return u, err
}

func (s *Service) ignore(ctx context.Context, userID string) error {
	return parameter.AMLControl.Change(ctx, s.Ignored, func(i parameter.Ignored) (parameter.Ignored, error) {
		if !slices.Contains(i.IgnoredUsers, userID) {
			i.IgnoredUsers = append(i.IgnoredUsers, userID)
		}
		return i, nil
	})
}
