package account

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/account/user"
	"castellan/persistence/engine"
	"castellan/persistence/factor"
	"castellan/persistence/record"
)

// preferencesRow is the row of user.SetPreferences.
type preferencesRow struct {
	bun.BaseModel `bun:"table:users"`

	ID, Language    string
	SMS, Mail, Push bool
}

// StandingWrites are the decisions on an account, which go with Hold.
var StandingWrites = []engine.Kind{
	engine.Update("UPDATE users SET language = v.language, campaign_sms = v.sms, campaign_mail = v.mail, "+
		"campaign_push = v.push {FROM v} WHERE users.id = v.id", func(w user.SetPreferences) preferencesRow {
		return preferencesRow{ID: w.UserID, Language: w.Language, SMS: w.Campaigns.SMS, Mail: w.Campaigns.Mail,
			Push: w.Campaigns.Push}
	}),
	factor.SetUser("tax_number = v.text", func(w user.SetTaxNumber) factor.UserStep {
		return factor.UserStep{ID: w.UserID, Text: w.TaxNumber}
	}),
	factor.SetUser("kyc_confirm = v.text", func(w user.SetKYC) factor.UserStep {
		return factor.UserStep{ID: w.UserID, Text: w.KYCConfirm}
	}),
	factor.SetUser("address_confirmed = v.text", func(w user.SetAddressConfirmed) factor.UserStep {
		return factor.UserStep{ID: w.UserID, Text: w.AddressConfirmed}
	}),
	engine.Update("UPDATE users SET name = v.name, surname = v.surname, full_name = v.full_name, "+
		"identity_hash = v.identity_hash, birth_date = v.birth_date {FROM v} WHERE users.id = v.id",
		func(w user.SetPerson) personRow {
			return personRow{ID: w.UserID, Name: w.Name, Surname: w.Surname, FullName: user.FoldName(w.FullName()),
				IdentityHash: w.IdentityHash, BirthDate: w.BirthDate}
		}),
}

func (s Users) Hold(ctx context.Context, id string) (user.User, error) {
	return Accounts.Lock(ctx, s.db, record.Is("id", id))
}
