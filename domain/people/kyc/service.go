package kyc

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/integration"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/picture"
	"castellan/domain/money/level"
	"castellan/domain/people/document"
	"castellan/domain/people/identity"
)

// The audit names of this package, and the topic of the messages to the user.
const (
	ActionKYC     = "KYC_UPDATE"
	ActionAddress = "ADDRESS_CONFIRM"
	ActionImages  = "KYC_IMAGES_READ"
	topic         = "kyc"
)

// Types are the document codes (D-GEN-17) used by this package.
type Types struct{ Front, Back, Selfie, Address int64 }

// Service decides on accounts. All fields are required.
type Service struct {
	Store     Store
	Users     user.Store
	Documents document.Store
	Originals *document.Service
	Pictures  *picture.Decoder
	Changes   admin.Changes // without a topic
	Types     Types
	Levels    level.Store
	Values    func() *parameter.Set // of the parameters
	// Checks returns the results of the checks of an account (identity.Service).
	Checks   func(ctx context.Context, u user.User) (identity.Checks, error)
	Language string // of users without a language
	// Notify makes the message to an account about a decision (stepup.Messenger).
	Notify func(to challenge.Account, topic, template string, v message.Values, ip string,
		on ...challenge.Name) []commit.Write
}

// Decide decides on the identity of an account's owner, once: of two concurrent administrators one succeeds, and a
// repeat after a lost response is rejected like any second decision (D-KYC-01).
//
// Errors: INVALID_FIELD, also for documents that are not the user's; RECORD_NOT_FOUND for an unknown user;
// INVALID_STATE if it is already decided.
func (s *Service) Decide(ctx context.Context, by audit.By, v Verdict) error {
	if err := v.check(); err != nil {
		return err
	}
	return s.Changes.Do(ctx, by, ActionKYC, func(ctx context.Context) (done admin.Done, err error) {
		u, err := s.Users.Hold(ctx, v.UserID)
		if err == nil {
			err = s.owned(ctx, v)
		}
		if err != nil {
			return done, err
		}
		if u.KYCConfirm != user.WaitingApproval {
			return done, fault.New(fault.InvalidState, "the identity of the user is already decided")
		}
		d := Decision{UserID: u.ID, Kind: Identity, Value: v.KYCConfirm, DocumentID: v.DocumentID, DecidedBy: by.UserID,
			At: s.Changes.Now()}
		told := message.KYCApproved
		documents := document.Decision{UserID: u.ID, IDs: v.DocumentIDs, Status: document.Active, Reason: document.Approved}
		if v.rejects() {
			d.Reason, d.Reasons, told = *v.Reason, v.Reasons, message.KYCRejected
			documents.Status, documents.Reason = document.DeActive, document.Rejected
		}
		if _, err := s.Documents.Decide(ctx, documents); err != nil {
			return done, err
		}
		writes := append(s.decisionNotices(u, told, d, by, challenge.MAIL),
			user.SetKYC{UserID: u.ID, KYCConfirm: v.KYCConfirm},
			integration.Publish{Event: integration.Event{ID: id.New(d.At), Type: integration.KYCDecided, UserID: u.ID,
				At: d.At, Data: map[string]string{"kycConfirm": v.KYCConfirm, "previousKycConfirm": u.KYCConfirm,
					"documentId": v.DocumentID}}})
		detail := "kycConfirm=" + u.KYCConfirm + " -> " + v.KYCConfirm
		u.KYCConfirm = v.KYCConfirm
		raised, err := s.raise(ctx, by, u)
		if err != nil {
			return done, err
		}
		return admin.Done{Target: u.ID, UserID: u.ID, Detail: detail, Writes: append(writes, raised...)},
			s.Store.Add(ctx, d)
	})
}

// owned rejects documents that are not the user's (D-KYC-09).
func (s *Service) owned(ctx context.Context, v Verdict) error {
	owned, err := s.Documents.Owned(ctx, v.UserID, append([]string{v.DocumentID}, v.DocumentIDs...))
	if err != nil {
		return err
	}
	foreign := func(id string) bool { return !slices.Contains(owned, id) }
	var ps fault.Problems
	ps.Require(!slices.ContainsFunc(v.DocumentIDs, foreign), "userDocumentId", "is not a document of the user")
	ps.Require(!foreign(v.DocumentID), "documentId", "is not a document of the user")
	return fault.All(ps)
}

