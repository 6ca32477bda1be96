package persistence

import (
	"context"

	"castellan/domain/user"
)

var _ user.Audiences = Users{}

// audience is the accounts of a message to many, the oldest first.
var audience = table[userRow, user.User]{record: accounts.record}

func audienceFilters(a user.Audience) []filter {
	fs := []filter{among("id", a.IDs), among("status", a.Statuses), among("type", a.Types), among("kyc_confirm", a.KYC),
		sent("level", a.Level), given("country_code", a.Dial)}
	if a.SMS {
		fs = append(fs, where("phone NOT LIKE ?", user.PlaceholderPrefix+"%"), where("campaign_sms"))
	}
	if a.Mail {
		fs = append(fs, where("email IS NOT NULL"))
	}
	return fs
}

// Audience implements user.Audiences.
func (s Users) Audience(ctx context.Context, a user.Audience, after string, limit int) (ids []string, err error) {
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	p := part{where: append(audienceFilters(a), where("id > ?", after)), limit: limit}
	err = audience.selected(s.db.Conn(ctx).NewSelect().Table("users").Column("id"), p).Scan(ctx, &ids)
	return ids, translate(err)
}

// CountAudience implements user.Audiences.
func (s Users) CountAudience(ctx context.Context, a user.Audience) (int, error) {
	return audience.count(ctx, s.db, audienceFilters(a)...)
}
