package user_test

import (
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/storetest"
)

// A verified code of the mail address marks the address as verified, and that of a video call changes nothing.
func TestActionsOnTheAccount(t *testing.T) {
	x := challenge.Execution{Challenge: challenge.Challenge{UserID: "u1"}}
	for code, c := range map[string]struct {
		action challenge.Action
		writes int
	}{"VERIFY_EMAIL": {user.VerifyEmailAction(), 1}, "DURING_VIDEO_KYC": {user.VideoKYCAction(), 0}} {
		r, ws, err := c.action.Build(t.Context(), x)
		if c.action.Code != code || c.action.Flow != challenge.FlowSession || err != nil || !r.Success ||
			len(ws) != c.writes {
			t.Errorf("%s: %s, %s, %+v, %v, %v", code, c.action.Code, c.action.Flow, r, ws, err)
		}
		if c.writes == 1 {
			storetest.Same(t, ws[0], any(user.VerifyMail{UserID: "u1"}))
		}
	}
}

// An account takes campaigns by SMS at a number with the dialling code, if it permits them.
func TestTakesSMS(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*user.User)
		want bool
	}{
		"yes":             {func(*user.User) {}, true},
		"no campaigns":    {func(u *user.User) { u.Campaigns.SMS = false }, false},
		"another country": {func(u *user.User) { u.CountryCode = "49" }, false},
		"no number":       {func(u *user.User) { u.Phone = "" }, false},
		"a placeholder":   {func(u *user.User) { u.SetPlaceholder(7) }, false},
	} {
		u := user.New("u1", time.UnixMilli(0))
		u.CountryCode, u.Phone = "90", "+905320000007"
		if c.edit(&u); u.TakesSMS("90") != c.want {
			t.Errorf("%s: %t", name, !c.want)
		}
	}
	if n := (user.SMSCount{Filtered: 1, NoNumber: 20, NoCampaign: 300, Recipients: 4000}).Known(); n != 4321 {
		t.Errorf("%d known", n)
	}
}

// A new account is active and takes campaigns; its credentials have the first version.
func TestNewAccount(t *testing.T) {
	u := user.New("u1", time.UnixMilli(7))
	if !u.Active() || u.SV != 1 || u.CV != 1 || u.Type != user.Individual || !u.CreatedAt.Equal(time.UnixMilli(7)) ||
		u.Campaigns != (user.Campaigns{SMS: true, Mail: true, Push: true}) {
		t.Errorf("%+v", u)
	}
	if u.Status = user.Passive; u.Active() {
		t.Error("a passive account is active")
	}
}
