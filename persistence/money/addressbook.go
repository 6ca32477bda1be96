package money

import (
	"context"
	"fmt"
	"slices"

	"github.com/uptrace/bun"

	"castellan/domain/money/addressbook"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type AddressBooks struct{ db *engine.DB }

var _ addressbook.Store = AddressBooks{}

func NewAddressBooks(db *engine.DB) AddressBooks { return AddressBooks{db} }

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
	AddressTag string
	Key        string
	CurrencyID int64
	NetworkID  int64
	CreatedAt  int64
	AddressAt  int64
}

// ownedEntry is an entry with the user whose book it is in.
type ownedEntry struct {
	addressbook.Entry
	UserID string
}

var addresses = record.Of(record.Table[addressRow, ownedEntry]{
	Fixed:  []string{"user_id", "currency_id", "network_id", "created_at"},
	Absent: "there is no such address",
	Writes: func(e ownedEntry, r *addressRow) { r.Key = e.Key() },
}, record.Names{"Key": ""})

func (s AddressBooks) Book(ctx context.Context, userID string) (addressbook.Book, error) {
	entries, err := addresses.List(ctx, s.db, record.Part{Where: []record.Filter{record.Is("user_id", userID)}})
	book := make(addressbook.Book, len(entries))
	for i, e := range entries {
		book[i] = e.Entry
	}
	return book, err
}

// The row of the book is written before the
// book is read, so a second writer waits for this one on both databases.
func (s AddressBooks) Hold(ctx context.Context, userID string) (addressbook.Book, error) {
	row := bookRow{UserID: userID, ChangedAt: engine.Millis(s.db.Now())}
	err := record.Write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		_, err := tx.NewInsert().Model(&row).On("CONFLICT (user_id) DO UPDATE").
			Set("changed_at = EXCLUDED.changed_at").Returning("NULL").Exec(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return s.Book(ctx, userID)
}

func (s AddressBooks) Insert(ctx context.Context, userID string, e addressbook.Entry) (int64, error) {
	return addresses.Add(ctx, s.db, ownedEntry{e, userID})
}

func (s AddressBooks) Replace(ctx context.Context, userID string, e addressbook.Entry) error {
	return addresses.Save(ctx, s.db, ownedEntry{e, userID}, record.Is("id", e.ID), record.Is("user_id", userID))
}

func (s AddressBooks) Remove(ctx context.Context, userID string, id int64) error {
	return addresses.Remove(ctx, s.db, record.Is("id", id), record.Is("user_id", userID))
}

// Respelled lists entries of one book that are spellings of one address, at most a number of them.
func (s AddressBooks) Respelled(ctx context.Context, most int) (out []string, err error) {
	var users []string
	err = scan(ctx, s.db, s.db.Conn(ctx).NewSelect().Table("withdrawal_address").Column("user_id").
		GroupExpr("user_id, replace(lower(address), '0x', '')").Having("count(*) > 1").OrderExpr("user_id").
		Limit(int64(10*most)), &users)
	if err != nil {
		return nil, err
	}
	for _, userID := range slices.Compact(users) {
		book, err := s.Book(ctx, userID)
		if err != nil {
			return nil, err
		}
		for i, e := range book {
			for _, o := range book[i+1:] {
				if e.To(o.Address, o.AddressTag) && len(out) < most {
					out = append(out, fmt.Sprintf("entries %d and %d of user %s", e.ID, o.ID, userID))
				}
			}
		}
	}
	return out, nil
}
