package account_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/delivery/notification"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/factor/passkey"
	"castellan/domain/factor/remembered"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
	"castellan/domain/proof/device/devicetest"
	"castellan/domain/proof/totp"
	"castellan/domain/session/profile"
	"castellan/domain/session/session"
	httpuser "castellan/http/account/user"
	"castellan/http/apitest"
	"castellan/http/edge"
	"castellan/persistence"
	accountstore "castellan/persistence/account"
	"castellan/persistence/factor"
	"castellan/persistence/persistencetest"
	"castellan/persistence/proof"
	sessionstore "castellan/persistence/session"
)

// notices is a Notices that commits a notification for each destination.
type notices struct{}

func (notices) Notice(to challenge.Account, k message.Kind, _ message.Values, ip string) []commit.Write {
	if to.Phone == "" && to.Mail == "" {
		return nil
	}
	return []commit.Write{notification.Add{Notification: notification.New(now, "told", notification.Message{
		Topic: string(k), Title: to.Mail, Body: strings.TrimSpace(to.Phone + " " + ip)})}}
}

var admins = audit.By{UserID: "admin", IP: "192.0.2.9"}

func clock() time.Time { return now }

func profiles(db *persistence.DB) *profile.Service {
	return &profile.Service{Users: accountstore.NewUsers(db), Store: sessionstore.NewProfiles(db), Notices: notices{},
		Changes: admin.Changes{Commit: db, Now: clock}, Now: clock}
}

// told are the notifications by destination.
func told(t *testing.T, db *persistence.DB) (places []string) {
	t.Helper()
	storetest.Must(t, db.Conn(t.Context()).NewSelect().Table("notification").ColumnExpr("title || body").
		Where("topic IN ('phone-changed', 'mail-changed')").Scan(t.Context(), &places))
	slices.Sort(places)
	return places
}

func userAccount(t *testing.T, db *persistence.DB, n int) user.User {
	t.Helper()
	return storetest.Value(accountstore.NewUsers(db).Get(t.Context(), person(n, 0).ID))(t)
}

const (
	setName  = "POST /admin/user/update-fullname"
	setPhone = "POST /admin/user/update-phonenumber"
	setMail  = "POST /admin/user/update-email"
	changes  = "GET /admin/get-email-change-history?userId=01USER00000000000000000001"
)

// of is a body for account n with further fields.
func of(n int, fields string) string { return fmt.Sprintf(`{"userId":"01USER%020d",%s}`, n, fields) }

// REQ-USR-11, D-USR-06: a name is another one for lists and filters too, and says
// nothing of credentials.
func TestSetName(t *testing.T) {
	userBoth(t, func(t *testing.T, s *apitest.Site, db *persistence.DB) {
		const want = `{"data":{"userId":"01USER00000000000000000001","fullName":"Iğdır O'Neil","email":"u1@example.com",` +
			`"phoneNumber":"+905321000001","kycConfirm":false,"status":"active"}}`
		for range 2 {
			s.Wants(setName, of(1, `"name":" Iğdır\n","surname":"O'Neil"`), 200, want)
		}
		wantsUsers(t, s, "GET /admin/list-users?fullName=i%C4%9Fdir%20o", "1")
		wantsUsers(t, s, "GET /admin/list-users?fullName=ay%C5%9Fe", "2 3")
		if u := userAccount(t, db, 1); u.SV != 1 || u.CV != 1 ||
			persistencetest.Count(t, db, "audit", "action = 'USER_UPDATE_FULLNAME'") != 1 {
			t.Errorf("%+v", u)
		}
		s.Wants(setName, of(1, `"name":"A\u202eb","surname":"B\u0007"`), 400, "INVALID_FIELD name surname")
		s.Wants(setName, of(9, `"name":"a","surname":"b"`), 404, "RECORD_NOT_FOUND")
	})
}

