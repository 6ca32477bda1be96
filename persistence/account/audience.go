package account

import (
	"context"

	"castellan/domain/account/user"
	"castellan/domain/factor/challenge"
	"castellan/persistence/record"
)

var _ user.Audiences = Users{}

// audience is the accounts of a message to many, the oldest first.
var audience = record.Table[userRow, user.User]{Record: Accounts.Record}

// The conditions of an SMS, one for each reason that leaves an account out; user.TakesSMS is
// the same rule.
var (
	reachable = record.Where("phone NOT LIKE ?", user.PlaceholderPrefix+"%")
	campaigns = record.Where("campaign_sms")
)

func narrowed(a user.Audience) []record.Filter {
	return []record.Filter{record.Among("status", a.Statuses), record.Among("type", a.Types),
		record.Among("kyc_confirm", a.KYC), record.Sent("level", a.Level)}
}

func audienceFilters(a user.Audience) []record.Filter {
	fs := append(narrowed(a), record.Among("id", a.IDs), record.Given("country_code", a.Dial))
	if a.SMS {
		fs = append(fs, reachable, campaigns)
	}
	if a.Mail {
		fs = append(fs, record.Where("email IS NOT NULL"))
	}
	return fs
}

func (s Users) Audience(ctx context.Context, a user.Audience, after string, limit int) (ids []string, err error) {
	p := record.Part{Where: append(audienceFilters(a), record.Where("id > ?", after)), Limit: limit}
	err = s.db.Scan(ctx, audience.Selected(s.db.Conn(ctx).NewSelect().Table("users").Column("id"), p), &ids)
	return ids, err
}

func (s Users) CountAudience(ctx context.Context, a user.Audience) (int, error) {
	return audience.Count(ctx, s.db, audienceFilters(a)...)
}

// Owners counts the active accounts by their methods, in one statement.
func (s Users) Owners(ctx context.Context) (all []challenge.Owners, err error) {
	var rows []struct {
		Phone, Mail          string // not empty if the account has one
		TOTP, Push, Passkeys bool
		Count                int
	}
	q := record.Filtered(s.db.Conn(ctx).NewSelect().Table("users"), []record.Filter{record.Is("status", user.Active)})
	none := user.PlaceholderPrefix
	err = s.db.Scan(ctx, q.ColumnExpr("CASE WHEN COALESCE(phone, ?) LIKE ? THEN '' ELSE '+' END AS phone", none, none+"%").
		ColumnExpr("CASE WHEN email IS NULL THEN '' ELSE '@' END AS mail, totp, push").
		ColumnExpr("passkey_handle IS NOT NULL AS passkeys, COUNT(*) AS count").GroupExpr("1, 2, 3, 4, 5"), &rows)
	for _, r := range rows {
		all = append(all, challenge.Owners{Count: r.Count, Account: challenge.Account{Phone: r.Phone, Mail: r.Mail,
			TOTP: r.TOTP, Push: r.Push, Passkeys: r.Passkeys}})
	}
	return all, err
}

// CountSMS counts in one statement, each account by the first condition that does not hold.
func (s Users) CountSMS(ctx context.Context, a user.Audience) (out user.SMSCount, err error) {
	q := record.Filtered(s.db.Conn(ctx).NewSelect().Table("users"), []record.Filter{record.Among("id", a.IDs)})
	held := record.Where("1 = 1")
	var counts [4]int // those for which the conditions up to this one hold
	for _, conditions := range [][]record.Filter{nil, narrowed(a), {record.Given("country_code", a.Dial), reachable},
		{campaigns}} {
		for _, f := range conditions {
			held = held.And(f)
		}
		text, args := held.Counted()
		q = q.ColumnExpr(text, args...)
	}
	err = s.db.Scan(ctx, q, &counts[0], &counts[1], &counts[2], &counts[3])
	return user.SMSCount{Filtered: counts[0] - counts[1], NoNumber: counts[1] - counts[2],
		NoCampaign: counts[2] - counts[3], Recipients: counts[3]}, err
}