func (s *Service) decisionNotices(u user.User, template string, d Decision, by audit.By,
	on ...challenge.Name) []commit.Write {
	why := reason(cmp.Or(u.Language, s.Language), d.Reasons, d.Reason)
	return s.Notify(u.Account(), topic, template, message.Values{"reason": why}, by.IP, on...)
}

// Confirm decides on the address of an account; any value is allowed in any state (section 3.5). The documents that
// prove an address get the same status, and the user is notified, unless value is waitingApproval. The same decision
// again does nothing, unless such a document was added in between (D-KYC-05).
//
// Errors: INVALID_FIELD; RECORD_NOT_FOUND for an unknown user.
func (s *Service) Confirm(ctx context.Context, by audit.By, userID, value, description string) error {
	if !short(description) {
		return fault.Invalid("addressDescription", "must be at most 2000 characters")
	}
	description = strings.TrimSpace(description)
	return s.Changes.Do(ctx, by, ActionAddress, func(ctx context.Context) (done admin.Done, err error) {
		u, err := s.Users.Hold(ctx, userID)
		if err != nil {
			return done, err
		}
		last, err := s.Store.Last(ctx, userID, Address)
		if err != nil && fault.CodeOf(err) != fault.RecordNotFound {
			return done, err
		}
		d := Decision{UserID: u.ID, Kind: Address, Value: value, Reason: description, DecidedBy: by.UserID,
			At: s.Changes.Now()}
		changed, told, err := s.addressDocuments(ctx, d)
		if err != nil || u.AddressConfirmed == value && last.Reason == description && len(changed) == 0 {
			return done, err
		}
		writes := []commit.Write{user.SetAddressConfirmed{UserID: u.ID, AddressConfirmed: value}}
		if told != "" {
			writes = append(writes, s.decisionNotices(u, told, d, by, challenge.MAIL, challenge.SMS)...)
		}
		detail := "addressConfirmed=" + u.AddressConfirmed + " -> " + value
		u.AddressConfirmed = value
		raised, err := s.raise(ctx, by, u)
		if err != nil {
			return done, err
		}
		return admin.Done{Target: u.ID, UserID: u.ID, Detail: detail, Writes: append(writes, raised...)},
			s.Store.Add(ctx, d)
	})
}

// addressDocuments sets the status of the documents that prove an address, and returns the template of the message to
// the user; none if the decision is that nothing is decided yet.
func (s *Service) addressDocuments(ctx context.Context, d Decision) (changed []string, template string, err error) {
	documents := document.Decision{UserID: d.UserID, Type: s.Types.Address}
	switch d.Value {
	case user.ManuelApproved:
		documents.Status, documents.Reason, template = document.Active, document.Approved, message.AddressApproved
	case user.Rejected:
		documents.Status, documents.Reason, template = document.DeActive, document.Rejected, message.AddressRejected
		if d.Reason != "" {
			documents.Reason = d.Reason
		}
	default:
		return nil, "", nil
	}
	if err = s.addressProof(ctx, d.UserID); err == nil {
		changed, err = s.Documents.Decide(ctx, documents)
	}
	return changed, template, err
}

// addressProof makes the newest waiting picture without a type the proof of an address, if the user has none. It gets
// that type permanently, so that the same decision again uses no further picture.
func (s *Service) addressProof(ctx context.Context, userID string) error {
	_, err := s.newest(ctx, userID, s.Types.Address)
	if fault.CodeOf(err) != fault.RecordNotFound {
		return err
	}
	d, err := s.waiting(userID)(ctx)
	if err == nil {
		err = s.Documents.Change(ctx, d.ID, func(d document.Document) (document.Document, error) {
			d.Type = s.Types.Address
			return d, nil
		})
	}
	if fault.CodeOf(err) == fault.RecordNotFound {
		return nil
	}
	return err
}
