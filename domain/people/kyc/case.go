package kyc

import (
	"context"

	"castellan/domain/account/user"
	"castellan/domain/kit/fault"
	"castellan/domain/people/identity"
)

// Case holds the data that a reviewer needs about an account (D-KYC-11).
type Case struct {
	User   user.User
	Checks identity.Checks
	Last   *Decision // on the identity; nil: none
}

// Case reads a case. RECORD_NOT_FOUND for an unknown user.
func (s *Service) Case(ctx context.Context, userID string) (c Case, err error) {
	if c.User, err = s.Users.Get(ctx, userID); err != nil {
		return c, err
	}
	if c.Checks, err = s.Checks(ctx, c.User); err != nil {
		return c, err
	}
	last, err := s.Store.Last(ctx, userID, Identity)
	if fault.CodeOf(err) == fault.RecordNotFound {
		return c, nil
	}
	c.Last = &last
	return c, err
}
