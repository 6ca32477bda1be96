package access

import (
	"context"

	"castellan/domain/user"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

var _ user.Audiences = Users{}

// audience is the accounts of a message to many, the oldest first.
var audience = record.Table[userRow, user.User]{Record: Accounts.Record}

func audienceFilters(a user.Audience) []record.Filter {
	fs := []record.Filter{record.Among("id", a.IDs), record.Among("status", a.Statuses), record.Among("type", a.Types),
		record.Among("kyc_confirm", a.KYC),
		record.Sent("level", a.Level), record.Given("country_code", a.Dial)}
	if a.SMS {
		fs = append(fs, record.Where("phone NOT LIKE ?", user.PlaceholderPrefix+"%"), record.Where("campaign_sms"))
	}
	if a.Mail {
		fs = append(fs, record.Where("email IS NOT NULL"))
	}
	return fs
}

// Audience implements user.Audiences.
func (s Users) Audience(ctx context.Context, a user.Audience, after string, limit int) (ids []string, err error) {
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	p := record.Part{Where: append(audienceFilters(a), record.Where("id > ?", after)), Limit: limit}
	err = audience.Selected(s.db.Conn(ctx).NewSelect().Table("users").Column("id"), p).Scan(ctx, &ids)
	return ids, engine.Translate(err)
}

// CountAudience implements user.Audiences.
func (s Users) CountAudience(ctx context.Context, a user.Audience) (int, error) {
	return audience.Count(ctx, s.db, audienceFilters(a)...)
}
