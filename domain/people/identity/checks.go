package identity

import (
	"context"

	"castellan/domain/access/user"
	"castellan/domain/kit/fault"
)

// Kept is what is kept of a confirmed person: FullName and BirthDate are "" where it was confirmed before they were
// kept.
type Kept struct {
	FullName, BirthDate string
	Registered          bool
	Sealed              []byte // the number
}

// Checks are what the service found out about an account, as it stands now; nil: nobody knows (D-KYC-11).
type Checks struct {
	Number    *bool // a number is kept, and its check digits are right
	Register  *bool // the national register knew the person; it is not asked about everybody
	Name      *bool // the account has the name that was confirmed
	BirthDate *bool
	Same      int // other accounts with the number
}

// Checks looks again at what was confirmed of an account.
func (s *Service) Checks(ctx context.Context, u user.User) (c Checks, err error) {
	k, err := s.Store.Kept(ctx, u.ID)
	if fault.CodeOf(err) == fault.RecordNotFound {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	number, err := s.Ring.Open(k.Sealed, sealedFor(u.ID))
	if err != nil {
		return c, err
	}
	n := Number(number)
	c.Number = new(n.wellFormed() && n.checks())
	if k.Registered {
		c.Register = new(true)
	}
	if k.FullName != "" {
		c.Name = new(user.FoldName(u.FullName()) == user.FoldName(k.FullName))
		c.BirthDate = new(u.BirthDate == k.BirthDate)
	}
	c.Same, err = s.Store.Others(ctx, u.ID, s.Hashes(string(number))...)
	return c, err
}
