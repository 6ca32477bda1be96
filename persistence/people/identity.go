package people

import (
	"context"
	"strconv"

	"github.com/uptrace/bun"

	"castellan/domain/people/identity"
	"castellan/persistence/account"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type Identities struct{ db *engine.DB }

var _ identity.Store = Identities{}

func NewIdentities(db *engine.DB) Identities { return Identities{db} }

type identityRow struct {
	bun.BaseModel `bun:"table:user_identity,alias:i"`

	UserID       string `bun:",pk"`
	Number       []byte // sealed
	SecondName   string
	Country      string
	CityID       string
	DistrictID   string
	Address      string
	OccupationID string
	FullName     string // as it was confirmed
	BirthDate    string
	Registered   bool
	record.Stamps
}

type infoRow struct {
	bun.BaseModel `bun:"table:additional_info,alias:i"`

	ID     int64 `bun:",pk,autoincrement"`
	UserID string

	Purpose, Source, Income, Amount, Count                     int64
	PurposeText, SourceText, IncomeText, AmountText, CountText string
	record.Stamps
}

// Any reports whether an account has stated its identity.
func (s Identities) Any(ctx context.Context) (bool, error) {
	return engine.Read(ctx, s.db, s.db.Conn(ctx).NewSelect().Table("user_identity").Exists)
}

// Hashes whose first 64 bits are equal wait for each other too.
func (s Identities) Lock(ctx context.Context, hash string) error {
	key, _ := strconv.ParseUint(hash[:min(len(hash), 16)], 16, 64)
	return s.db.LockTx(ctx, int64(key))
}

func (s Identities) Others(ctx context.Context, userID string, hashes ...string) (int, error) {
	return account.Accounts.Count(ctx, s.db, record.Among("identity_hash", hashes), record.Where("identity_hash <> ''"),
		record.Where("id <> ?", userID))
}

func (s Identities) Hashed(ctx context.Context, after string, limit int) (all []identity.Hashed, err error) {
	err = s.db.Scan(ctx, s.db.Conn(ctx).NewSelect().TableExpr("users AS u").
		ColumnExpr("u.id AS user_id, u.identity_hash AS hash, i.number AS sealed").
		Join("LEFT JOIN user_identity AS i ON i.user_id = u.id").Where("u.identity_hash <> ''").Where("u.id > ?", after).
		Order("u.id").Limit(int64(limit)), &all)
	return all, err
}

func (s Identities) Rehash(ctx context.Context, userID, from, to string) error {
	return record.Write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		_, err := tx.NewUpdate().Table("users").Set("identity_hash = ?", to).Where("id = ?", userID).
			Where("identity_hash = ?", from).Exec(ctx)
		return err
	})
}

func (s Identities) Keep(ctx context.Context, userID string, p identity.Person, sealed []byte) error {
	row := identityRow{UserID: userID, Number: sealed, SecondName: p.SecondName, Country: p.Country, CityID: p.CityID,
		DistrictID: p.DistrictID, Address: p.Address, OccupationID: p.OccupationID, FullName: p.FullName(),
		BirthDate: p.BirthDate, Registered: p.Registered}
	row.Stamp(engine.Millis(s.db.Now()))
	return record.Write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		q := replacing(tx.NewInsert().Model(&row), "number", "second_name", "country", "city_id", "district_id", "address",
			"occupation_id", "full_name", "birth_date", "registered")
		_, err := q.Exec(ctx)
		return err
	})
}

// replacing makes an insert take the place of the user's row: these columns, and when it was changed.
func replacing(q *bun.InsertQuery, columns ...string) *bun.InsertQuery {
	q = q.On("CONFLICT (user_id) DO UPDATE")
	for _, c := range append(columns, "updated_at") {
		q = q.Set("? = EXCLUDED.?", bun.Ident(c), bun.Ident(c))
	}
	return q
}

var identities = record.Table[identityRow, identity.Kept]{
	Order:  record.Keyset{Columns: "user_id"},
	Absent: "the identity number is not known",
	Record: func(r identityRow) (identity.Kept, error) {
		return identity.Kept{FullName: r.FullName, BirthDate: r.BirthDate, Registered: r.Registered, Sealed: r.Number}, nil
	},
}

func (s Identities) Kept(ctx context.Context, userID string) (identity.Kept, error) {
	return identities.Find(ctx, s.db, record.Is("user_id", userID))
}

func (s Identities) Inform(ctx context.Context, i identity.Info) (id int64, err error) {
	c := i.Choices
	row := infoRow{UserID: i.UserID, Purpose: c[0].OptionID, Source: c[1].OptionID, Income: c[2].OptionID,
		Amount: c[3].OptionID, Count: c[4].OptionID, PurposeText: c[0].Explanation, SourceText: c[1].Explanation,
		IncomeText: c[2].Explanation, AmountText: c[3].Explanation, CountText: c[4].Explanation}
	row.Stamp(engine.Millis(s.db.Now()))
	err = record.Write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		q := replacing(tx.NewInsert().Model(&row).ExcludeColumn("id"), "purpose", "source", "income", "amount", "count",
			"purpose_text", "source_text", "income_text", "amount_text", "count_text")
		return q.Returning("id").Scan(ctx, &id)
	})
	return id, err
}