// REQ-USR-12, D-USR-06, D-PWD-07.
func TestSetPhone(t *testing.T) {
	userBoth(t, func(t *testing.T, s *apitest.Site, db *persistence.DB) {
		const want = `{"data":{"userId":"01USER00000000000000000001","fullName":"Ayşe 1 Yılmaz","email":"u1@example.com",` +
			`"phoneNumber":"+4915112345678","kycConfirm":false,"status":"active"}}`
		s.Wants(setPhone, of(1, `"phoneNum":"(0532) 100 00 01","countryCode":"+90"`), 200,
			strings.ReplaceAll(want, "+4915112345678", "+905321000001"))
		if u := userAccount(t, db, 1); u.SV != 1 || u.CV != 1 || len(told(t, db)) != 0 ||
			persistencetest.Count(t, db, "audit") != 0 {
			t.Errorf("the same number: %+v, %v", u, told(t, db))
		}
		for range 2 { // the second time it is the same
			s.Wants(setPhone, of(1, `"phoneNum":"0151-12345678","countryCode":"0049"`), 200, want)
		}
		u := userAccount(t, db, 1)
		if u.SV != 2 || u.CV <= 1 || u.CountryCode != "49" || persistencetest.Count(t, db, "email_change") != 0 {
			t.Errorf("%+v", u)
		}
		storetest.Same(t, told(t, db), []string{"+4915112345678 0.0.0.0", "+905321000001 0.0.0.0",
			"u1@example.com0.0.0.0"})
		if persistencetest.Count(t, db, "audit", "action = 'USER_UPDATE_PHONENUMBER'") != 1 ||
			persistencetest.Count(t, db, "audit", "detail LIKE '%151%' OR target LIKE '%151%'") != 0 {
			t.Error("the audit")
		}
		s.Wants(setPhone, of(1, `"phoneNum":"5321000002","countryCode":"90"`), 409, "RECORD_ALREADY_EXIST")
		s.Wants(setPhone, of(9, `"phoneNum":"5321000002","countryCode":"90"`), 404, "RECORD_NOT_FOUND")
		s.Wants(setPhone, of(9, `"phoneNum":"x","countryCode":"TR"`), 400, "INVALID_FIELD countryCode phoneNum")
		for _, bad := range []string{"123", "0049 532 100 00 05", "+495321000005", "1234567890123456"} {
			s.Wants(setPhone, of(1, `"countryCode":"90","phoneNum":"`+bad+`"`), 400, "INVALID_FIELD phoneNum")
		}
		if got := userAccount(t, db, 1); got.Phone != u.Phone || got.SV != u.SV || len(told(t, db)) != 3 {
			t.Errorf("a refusal changed %+v", got)
		}
	})
}

