package user_test

import (
	"strings"
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
	storetest.Equal(t, user.SMSCount{Filtered: 1, NoNumber: 20, NoCampaign: 300, Recipients: 4000}.Known(), 4321)
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

// The last digit of a tax number is a check digit: of ten numbers that differ only in it, one is valid.
func TestValidTaxNumber(t *testing.T) {
	for _, known := range []string{"1234567890", "4540536920", "0010000104"} {
		if !user.ValidTaxNumber(known) {
			t.Errorf("%s is refused", known)
		}
		valid := 0
		for last := range 10 {
			if user.ValidTaxNumber(known[:9] + string(rune('0'+last))) {
				valid++
			}
		}
		storetest.Equal(t, valid, 1, "last digits that fit", known[:9])
	}
	for _, wrong := range []string{"", "123456789", "12345678901", "1234567891", "123456789x", " 234567890", "-234567890",
		"\u0661234567890", strings.Repeat("9", 100)} {
		if user.ValidTaxNumber(wrong) {
			t.Errorf("%q is accepted", wrong)
		}
	}
}

// Two decisions confirm an identity; no other state does.
func TestKYCApproved(t *testing.T) {
	for state, want := range map[string]bool{user.ManuelApproved: true, user.OCROrNFCApproved: true,
		user.WaitingApproval: false, user.Rejected: false, "": false, "approved": false} {
		storetest.Equal(t, (user.User{KYCConfirm: state}).KYCApproved(), want, state, "is approved")
	}
}

// Names compare without case, and the four Turkish letters i are one.
func TestFoldName(t *testing.T) {
	for _, same := range [][2]string{{"IŞIK", "ışık"}, {"İrem", "irem"}, {"ÇAĞRI", "çağri"}, {"e\u0301", "É"}} {
		storetest.Equal(t, user.FoldName(same[0]), user.FoldName(same[1]), same)
	}
	if user.FoldName("Şahin") == user.FoldName("Sahin") {
		t.Error("ş and s are one letter")
	}
}

// A number in international form is divided as the numbering plan divides it, and is the canonical number.
func TestInternational(t *testing.T) {
	for text, want := range map[string][2]string{
		"+905321234567":     {"90", "+905321234567"},
		" +90 532 123 4567": {"90", "+905321234567"},
		"+1 (212) 555-0123": {"1", "+12125550123"},
		"+77011234567":      {"7", "+77011234567"},
		"+355671234567":     {"355", "+355671234567"},
		"+447700900123":     {"44", "+447700900123"},
		"05321234567":       {}, "+": {}, "": {}, "+0905321234567": {}, "+9x": {}, "+90": {}, "+90abc": {}, "+90123": {},
		"+901234567890123456": {},
	} {
		dial, e164, err := user.International(text)
		if dial != want[0] || e164 != want[1] || (err == nil) != (e164 != "") {
			t.Errorf("%q: %q, %q, %v", text, dial, e164, err)
		}
	}
}
