package corporate

import (
	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/fault"
)

// Edit changes some fields of a User; nil leaves a field unchanged.
type Edit struct {
	UserID, CorporateUserID, Role, Status, CountryCode, PhoneNumber *string
	Email                                                           **string // to nil: removes the address
	TaxNumber                                                       *string  // of the account; "" removes it
}

// Check validates the fields that change, without the record: an edit is judged before the record is read. The result
// is validated by User.Canonical. INVALID_FIELD with every invalid field.
func (e Edit) Check() error {
	var ps fault.Problems
	for _, f := range []struct {
		name string
		sent *string
	}{{"corporateUserId", e.CorporateUserID}, {"status", e.Status}, {"role", e.Role}} {
		if f.sent != nil {
			ps = append(ps, texts(maxMarkChars, f.name, *f.sent)...)
		}
	}
	var mail *string
	if e.Email != nil {
		mail = *e.Email
	}
	_, more := user.Identify(e.CountryCode, e.PhoneNumber, mail)
	err := fault.All(append(ps, more...))
	if e.TaxNumber != nil {
		err = checkTaxNumber(*e.TaxNumber, err)
	}
	return err
}

func (e Edit) apply(u User) User {
	admin.Set(&u.UserID, e.UserID)
	admin.Set(&u.CorporateUserID, e.CorporateUserID)
	admin.Set(&u.Status, e.Status)
	admin.Set(&u.Role, e.Role)
	admin.Set(&u.CountryCode, e.CountryCode)
	admin.Set(&u.PhoneNumber, e.PhoneNumber)
	admin.Set(&u.Email, e.Email)
	return u
}

// canonical returns the edited user in canonical form. A number that does not change keeps its stored form, which an
// earlier version may have made by another rule.
func (e Edit) canonical(u User) (User, error) {
	edited := e.apply(u)
	if e.CountryCode == nil && e.PhoneNumber == nil {
		edited.PhoneNumber = "+" + edited.CountryCode + edited.PhoneNumber
	}
	return edited.Canonical()
}
