package account_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/persistencetest"
)

func TestAudience(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		ctx, users := t.Context(), account.NewUsers(db)
		add := func(id string, edit func(*user.User)) {
			u := user.New(id, time.Now())
			u.CountryCode, u.Phone, u.Email = "90", "+90532"+id, id+"@example.com"
			edit(&u)
			storetest.Must(t, db.Commit(ctx, user.Add{User: u}))
		}
		add("1", func(*user.User) {})
		add("2", func(u *user.User) { u.CountryCode, u.Phone = "49", "+491512" })
		add("3", func(u *user.User) { u.Status, u.Email = user.Passive, "" })
		add("4", func(u *user.User) { u.Type, u.Level, u.Phone = user.Corporate, 2, "" })
		add("5", func(u *user.User) { u.KYCConfirm = "approved" })
		add("6", func(u *user.User) { u.SetPlaceholder(7) })
		add("7", func(u *user.User) { u.Campaigns.SMS = false })
		for _, c := range []struct {
			name  string
			a     user.Audience
			after string
			limit int
			want  []string
		}{
			{"all", user.Audience{}, "", 0, []string{"1", "2", "3", "4", "5", "6", "7"}},
			{"a page", user.Audience{}, "2", 2, []string{"3", "4"}},
			{"those named", user.Audience{IDs: []string{"9", "5", "1"}}, "", 0, []string{"1", "5"}},
			{"by country", user.Audience{Dial: "90", SMS: true}, "", 0, []string{"1", "3", "5"}},
			{"by status", user.Audience{Statuses: []string{"active", "blocked"}, Mail: true}, "", 0,
				[]string{"1", "2", "4", "5", "6", "7"}},
			{"with a mail address", user.Audience{Mail: true}, "", 0, []string{"1", "2", "4", "5", "6", "7"}},
			{"by type and level", user.Audience{Types: []string{"kurumsal"}, Level: new(2)}, "", 0, []string{"4"}},
			{"level 0", user.Audience{Level: new(0), KYC: []string{"approved"}}, "", 0, []string{"5"}},
		} {
			storetest.Same(t, storetest.Value(users.Audience(ctx, c.a, c.after, c.limit))(t), c.want)
			if n, err := users.CountAudience(ctx, c.a); err != nil || c.limit == 0 && n != len(c.want) {
				t.Errorf("%s: %d, %v", c.name, n, err)
			}
		}
		for _, c := range []struct {
			name string
			a    user.Audience
			want user.SMSCount
		}{
			{"all", user.Audience{Dial: "90"}, user.SMSCount{NoNumber: 3, NoCampaign: 1, Recipients: 3}},
			{"another dialling code", user.Audience{Dial: "49"}, user.SMSCount{NoNumber: 6, Recipients: 1}},
			{"those named", user.Audience{Dial: "90", IDs: []string{"1", "2", "6", "7", "9"}},
				user.SMSCount{NoNumber: 2, NoCampaign: 1, Recipients: 1}},
			{"unknown ids alone", user.Audience{Dial: "90", IDs: []string{"8", "9"}}, user.SMSCount{}},
			{"the filter before the number", user.Audience{Dial: "90", Statuses: []string{"passive"}, KYC: []string{
				user.WaitingApproval}}, user.SMSCount{Filtered: 6, Recipients: 1}},
			{"by type and level", user.Audience{Dial: "90", Types: []string{"kurumsal"}, Level: new(2)},
				user.SMSCount{Filtered: 6, NoNumber: 1}},
		} {
			got := storetest.Value(users.CountSMS(ctx, c.a))(t)
			if c.a.SMS = true; got != c.want {
				t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
			}
			storetest.Equal(t, storetest.Value(users.CountAudience(ctx, c.a))(t), got.Recipients, c.name)
		}
		cv := func(id string) int64 {
			u := storetest.Value(users.Get(ctx, id))(t)
			return u.CV
		}
		storetest.Must(t, db.Commit(ctx, user.SetTOTP{UserID: "1", CV: cv("1"), Defined: true},
			user.SetPush{UserID: "2", CV: cv("2"), Owned: true, Handle: "h"},
			user.SetPush{UserID: "4", CV: cv("4"), Owned: true}))
		type owner struct{ phone, mail, totp, push, passkeys bool }
		of := func(a challenge.Account) owner {
			return owner{a.Phone != "", a.Mail != "", a.TOTP, a.Push, a.Passkeys}
		}
		want, got := map[owner]int{}, map[owner]int{}
		for n := range 7 {
			u, err := users.Get(ctx, fmt.Sprint(n+1))
			if storetest.Must(t, err); u.Active() {
				want[of(u.Account())]++
			}
		}
		owners := storetest.Value(users.Owners(ctx))(t)
		for _, o := range owners {
			got[of(o.Account)] += o.Count
		}
		if !maps.Equal(got, want) || len(owners) < 4 {
			t.Errorf("owners %+v, want %+v", got, want)
		}
		for n := range 7 {
			u := storetest.Value(users.Get(ctx, fmt.Sprint(n+1)))(t)
			got, err := users.CountSMS(ctx, user.Audience{Dial: "90", IDs: []string{u.ID}})
			if err != nil || u.TakesSMS("90") != (got.Recipients == 1) || got.Known() != 1 {
				t.Errorf("account %s: %+v, %v; by the rule of the account %t", u.ID, got, err, u.TakesSMS("90"))
			}
		}
	})
}
