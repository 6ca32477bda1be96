package standing

import (
	"context"
	"errors"
	"slices"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/integration"
	"castellan/domain/kit/parameter"
)

// ActionFinding is the audit name of a finding.
const ActionFinding = "AML_FINDING"

// The AML statuses of a finding, besides user.NotRisky.
const (
	Risky    = "risky"
	HighRisk = "highRisk"
)

// severities are the AML statuses from the best to the worst.
var severities = []string{user.NotRisky, Risky, HighRisk}

// worse reports whether a finding's status is worse than that of an account. A status set by another program is worse
// than all of these.
func worse(found, status string) bool {
	at := slices.Index(severities, status)
	return at >= 0 && slices.Index(severities, found) > at
}

// Finding is a finding of a screening service about a user (D-INT-06).
type Finding struct {
	ID                        string // begins with At
	ExternalID                string
	UserID                    string
	Status                    string // user.NotRisky, Risky or HighRisk
	Source, Reference, Detail string
	At                        time.Time
}

// AddFinding inserts a finding.
type AddFinding struct{ Finding }

// Table names the table.
func (AddFinding) Table() string { return "aml_finding" }

// errNotIgnored ends a change of the parameter that would have no effect.
var errNotIgnored = errors.New("standing: the user is not ignored")

// Find stores a finding, once for each external id. The AML status of the account becomes that of the finding if it is
// worse; it never improves. A finding of a risk also removes the user from the parameter AMLCONTROL, so that the
// account is listed until it is confirmed again.
//
// Errors: INVALID_FIELD; RECORD_NOT_FOUND for an unknown user; INVALID_STATE for another finding under the same
// external id.
func (s *Service) Find(ctx context.Context, by audit.By, f Finding) (Finding, error) {
	var ps fault.Problems
	ps.Require(len(f.ExternalID) <= integration.MaxExternalID, "externalId", "must be at most 128 bytes")
	ps.Require(slices.Contains(severities, f.Status), "status", "is not an AML status")
	if err := fault.All(ps); err != nil {
		return f, err
	}
	f.At = s.Changes.Now().Truncate(time.Millisecond)
	f.ID = id.New(f.At)
	claim := integration.Claim{Kind: integration.Findings, ExternalID: f.ExternalID, RecordID: f.ID, At: f.At,
		Digest: integration.Digest([]string{f.UserID, f.Status, f.Source, f.Reference, f.Detail})}
	found, _, err := integration.Once(ctx, s.Claims, claim, s.Store.Finding, func(ctx context.Context) (Finding, error) {
		var err error
		for range maxChanged {
			if err = s.find(ctx, by, f, claim); fault.CodeOf(err) != fault.InvalidState {
				break
			}
		}
		return f, err
	})
	return found, err
}

func (s *Service) find(ctx context.Context, by audit.By, f Finding, c integration.Claim) error {
	return s.Changes.Do(ctx, by, ActionFinding, func(ctx context.Context) (admin.Done, error) {
		u, err := s.Users.Get(ctx, f.UserID)
		if err != nil {
			return admin.Done{}, err
		}
		done := admin.Done{Target: f.ID, UserID: u.ID, Key: parameter.AMLControl.Code,
			Detail: "amlStatus=" + u.AMLStatus, Writes: []commit.Write{AddFinding{f}, integration.Add{Claim: c}}}
		if worse(f.Status, u.AMLStatus) {
			done.Detail += " -> " + f.Status
			done.Writes = append(done.Writes, user.SetAMLStatus{UserID: u.ID, Status: f.Status})
		}
		if f.Status == user.NotRisky {
			return done, nil
		}
		hold, err := s.Hold(by, u.ID)
		if err != nil {
			return done, err
		}
		done.Writes = append(done.Writes, hold)
		return done, s.heed(ctx, u.ID)
	})
}

// heed removes a user from the users that the AML control ignores.
func (s *Service) heed(ctx context.Context, userID string) error {
	err := parameter.AMLControl.Change(ctx, s.Ignored, func(i parameter.Ignored) (parameter.Ignored, error) {
		at := slices.Index(i.IgnoredUsers, userID)
		if at < 0 {
			return i, errNotIgnored
		}
		i.IgnoredUsers = slices.Delete(slices.Clone(i.IgnoredUsers), at, at+1)
		return i, nil
	})
	if errors.Is(err, errNotIgnored) {
		return nil
	}
	return err
}