// REQ-USR-13, REQ-USR-18, D-USR-06, D-USR-07.
func TestSetMail(t *testing.T) {
	userBoth(t, func(t *testing.T, s *apitest.Site, db *persistence.DB) {
		storetest.Must(t, db.Commit(t.Context(), user.VerifyMail{UserID: person(1, 0).ID}))
		s.Wants(changes, "", 200, "[]")
		s.Wants(setMail, of(1, `"mailAddress":" U1@Example.com "`), 200, `{"data":{"userId":"01USER00000000000000000001",`+
			`"fullName":"Ayşe 1 Yılmaz","email":"u1@example.com","phoneNumber":"+905321000001","kycConfirm":false,`+
			`"status":"active"}}`)
		if u := userAccount(t, db, 1); u.SV != 1 || u.CV != 1 || !u.EmailVerified ||
			persistencetest.Count(t, db, "email_change") != 0 {
			t.Errorf("the same address: %+v", u)
		}
		_, answer := s.Call(setMail, of(1, `"mailAddress":"New+1@Example.COM"`))
		u := userAccount(t, db, 1)
		if !strings.Contains(answer, `"email":"new+1@example.com"`) || u.SV != 2 || u.EmailVerified {
			t.Errorf("%s, %+v", answer, u)
		}
		storetest.Same(t, told(t, db), []string{"new+1@example.com0.0.0.0", "u1@example.com+905321000001 0.0.0.0"})
		s.Call(setMail, of(1, `"mailAddress":"u1@example.com"`))
		line := func(id int, old, next string) string {
			return fmt.Sprintf(`{"id":%d,"userId":"01USER00000000000000000001","oldEmail":%q,"newEmail":%q,"changedBy":"admin",`+
				`"createdAt":"2026-03-31T23:00:00.000Z"}`, id, old, next)
		}
		both := line(2, "new+1@example.com", "u1@example.com") + "," + line(1, "u1@example.com", "new+1@example.com")
		s.Wants(changes, "", 200, "["+both+"]")
		s.Wants(changes+"&startDate=2026-03-31&endDate=2026-03-31", "", 200, "["+both+"]")
		s.Wants(changes+"&startDate=2026-04-01", "", 200, "[]")
		s.Wants(changes+"&endDate=2026-03-30", "", 200, "[]")
		res, _ := s.Send(changes+"&limit=1&count=true", "")
		if res.Header.Get("Link") == "" || res.Header.Get("X-Total-Count") != "2" {
			t.Errorf("%v", res.Header)
		}
		s.Wants("GET /admin/get-email-change-history?userId=nobody", "", 200, "[]")
		s.Wants(changes+"&startDate=2026-03-02&endDate=2026-03-01", "", 400, "INVALID_FIELD startDate")

		s.Wants(setMail, of(1, `"mailAddress":"U2@example.com"`), 409, "RECORD_ALREADY_EXIST")
		s.Wants(setMail, of(9, `"mailAddress":"u2@example.com"`), 404, "RECORD_NOT_FOUND")
		for _, bad := range []string{`"nobody"`, `"a@b..c"`, `"ａ@b.co"`, `"a@b.co\nbcc:x@y.z"`} {
			s.Wants(setMail, of(1, `"mailAddress":`+bad), 400, "INVALID_FIELD mailAddress")
		}
		if persistencetest.Count(t, db, "email_change") != 2 ||
			persistencetest.Count(t, db, "audit", "action = 'USER_UPDATE_EMAIL'") != 2 ||
			persistencetest.Count(t, db, "audit", "detail LIKE '%example%'") != 0 {
			t.Error("the rows")
		}
	})
}

// Eight administrators give one number to eight accounts, and eight numbers to one.
func TestContactsInARace(t *testing.T) {
	userBoth(t, func(t *testing.T, s *apitest.Site, db *persistence.DB) {
		service, ctx := profiles(db), t.Context()
		for i := 11; i < 19; i++ {
			storetest.Must(t, db.Commit(ctx, person(i, 0)))
		}
		won := storetest.Race(t, 8, fault.RecordAlreadyExist, func(i int) error {
			return storetest.Err(service.SetPhone(ctx, admins, person(11+i, 0).ID, "90", "+905559998877"))
		})
		won += storetest.Race(t, 8, fault.RecordAlreadyExist, func(i int) error {
			return storetest.Err(service.SetMail(ctx, admins, person(11+i, 0).ID, "same@example.com"))
		})
		if n := len(told(t, db)); won != 2 || n != 5 || persistencetest.Count(t, db, "email_change") != 1 {
			t.Errorf("%d changes and %d told", won, n)
		}
		won = storetest.Race(t, 8, "", func(i int) error {
			return storetest.Err(service.SetPhone(ctx, admins, person(1, 0).ID, "90", fmt.Sprintf("+90555777000%d", i)))
		})
		if u := userAccount(t, db, 1); won != 8 || u.SV != 9 || len(told(t, db)) != 5+3*8 {
			t.Errorf("%d of 8, version %d, %d told", won, u.SV, len(told(t, db)))
		}
	})
}

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
		storetest.Equal(t, persistencetest.Count(t, db, "audit"), 0, "audit rows of no change")
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
		acts := persistencetest.Acts(t, db)
		if len(acts) != 2 || !strings.HasPrefix(acts[0], profile.ActionPreferences+"|"+u.ID+"|"+u.ID+"|") ||
			!strings.HasSuffix(acts[0], "|Language Campaigns") {
			t.Errorf("audited %q", acts)
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
			return storetest.Err(service.Prefer(t.Context(), audit.By{UserID: id}, edits[i]))
		}); won != len(edits) {
			t.Errorf("%d changes were made", won)
		}
		if u := userAccount(t, db, 1); u.Language != "en" || u.Campaigns != (user.Campaigns{}) {
			t.Errorf("%q %+v", u.Language, u.Campaigns)
		}
	})
}

