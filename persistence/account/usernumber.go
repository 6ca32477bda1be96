package account

import (
	"context"
	"slices"

	"github.com/uptrace/bun"

	"castellan/domain/account/user"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

// repairedPhones is the seed of an installation in which no number is stored in the form of 0.9. Without it, a number
// that 0.9 stores in another form is stored twice. users.phone is the form of 0.9: it is unique, and nodes of both
// versions find the account by it. users.number is the number itself.
const repairedPhones = "phones"

const unrepaired = "NOT EXISTS (SELECT 1 FROM seed WHERE name = '" + repairedPhones + "')"

// formerly is an account by a number, and if there is none, by its form of 0.9. An account that was found by its form
// must have the number, or a number that 0.9 stored.
const formerly = "COALESCE((SELECT n.id FROM users AS n WHERE n.phone = $1), (SELECT f.id FROM users AS f " +
	"WHERE f.phone = $2 AND (f.number = $1 OR f.number IS NULL AND " + unrepaired + ")))"

// entranceFormerly is entrance for such an account. $3 is the key without an account.
var entranceFormerly = engine.Query{
	From: "(SELECT 1) AS nobody LEFT JOIN users AS u ON u.id = " + formerly +
		" LEFT JOIN password_guard AS g ON g.id = COALESCE(u.id, $3)",
	Columns: byPhone.Columns,
}

func (s Users) ByPhone(ctx context.Context, phone, former string) (user.User, error) {
	if former == "" || former == phone {
		return Accounts.Prepared(ctx, s.db, "phone = $1", phone)
	}
	return Accounts.Prepared(ctx, s.db, "id = "+formerly, phone, former)
}

// fullNumber returns the number of a row. A number beside the phone counts only while it belongs to it: 0.9 changes the
// phone alone.
func fullNumber(phone, number string) string {
	if number != "" && user.FormerOf(number) == phone {
		return number
	}
	return phone
}

// phoneRow is the row of user.SetPhone. Former is "" for a number that 0.9 stores as it is.
type phoneRow struct {
	bun.BaseModel `bun:"table:users"`

	ID     string
	Seen   int64
	Text   string
	Dial   string
	Former string
	N      int64 // the instant of the change
}

// setPhone stores a number in both forms while nodes of 0.9 may run.
func setPhone(instant func() int64) engine.Kind {
	return engine.Fenced("UPDATE users SET country_code = v.dial, cv = users.cv + 1"+renewed+", "+
		"phone = CASE WHEN v.former <> '' AND "+unrepaired+" THEN v.former ELSE v.text END, "+
		"number = CASE WHEN v.former <> '' AND "+unrepaired+" THEN v.text END "+
		"{FROM v} WHERE users.id = v.id AND users.cv = v.seen {RETURNING users.id}",
		func(w user.SetPhone) phoneRow {
			r := phoneRow{ID: w.UserID, Seen: w.CV, Text: w.Phone, Dial: w.CountryCode, N: instant()}
			if former := user.FormerOf(w.Phone); former != w.Phone && !w.Repair {
				r.Former = former
			}
			return r
		})
}

// storeFormer gives new rows the form of 0.9 while its nodes may run.
func storeFormer(ctx context.Context, tx bun.Tx, rows []userRow) error {
	read, repaired := false, false
	for i := range rows {
		former := user.FormerOf(rows[i].Phone)
		if former == rows[i].Phone {
			continue
		}
		if !read {
			var err error
			if repaired, err = tx.NewSelect().Table("seed").Where("name = ?", repairedPhones).Exists(ctx); err != nil {
				return err
			}
			read = true
		}
		if !repaired {
			rows[i].Phone, rows[i].Number = former, rows[i].Phone
		}
	}
	return nil
}

var _ user.Numbers = Users{}

func (s Users) Phones(ctx context.Context, after string, limit int) (list []user.Stored, err error) {
	err = s.db.Scan(ctx, s.db.Conn(ctx).NewSelect().Table("users").ColumnExpr("id AS user_id").
		Column("country_code", "phone", "number", "cv").Where("id > ?", after).Where("phone IS NOT NULL").Order("id").
		Limit(int64(limit)), &list)
	return list, err
}

// PhonesTaken returns those of the canonical numbers that an account has, or whose form of 0.9 it has while that form
// is unique too.
func (s Users) PhonesTaken(ctx context.Context, numbers []string) (taken []string, err error) {
	if len(numbers) == 0 {
		return nil, nil
	}
	all := slices.Clone(numbers)
	for _, n := range numbers {
		if former := user.FormerOf(n); former != n {
			all = append(all, former)
		}
	}
	held, err := s.HoldersOf(ctx, all)
	if err != nil {
		return nil, err
	}
	repaired := true
	if len(all) > len(numbers) {
		if repaired, err = PhonesRepaired(ctx, s.db); err != nil {
			return nil, err
		}
	}
	for _, n := range numbers {
		if len(held[n]) > 0 || !repaired && len(held[user.FormerOf(n)]) > 0 {
			taken = append(taken, n)
		}
	}
	return taken, nil
}

func (s Users) HoldersOf(ctx context.Context, numbers []string) (map[string][]string, error) {
	var rows []userRow
	err := s.db.Scan(ctx, s.db.Conn(ctx).NewSelect().Model(&rows).Column("id", "phone", "number").
		Where("phone IN (?) OR number IN (?)", bun.List(numbers), bun.List(numbers)))
	held := map[string][]string{}
	for _, r := range rows {
		held[r.Phone] = append(held[r.Phone], r.ID)
		if r.Number != "" && r.Number != r.Phone {
			held[r.Number] = append(held[r.Number], r.ID)
		}
	}
	return held, err
}

// PhonesRepaired reports whether the numbers were repaired: look-ups no longer use the forms of 0.9.
func PhonesRepaired(ctx context.Context, db *engine.DB) (bool, error) {
	return db.Seeded(ctx, repairedPhones)
}

// EndPhoneRepair records that the numbers were repaired.
func EndPhoneRepair(ctx context.Context, db *engine.DB) error {
	_, err := db.Once(ctx, repairedPhones, func(context.Context) error { return nil })
	return err
}

// byNumber finds accounts by the index of the numbers. The union keeps PostgreSQL from reading accounts in their order
// until enough of them match.
const byNumber = `id IN (SELECT id FROM users WHERE phone IN (?) UNION ALL SELECT id FROM users WHERE phone IN (?) ` +
	`UNION ALL SELECT id FROM users WHERE number IN (?))`

// phoneIs finds a number, or one without its dialling code; nil: any. A number without its code is looked up with each
// dialling code: an index of its own would cost every login an entry.
func phoneIs(full, national *string) record.Filter {
	numbers := []string{""}
	switch {
	case full == nil && national == nil:
		return record.Filter{}
	case national != nil:
		numbers = user.Internationals(*national)
	}
	first := ""
	if full != nil {
		first = *full
	}
	return record.Where(byNumber, bun.List([]string{first, user.FormerOf(first)}), bun.List(numbers),
		bun.List(append(numbers, first)))
}
