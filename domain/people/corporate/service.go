package corporate

import (
	"cmp"
	"context"
	"crypto/rand"
	"reflect"
	"strconv"
	"strings"

	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/integration"
)

// The audit names of changes to applications.
const (
	ActionAdd    = "CORPORATE_APPLICATION_ADD"
	ActionStatus = "CORPORATE_APPLICATION_STATUS"
)

// Service applies the operations of administrators. All fields except DefaultPassword are required.
type Service struct {
	Store   Store
	Users   user.Store
	Hasher  *password.Hasher
	Changes admin.Changes // without a topic; its Lock is that of Store
	// DefaultPassword is the password of new accounts; "": each gets a random one. None of these accounts can log in
	// before its password was reset (D-COR-03).
	DefaultPassword string
	Claims          integration.Store
}

// AddApplication adds an application and returns its id. INVALID_FIELD.
func (s *Service) AddApplication(ctx context.Context, by audit.By, a Application) (n int64, err error) {
	if err := a.Check(); err != nil {
		return 0, err
	}
	err = s.Changes.Do(ctx, by, ActionAdd, func(ctx context.Context) (_ admin.Done, err error) {
		n, err = s.Store.AddApplication(ctx, a)
		return admin.Done{Target: strconv.FormatInt(n, 10), Detail: a.Status}, err
	})
	return n, err
}

// Insert links an account to a company and returns the id of the link. If u has no account, one is made in the same
// transaction. The account gets the tax number, unless it is "". A repeat returns the first result (D-COR-06).
//
// Errors: INVALID_FIELD; RECORD_NOT_FOUND for an unknown account; RECORD_ALREADY_EXIST if the link exists with other
// data; OVERLOADED.
func (s *Service) Insert(ctx context.Context, by audit.By, u User, taxNumber string) (n int64, err error) {
	u, err = u.Canonical()
	if err = checkTaxNumber(taxNumber, err); err != nil {
		return 0, err
	}
	u.Made = u.UserID == ""
	hash := ""
	if u.Made {
		if hash, err = s.Hasher.Hash(ctx, cmp.Or(s.DefaultPassword, rand.Text())); err != nil {
			return 0, err
		}
	}
	err = s.Changes.Do(ctx, by, "CORPORATE_USER_ADD", func(ctx context.Context) (done admin.Done, err error) {
		old, err := s.Store.FindLink(ctx, u)
		if err == nil {
			n = old.ID
			return done, s.repeated(ctx, old, u, taxNumber)
		}
		if fault.CodeOf(err) != fault.RecordNotFound {
			return done, err
		}
		if !u.Made {
			account, err := s.Users.Hold(ctx, u.UserID)
			if err != nil {
				return done, err
			}
			n, err = s.Store.AddUser(ctx, u)
			if taxNumber == "" || taxNumber == account.TaxNumber {
				return describeChange(n, u, ""), err
			}
			return describeChange(n, u, taxNumberChanged, user.SetTaxNumber{UserID: u.UserID, TaxNumber: taxNumber}), err
		}
		now := s.Changes.Now()
		u.UserID = id.New(now)
		if n, err = s.Store.AddUser(ctx, u); err != nil {
			return done, err
		}
		made := user.New(u.UserID, now)
		made.Type, made.MustReset, made.Campaigns = user.Corporate, true, user.Campaigns{}
		made.TaxNumber = taxNumber
		made.SetPlaceholder(n)
		return describeChange(n, u, "account made", user.Add{User: made, PasswordHash: hash}), nil
	})
	return n, err
}

// repeated rejects an insert whose data differ from the existing link.
func (s *Service) repeated(ctx context.Context, old, u User, taxNumber string) error {
	if taxNumber != "" {
		account, err := s.Users.Get(ctx, old.UserID)
		if err != nil {
			return err
		}
		if account.TaxNumber != taxNumber {
			return fault.New(fault.RecordAlreadyExist, "the user is already linked to this company")
		}
	}
	old.ID, u.Made = 0, old.Made
	if u.UserID == "" {
		u.UserID = old.UserID
	}
	if reflect.DeepEqual(old, u) {
		return nil
	}
	return fault.New(fault.RecordAlreadyExist, "the user is already linked to this company")
}

// Change edits a link. The edit is first validated alone, so that an invalid request is reported before an unknown id
// (D-GEN-19).
//
// Errors: INVALID_FIELD; RECORD_NOT_FOUND for an unknown link or account; RECORD_ALREADY_EXIST if the company already
// has the user.
func (s *Service) Change(ctx context.Context, by audit.By, n int64, e Edit) error {
	if err := e.Check(); err != nil {
		return err
	}
	return s.Changes.Do(ctx, by, "CORPORATE_USER_UPDATE", func(ctx context.Context) (admin.Done, error) {
		var before, after User
		err := s.Store.ChangeUser(ctx, n, func(u User) (_ User, err error) {
			before = u
			if after, err = e.canonical(u); err == nil && after.UserID != before.UserID {
				_, err = s.Users.Get(ctx, after.UserID)
			}
			return after, err
		})
		if err != nil || e.TaxNumber == nil {
			return describeChange(n, after, admin.Differ(before, after)), err
		}
		account, err := s.Users.Hold(ctx, after.UserID)
		if err != nil || account.TaxNumber == *e.TaxNumber {
			return describeChange(n, after, admin.Differ(before, after)), err
		}
		return describeChange(n, after, strings.TrimSpace(admin.Differ(before, after)+" "+taxNumberChanged),
			user.SetTaxNumber{UserID: after.UserID, TaxNumber: *e.TaxNumber}), nil
	})
}

const taxNumberChanged = "TaxNumber"

// checkTaxNumber adds the problem of a tax number to err; "" means no number.
func checkTaxNumber(number string, err error) error {
	if err != nil || number == "" || user.ValidTaxNumber(number) {
		return err
	}
	return fault.Invalid("taxNumber", "must be a tax number of ten digits")
}

func describeChange(n int64, u User, detail string, with ...commit.Write) admin.Done {
	return admin.Done{Target: strconv.FormatInt(n, 10), UserID: u.UserID, Detail: detail, Writes: with}
}
