package kyc

import (
	"context"

	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/people/document"
)

// ActionReopen is the audit name of reopening a rejected identity.
const ActionReopen = "KYC_REOPEN"

const reopened = "kycConfirm=" + user.Rejected + " -> " + user.WaitingApproval

// Reopen makes a rejected identity pending again.
//
// Errors: RECORD_NOT_FOUND for an unknown user; INVALID_STATE if the identity was not rejected.
func Reopen(ctx context.Context, users user.Store, changes admin.Changes, by audit.By, userID string) error {
	return changes.Do(ctx, by, ActionReopen, func(ctx context.Context) (done admin.Done, err error) {
		u, err := users.Hold(ctx, userID)
		if err == nil && u.KYCConfirm != user.Rejected {
			err = fault.New(fault.InvalidState, "the identity of the user was not rejected")
		}
		return admin.Done{Target: userID, UserID: userID, Detail: reopened,
			Writes: []commit.Write{user.SetKYC{UserID: userID, KYCConfirm: user.WaitingApproval}}}, err
	})
}

// Reopens sets the account of a rejected user to waiting when that user uploads an identity document, in the
// transaction of ctx. A document stored by an administrator for a user changes nothing (D-KYC-01).
func (s *Service) Reopens(ctx context.Context, by audit.By, d document.Document) ([]commit.Write, error) {
	if by.UserID != d.UserID || !s.identifies(d.Type) {
		return nil, nil
	}
	u, err := s.Users.Hold(ctx, d.UserID)
	if err != nil || u.KYCConfirm != user.Rejected {
		return nil, err
	}
	return []commit.Write{user.SetKYC{UserID: u.ID, KYCConfirm: user.WaitingApproval},
		by.Did(audit.Record{At: s.Changes.Now(), UserID: u.ID, Action: ActionReopen, Target: u.ID, Detail: reopened})}, nil
}

// identifies reports whether a document of the type may prove the identity of its owner. A document without a type may.
func (s *Service) identifies(kind int64) bool {
	switch kind {
	case s.Types.Front, s.Types.Back, s.Types.Selfie, document.Unclassified:
		return true
	}
	return false
}
