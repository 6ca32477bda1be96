package account_test

import (
	"testing"

	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/domain/session/profile"
	"castellan/http/apitest"
	"castellan/persistence"
	accountstore "castellan/persistence/account"
	"castellan/persistence/kit"
)

// D-INT-11: a user reads and changes the own preferences and those of no other account.
func TestPreferences(t *testing.T) {
	userBoth(t, func(t *testing.T, s *apitest.Site, db *persistence.DB) {
		const (
			read   = "GET /user/preferences"
			change = "PATCH /user/preferences"
			first  = `{"data":{"language":null,"campaignMail":true,"campaignSms":true,"campaignPush":true}}`
		)
		mine := s.As(person(1, 0).ID)
		mine.Wants(read, "", 200, first)
		mine.Wants(change, `{}`, 200, first)
		mine.Wants(change, `{"language":null,"campaignSms":true,"userId":"`+person(2, 0).ID+`"}`, 200, first)
		if n := count(t, db, "audit"); n != 0 {
			t.Errorf("%d audit rows of no change", n)
		}
		mine.Wants(change, `{"language":"TR"}`, 400, "INVALID_FIELD language")
		const second = `{"data":{"language":"ar","campaignMail":true,"campaignSms":false,"campaignPush":true}}`
		mine.Wants(change, `{"language":"ar","campaignSms":false}`, 200, second)
		mine.Wants(change, `{"language":"ar"}`, 200, second)
		mine.Wants(read, "", 200, second)
		u := userAccount(t, db, 1)
		if u.SV != 1 || u.CV != 1 || u.Account().Language != "ar" || u.TakesSMS("90") {
			t.Errorf("the account became %+v", u)
		}
		mine.Wants(change, `{"language":null,"campaignMail":false}`, 200,
			`{"data":{"language":null,"campaignMail":false,"campaignSms":false,"campaignPush":true}}`)
		s.As(person(2, 0).ID).Wants(read, "", 200, first)
		rows, err := kit.NewAudit(db).List(t.Context(), audit.Query{}, page.Query[audit.Place]{})
		storetest.Must(t, err)
		if r := rows.Records; len(r) != 2 || r[1].Action != profile.ActionPreferences ||
			r[1].Detail != "Language Campaigns" || r[1].ActorID != u.ID || r[1].UserID != u.ID {
			t.Errorf("audited %+v", r)
		}
	})
}

// Of changes that race each keeps what the others set.
func TestPreferencesRace(t *testing.T) {
	userBoth(t, func(t *testing.T, _ *apitest.Site, db *persistence.DB) {
		id := person(1, 0).ID
		service := &profile.Service{Users: accountstore.NewUsers(db), Now: clock,
			Changes: admin.Changes{Commit: db, Now: clock}}
		edits := []func(*profile.Preferences){
			func(p *profile.Preferences) { p.Language = "en" },
			func(p *profile.Preferences) { p.Campaigns.SMS = false },
			func(p *profile.Preferences) { p.Campaigns.Mail = false },
			func(p *profile.Preferences) { p.Campaigns.Push = false },
		}
		if won := storetest.Race(t, len(edits), "", func(i int) error {
			_, err := service.Prefer(t.Context(), audit.By{UserID: id}, edits[i])
			return err
		}); won != len(edits) {
			t.Errorf("%d changes were made", won)
		}
		if u := userAccount(t, db, 1); u.Language != "en" || u.Campaigns != (user.Campaigns{}) {
			t.Errorf("%q %+v", u.Language, u.Campaigns)
		}
	})
}
