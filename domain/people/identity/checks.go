package identity

import (
	"context"

	"castellan/domain/account/user"
	"castellan/domain/kit/fault"
)

// Kept is the stored part of a confirmed person: FullName and BirthDate are "" if the person was confirmed before they
// were stored.
type Kept struct {
	FullName, BirthDate string
	Registered          bool
	Sealed              []byte // the sealed number
}

// Checks are the results of the checks of an account in its current state; nil: unknown (D-KYC-11).
type Checks struct {
	Number    *bool // a number is stored, and its check digits are correct
	Register  *bool // the national register knew the person; not called for every user
	Name      *bool // the account has the confirmed name
	BirthDate *bool
	Same      int // other accounts with the number
}

// Checks compares the confirmed data of an account with its current state.
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
