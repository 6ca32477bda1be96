package persistence

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/addressbook"
	"castellan/domain/fault"
)

// AddressBooks implements addressbook.Store.
type AddressBooks struct{ db *DB }

var _ addressbook.Store = AddressBooks{}

// NewAddressBooks returns the withdrawal address books kept in db.
func NewAddressBooks(db *DB) AddressBooks { return AddressBooks{db} }

type bookRow struct {
	bun.BaseModel `bun:"table:withdrawal_book,alias:b"`

	UserID    string `bun:",pk"`
	ChangedAt int64
}

type addressRow struct {
	bun.BaseModel `bun:"table:withdrawal_address,alias:a"`

	ID         int64 `bun:",pk,autoincrement"`
	UserID     string
	Name       string
	Address    string
	Key        string
	CurrencyID int64
	NetworkID  int64
	CreatedAt  int64
	AddressAt  int64
}

func (r addressRow) entry() addressbook.Entry {
	return addressbook.Entry{ID: r.ID, Name: r.Name, Address: r.Address, CurrencyID: r.CurrencyID, NetworkID: r.NetworkID,
		CreatedAt: at(r.CreatedAt), AddressAt: at(r.AddressAt)}
}

// Book implements addressbook.Store.
func (s AddressBooks) Book(ctx context.Context, userID string) (addressbook.Book, error) {
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	var rows []addressRow
	err := s.db.Conn(ctx).NewSelect().Model(&rows).Where("user_id = ?", userID).Order("id").Scan(ctx)
	out := make(addressbook.Book, len(rows))
	for i, r := range rows {
		out[i] = r.entry()
	}
	return out, translate(err)
}

// Hold implements addressbook.Store. The row of the book is written before the
// book is read: that makes a second writer wait for this one, in words that
// both databases know.
func (s AddressBooks) Hold(ctx context.Context, userID string) (addressbook.Book, error) {
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	row := bookRow{UserID: userID, ChangedAt: ms(s.db.Now())}
	_, err := s.db.Conn(ctx).NewInsert().Model(&row).On("CONFLICT (user_id) DO UPDATE").Set("changed_at = EXCLUDED.changed_at").Returning("NULL").Exec(ctx)
	if err != nil {
		return nil, translate(err)
	}
	return s.Book(ctx, userID)
}

// Insert implements addressbook.Store.
func (s AddressBooks) Insert(ctx context.Context, userID string, e addressbook.Entry) (int64, error) {
	return insertWithID(ctx, s.db, &addressRow{UserID: userID, Name: e.Name, Address: e.Address, Key: e.Key(), CurrencyID: e.CurrencyID, NetworkID: e.NetworkID,
		CreatedAt: ms(e.CreatedAt), AddressAt: ms(e.AddressAt)})
}

// Replace implements addressbook.Store.
func (s AddressBooks) Replace(ctx context.Context, userID string, e addressbook.Entry) error {
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	res, err := s.db.Conn(ctx).NewUpdate().Model((*addressRow)(nil)).Set("name = ?", e.Name).Set("address = ?", e.Address).Set("key = ?", e.Key()).
		Set("address_at = ?", ms(e.AddressAt)).Where("id = ?", e.ID).Where("user_id = ?", userID).Exec(ctx)
	return oneAddress(res, err)
}

// Remove implements addressbook.Store.
func (s AddressBooks) Remove(ctx context.Context, userID string, id int64) error {
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	res, err := s.db.Conn(ctx).NewDelete().Model((*addressRow)(nil)).Where("id = ?", id).Where("user_id = ?", userID).Exec(ctx)
	return oneAddress(res, err)
}

func oneAddress(res interface{ RowsAffected() (int64, error) }, err error) error {
	if err != nil {
		return translate(err)
	}
	if n, err := res.RowsAffected(); err != nil || n > 0 {
		return err
	}
	return fault.New(fault.RecordNotFound, "there is no such address")
}
