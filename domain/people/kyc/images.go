package kyc

import (
	"context"
	"slices"

	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/page"
	"castellan/domain/kit/picture"
	"castellan/domain/people/document"
)

// Images are previews of the newest KYC documents of an account (D-KYC-07). The originals are evidence and are never
// shown inline: each preview is encoded again, and small. nil: missing, or not a picture.
type Images struct {
	DocumentID          string // the newest; "" for none
	Front, Back, Selfie *picture.Picture
}

// Images opens the newest KYC documents of an account: those of the types for front, back and selfie. If a type is
// missing, the newest waiting picture without a type is used, each for one type only. For the front of a decided
// account, the decided KYC document has priority. Reading another user's documents writes an audit row.
//
// Errors: RECORD_NOT_FOUND for an unknown user, OVERLOADED.
func (s *Service) Images(ctx context.Context, by audit.By, userID string) (all Images, err error) {
	u, err := s.Users.Get(ctx, userID)
	if err != nil {
		return all, err
	}
	waits := s.waiting(userID)
	for _, want := range []struct {
		kind int64
		into **picture.Picture
	}{{s.Types.Front, &all.Front}, {s.Types.Back, &all.Back}, {s.Types.Selfie, &all.Selfie}} {
		d, err := s.newest(ctx, userID, want.kind)
		instead := []func(context.Context) (document.Document, error){waits}
		if want.kind == s.Types.Front {
			instead = append(instead, func(ctx context.Context) (document.Document, error) { return s.decided(ctx, userID) })
			if u.KYCConfirm != user.WaitingApproval {
				slices.Reverse(instead)
			}
		}
		for _, find := range instead {
			if fault.CodeOf(err) == fault.RecordNotFound {
				d, err = find(ctx)
			}
		}
		if fault.CodeOf(err) == fault.RecordNotFound {
			continue
		}
		if err == nil {
			*want.into, err = s.preview(ctx, d)
		}
		if err != nil {
			return Images{}, err
		}
		all.DocumentID = max(all.DocumentID, d.ID) // ids sort by their times
	}
	if userID == by.UserID || all.DocumentID == "" {
		return all, nil
	}
	return all, s.Changes.Do(ctx, by, ActionImages, func(context.Context) (admin.Done, error) {
		return admin.Done{Target: all.DocumentID, UserID: userID}, nil
	})
}

// waiting returns a function that finds the waiting pictures without a type, the newest first, one per call.
// RECORD_NOT_FOUND after the last.
func (s *Service) waiting(userID string) func(context.Context) (document.Document, error) {
	q := document.Query{UserID: &userID, Type: new(int64(document.Unclassified)), Status: new(document.Active),
		Reason: new(document.WaitingApproval), Pictures: true}
	p := page.Query[document.Place]{Limit: 1}
	return func(ctx context.Context) (document.Document, error) {
		d, err := s.first(ctx, q, p)
		if err == nil {
			p.After = new(d.Mark())
		}
		return d, err
	}
}

func (s *Service) newest(ctx context.Context, userID string, kind int64) (document.Document, error) {
	return s.first(ctx, document.Query{UserID: &userID, Type: &kind}, page.Query[document.Place]{Limit: 1})
}

func (s *Service) first(ctx context.Context, q document.Query,
	p page.Query[document.Place]) (d document.Document, err error) {
	found, err := s.Documents.List(ctx, q, p)
	if err == nil && len(found.Records) == 0 {
		err = fault.New(fault.RecordNotFound, "no such document")
	}
	if err != nil {
		return d, err
	}
	return found.Records[0], nil
}

func (s *Service) decided(ctx context.Context, userID string) (d document.Document, err error) {
	last, err := s.Store.Last(ctx, userID, Identity)
	if err != nil {
		return d, err
	}
	return s.Documents.Get(ctx, last.DocumentID)
}

// preview returns the preview of a document; nil if it is not a picture.
func (s *Service) preview(ctx context.Context, d document.Document) (*picture.Picture, error) {
	if d.MimeType == document.PDF {
		return nil, nil
	}
	content, err := s.Originals.Content(ctx, d)
	if err != nil {
		return nil, err
	}
	p, err := s.Pictures.Preview(ctx, "", content)
	if fault.CodeOf(err) == fault.InvalidField { // it was readable at the upload: the request is not at fault
		return nil, nil
	}
	return &p, err
}
