// Package standing determines whether an account may be used (sections 3.5 and 4.16 of the interface; decisions
// D-KYC-03, D-KYC-04, D-KYC-06): its status, set by an administrator, and its AML status.
//
// The one idea: a status takes effect as a whole. The status, the end of the sessions, the blockages with their holds
// and balances, and the audit row are one unit, which is fenced by the account's credential version. Every login checks
// the status in the account's row. This node knows the ended sessions before the response, the others within a second.
//
// Start reading at Service.Set.
package standing

import (
	"context"
	"fmt"
	"slices"
	"time"

	"castellan/domain/account/user"
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
	"castellan/domain/permit/resource"
	"castellan/domain/session/session"
)

// The audit names of this package.
const (
	ActionStatus = "USER_STATUS"
	ActionAML    = "USER_AML_CONFIRM"
)

// Standing is the status of an account and the remarks made when it was set; "" for none.
type Standing struct {
	UserID              string
	Status              user.Status
	Description, Reason string
	By                  string // id of the user who set it
	At                  time.Time
}

// Put stores a standing and replaces the previous one.
type Put struct{ Standing }

func (Put) Table() string { return "user_standing" }

// Row identifies the changed row for the writer.
func (w Put) Row() string { return w.UserID }

// Store reads standings. Every method joins the transaction that its context carries. It is safe for concurrent use.
type Store interface {
	// Lock serialises transactions across all nodes: the transaction that ctx carries is the only one that holds the
	// lock, until its end.
	Lock(ctx context.Context) error
	// Get reads the standing of an account; the zero value if none was ever set.
	Get(ctx context.Context, userID string) (Standing, error)
	// Risky lists the accounts at risk that no administrator has confirmed, newest first: accounts in the parameter
	// AMLCONTROL are left out.
	Risky(ctx context.Context, _ struct{}, p page.Query[user.Place]) (page.Of[user.User], error)
	// Finding reads a finding. RECORD_NOT_FOUND.
	Finding(ctx context.Context, findingID string) (Finding, error)
}

// Service sets standings. All fields are required. The committer of the ledger must notify this node's revocations of
// the ended sessions (session.Revoking).
type Service struct {
	Store          Store
	Users          user.Store
	Blockages      *blockage.Service
	Administrators resource.Store // reports whether an administrator is left (D-AUTH-03)
	Dev            bool           // demonstration accounts count as administrators
	Parameters     *parameter.Cache
	Ignored        parameter.Store // stores the parameter AMLCONTROL
	Changes        admin.Changes   // with topic change.Parameters, under Store.Lock
	ClosureType    int64           // type id of the blockages of closed accounts
	Claims         integration.Store
	// Hold returns the write that holds the queued withdrawals of an account (transaction.HoldQueued).
	Hold func(by audit.By, userID string) (commit.Write, error)
}

// Set sets the status of an account. Active releases the amounts that closing it blocked. Any other status ends its
// sessions and locks all available funds; repeating the current status locks funds received since. If there are none,
// it changes nothing.
//
// Errors: INVALID_FIELD status; RECORD_NOT_FOUND; INVALID_STATE for the last active administrator.
func (s *Service) Set(ctx context.Context, by audit.By, next Standing) (u user.User, err error) {
	if !parameter.UserStatus.In(s.Parameters.Set()).Allows(string(next.Status)) {
		return u, fault.Invalid("status", "is not an account status")
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
		if moved && next.Status != user.Active {
			hold, err := s.Hold(by, u.ID)
			if err != nil {
				return m, err
			}
			m.With = append(m.With, hold)
		}
		if moved {
			m.With = append(m.With, s.statusNotes(u, next)...)
			m.With = append(m.With, integration.Publish{Event: integration.Event{ID: id.New(next.At),
				Type: integration.AccountStatus, UserID: u.ID, At: next.At,
				Data: map[string]string{"status": string(next.Status), "previousStatus": string(u.Status)}}})
		}
		m.With = append(m.With, by.Did(audit.Record{At: next.At, Action: ActionStatus, UserID: u.ID, Target: u.ID,
			Detail: withReason(fmt.Sprintf("%s -> %s%s", u.Status, next.Status, told), next.Reason)}))
		u.Status = next.Status
		return m, nil
	}
	_, err = money.Decide(ctx, by, accounts, plan)
	return u, err
}

// withReason returns a detail with the reason, if one was given, because readers of the audit trail look for it.
func withReason(detail, reason string) string {
	if reason == "" {
		return detail
	}
	return detail + "; " + reason
}

// statusNotes returns the notes to the nodes about a new status.
func (s *Service) statusNotes(u user.User, next Standing) []commit.Write {
	if next.Status == user.Active {
		return []commit.Write{change.Note{Topic: change.Users, Key: u.ID}}
	}
	return session.EndAll(u, next.At)
}

func (s *Service) administers(u user.User) bool {
	return slices.Contains(u.Roles, user.RoleAdmin) && u.Active() && (s.Dev || !u.Demo)
}

// maxChanged limits how often a confirmation is retried because an administrator changed the parameter meanwhile.
const maxChanged = 5

// ConfirmAML declares an account harmless: its AML status and the list of ignored users change together (D-KYC-06). For
// a harmless account nothing changes. RECORD_NOT_FOUND.
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