// D-EXT-14: the factors, sessions and remembered browsers of an account are counted, and only its own.
func TestSecurity(t *testing.T) {
	userBoth(t, func(t *testing.T, _ *apitest.Site, db *persistence.DB) {
		login := mfa.Policy{ActionCode: mfa.Login, Type: mfa.Common, EntityType: mfa.General, RememberDays: 30, Required: 1,
			Methods: []mfa.Choice{{Code: mfa.SMS}}}
		withdraw := login
		withdraw.ActionCode = mfa.Withdraw
		catalog := mfa.NewCatalog([]mfa.Method{{Code: mfa.SMS}}, nil, []mfa.Policy{login, withdraw})
		s := apitest.Serve(t, edge.Options{}, httpuser.Group{Users: accountstore.NewUsers(db),
			Sessions: sessionstore.NewSessions(db), Now: clock, TOTP: proof.NewTOTP(db),
			Devices: &device.Service{Store: proof.NewDevices(db),
				Passkeys: &device.Passkeys{Store: factor.NewPasskeys(db)}},
			Remembered: &remembered.Service{Store: factor.NewRemembered(db), Now: clock,
				Catalog: func() *mfa.Catalog { return catalog }}})
		const path = "GET /admin/user/security?userId="
		wants := func(id string, totp, confirmed bool, devices, passkeys, sessions, browsers int) {
			t.Helper()
			s.Wants(path+id, "", 200, fmt.Sprintf(`{"data":{"userId":%q,"totp":%t,"totpConfirmed":%t,"devices":%d,`+
				`"passkeys":%d,"sessions":%d,"rememberedBrowsers":%d}}`, id, totp, confirmed, devices, passkeys, sessions,
				browsers))
		}
		one, two := person(1, 60).ID, person(2, 29).ID
		wants(one, false, false, 0, 0, 0, 0)

		writes := []commit.Write{totp.Define{Definition: totp.Definition{UserID: one, ID: "t1", Sealed: []byte("sealed"),
			CreatedAt: now}, Codes: []keyring.Sum{{Sum: []byte("sum")}}}}
		for i, alg := range []string{device.ES256, device.EdDSA} {
			_, key := devicetest.Signer(t, alg)
			writes = append(writes, device.Add{Device: device.Device{ID: fmt.Sprint("d", i), UserID: one, Key: key,
				Brand: "Google", Model: "Pixel", Platform: "android", Status: device.Active, CreatedAt: now}})
		}
		_, key := devicetest.Signer(t, device.ES256)
		public := storetest.Value(passkey.ParseKey([]byte(key.JWK())))(t)
		writes = append(writes, passkey.Add{Credential: passkey.Credential{DeviceID: "p1", UserID: one,
			ID: []byte(strings.Repeat("p", 16)), Key: public, CreatedAt: now}})
		for i, until := range []time.Duration{time.Hour, 2 * time.Hour, 0} { // one has expired
			writes = append(writes, session.Add{Session: session.Session{ID: id.New(now.Add(time.Duration(i))), UserID: one,
				CreatedAt: now, LastSeenAt: now, ExpiresAt: now.Add(until), SV: 1}, CV: 1})
		}
		for i, action := range []string{mfa.Login, mfa.Withdraw, "OTHER"} { // the last one has no policy
			writes = append(writes, remembered.Add{Client: remembered.Client{ID: fmt.Sprint("r", i), UserID: one,
				Thumbprint: "kkm"[i : i+1], Action: action, Method: challenge.SMS, CV: 1, CreatedAt: now, LastUsedAt: now,
				ExpiresAt: now.AddDate(0, 0, 30)}})
		}
		storetest.Must(t, db.Commit(t.Context(), writes...))
		wants(one, true, false, 2, 1, 2, 1)
		wants(two, false, false, 0, 0, 0, 0)
		storetest.Must(t, db.Commit(t.Context(), totp.UseStep{UserID: one, ID: "t1", Step: 7}))
		wants(one, true, true, 2, 1, 2, 1)

		s.Wants(path+"unknown", "", 404, "RECORD_NOT_FOUND")
	})
}
