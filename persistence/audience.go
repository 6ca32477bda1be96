package persistence

import (
	"context"
	"slices"

	"castellan/domain/access/user"
)

var _ user.Audiences = Users{}

// audience is the accounts of a message to many, the oldest first.
var audience = table[userRow, user.User]{record: accounts.record}

// The conditions of an SMS, one for each reason that leaves an account out; user.TakesSMS is
// the same rule.
var (
	reachable = where("phone NOT LIKE ?", user.PlaceholderPrefix+"%")
	campaigns = where("campaign_sms")
)

func narrowed(a user.Audience) []filter {
	return []filter{among("status", a.Statuses), among("type", a.Types), among("kyc_confirm", a.KYC),
		sent("level", a.Level)}
}

func audienceFilters(a user.Audience) []filter {
	fs := append(narrowed(a), among("id", a.IDs), given("country_code", a.Dial))
	if a.SMS {
		fs = append(fs, reachable, campaigns)
	}
	if a.Mail {
		fs = append(fs, where("email IS NOT NULL"))
	}
	return fs
}

func (s Users) Audience(ctx context.Context, a user.Audience, after string, limit int) (ids []string, err error) {
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	p := part{where: append(audienceFilters(a), where("id > ?", after)), limit: limit}
	err = audience.selected(s.db.Conn(ctx).NewSelect().Table("users").Column("id"), p).Scan(ctx, &ids)
	return ids, translate(err)
}

func (s Users) CountAudience(ctx context.Context, a user.Audience) (int, error) {
	return audience.count(ctx, s.db, audienceFilters(a)...)
}

// CountSMS counts in one statement, each account by the first condition that does not hold.
func (s Users) CountSMS(ctx context.Context, a user.Audience) (out user.SMSCount, err error) {
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	q := filtered(s.db.Conn(ctx).NewSelect().Table("users"), []filter{among("id", a.IDs)})
	held := where("1 = 1")
	var counts [4]int // those for which the conditions up to this one hold
	for _, conditions := range [][]filter{nil, narrowed(a), {given("country_code", a.Dial), reachable}, {campaigns}} {
		for _, f := range conditions {
			if f.text != "" {
				held = where(held.text+" AND "+f.text, slices.Concat(held.args, f.args)...)
			}
		}
		q = q.ColumnExpr("COUNT(CASE WHEN "+held.text+" THEN 1 END)", held.args...)
	}
	err = translate(q.Scan(ctx, &counts[0], &counts[1], &counts[2], &counts[3]))
	return user.SMSCount{Filtered: counts[0] - counts[1], NoNumber: counts[1] - counts[2],
		NoCampaign: counts[2] - counts[3], Recipients: counts[3]}, err
}
