package persistence

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/fault"
	"castellan/domain/user"
	"castellan/persistence/engine"
)

// standingWrites are the decisions on an account, which go with Hold.
var standingWrites = []engine.Kind{
	engine.Each(func(ctx context.Context, tx bun.Tx, w user.SetKYC) error {
		_, err := tx.NewUpdate().Table("users").Set("kyc_confirm = ?", w.KYCConfirm).Where("id = ?", w.UserID).Exec(ctx)
		return err
	}),
	engine.Each(func(ctx context.Context, tx bun.Tx, w user.SetAddressConfirmed) error {
		_, err := tx.NewUpdate().Table("users").Set("address_confirmed = ?", w.AddressConfirmed).
			Where("id = ?", w.UserID).Exec(ctx)
		return err
	}),
	engine.Each(func(ctx context.Context, tx bun.Tx, w user.SetPerson) error {
		_, err := tx.NewUpdate().Table("users").Set("name = ?", w.Name).Set("surname = ?", w.Surname).
			Set("full_name = ?", user.FoldName(w.FullName())).Set("identity_hash = ?", w.IdentityHash).
			Set("birth_date = ?", w.BirthDate).Where("id = ?", w.UserID).Exec(ctx)
		return err
	}),
}

// Hold implements user.Store.
func (s Users) Hold(ctx context.Context, id string) (user.User, error) {
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	var r userRow
	q := s.db.Conn(ctx).NewSelect().Model(&r).Where("id = ?", id)
	if s.db.Postgres() { // SQLite has one writer, and every transaction begins as one
		q = q.For("UPDATE")
	}
	err := translate(q.Scan(ctx))
	if fault.CodeOf(err) == fault.RecordNotFound {
		err = fault.New(fault.RecordNotFound, "there is no such user")
	}
	return r.user(), err
}
