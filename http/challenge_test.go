package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/account/user/usertest"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/factor/remembered"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/geo"
	"castellan/domain/kit/storetest"
	"castellan/domain/kit/token"
	"castellan/domain/proof/device"
	"castellan/domain/proof/stepup"
	"castellan/domain/session/geofilter"
	"castellan/http/apitest"
	"castellan/http/edge"
	httpchallenge "castellan/http/factor/challenge"
	httpremembered "castellan/http/factor/remembered"
	"castellan/http/rest"
	httpgeofilter "castellan/http/session/geofilter"
	"castellan/http/wire"
	"castellan/persistence/account"
	"castellan/persistence/factor"
	"castellan/persistence/persistencetest"
	"castellan/persistence/session"
)

// stepUp serves a section, and is its engine of challenges. Tokens are names, and d1 is the device of u1.
type stepUp struct {
	*apitest.Site
	answer  stepup.Answer // of the last completion
	asked   string        // of a renewal, a result, a list or a start
	c       challenge.Challenge
	done    stepup.Completion
	pending []stepup.Approval
}

func newStepUp(t *testing.T, section func(s *stepUp) rest.Group) *stepUp {
	s := &stepUp{c: challenge.Challenge{ID: "c1", CreatedAt: 1000, ExpiresAt: 601_000, Body: challenge.Body{
		RememberDays: 30, Methods: []challenge.Method{
			{ID: "m1", Name: challenge.SMS, Hint: "+90", LifetimeMs: 120_000, RenewMs: 60_001, ExpiresAt: 129_900},
			{ID: "m2", Name: challenge.MAIL, LifetimeMs: 999, ExpiresAt: 9_000},
			{ID: "m3", Name: challenge.TOTP, LifetimeMs: 600_000, Order: 1},
			{ID: "m4", Name: challenge.PUSH, LifetimeMs: 600_000, ExpiresAt: 129_900, Number: "42"}}}}}
	g := apitest.Guards()
	g.Tokens, g.Devices = s, s
	s.Site = apitest.Serve(t, edge.Options{Guards: g.Table(), Authorize: g.Authorize, ActsAsAdmin: g.ActsAsAdmin,
		Starter: s}, section(s))
	return s
}

func (*stepUp) Verify(class token.Class, raw string) (token.Claims, error) {
	return token.Claims{Subject: raw, SessionID: raw, ChallengeID: raw, Thumbprint: "k1"}, nil
}

func (*stepUp) Present(_ context.Context, r device.Request) (device.Device, error) {
	return device.Device{ID: r.Proof, UserID: "u1"}, nil
}

func (s *stepUp) Complete(_ context.Context, a stepup.Answer) (stepup.Completion, error) {
	s.answer = a
	return s.done, nil
}

func (s *stepUp) Renew(_ context.Context, c, m string, n challenge.Name, _ audit.By) (challenge.Challenge, error) {
	s.asked = fmt.Sprint(c, " ", m, " ", n)
	return s.c, nil
}

func (s *stepUp) Result(_ context.Context, c string, wait time.Duration) (stepup.Completion, error) {
	s.asked = fmt.Sprint(c, " ", wait)
	return s.done, nil
}

func (s *stepUp) Ongoing(_ context.Context, userID, language string, country func(string, string) string) (
	[]stepup.Approval, error,
) {
	s.asked = userID + " " + language
	for i, a := range s.pending {
		s.pending[i].Country = country(a.Challenge.Starter.Country, language)
	}
	return s.pending, nil
}

func (s *stepUp) Start(_ context.Context, who rest.Caller, action string, command []byte) (any, []rest.Header, error) {
	s.asked = fmt.Sprint(who.UserID, " ", action, " ", string(command))
	r := wire.Started(challenge.Started{Challenge: s.c, PAuth: "the p-auth", Result: s.done.Result})
	return r.Body, r.Headers, nil
}

// wants makes a request of an anonymous caller and checks the answer, with x-auth behind it, or the refusal.
func (s *stepUp) wants(t *testing.T, line, body, want string, headers ...string) {
	t.Helper()
	res, answer := s.As("anonymous").Send(line, body, headers...)
	if res.StatusCode != 200 {
		answer = fmt.Sprint(res.StatusCode, " ", apitest.Refusal(answer))
	}
	storetest.Equal(t, answer+res.Header.Get("x-auth"), want, line, body, headers)
}

func newChallenges(t *testing.T, zone *time.Location) *stepUp {
	return newStepUp(t, func(s *stepUp) rest.Group {
		return httpchallenge.Group{Answers: s, Now: func() time.Time { return time.UnixMilli(10_000) }, Zone: zone,
			CountryName: func(code, language string) string { return code + " in " + language }}
	})
}

// A code needs p-auth. A push is answered with p-auth or by a device, which sees nothing but the success
// (D-2FA-06, 07, 18, 30, 33).
func TestCompletions(t *testing.T) {
	s := newChallenges(t, nil)
	const line, invalid = "POST /auth/2fa/challenge/complete", "400 INVALID_FIELD "
	sms := func(more string) string { return `{"methodId":"m1","method":"SMS","value":"123456"` + more + `}` }
	push := func(more string) string { return `{"methodId":"m4","method":"PUSH_OTP","value":"DENIED"` + more + `}` }
	both := `,"challengeId":"c1","deviceId":"d1"`
	pAuth, signed := []string{"p-auth", "c1"}, []string{"device-signature", "d1"}
	for _, c := range []struct {
		body    string
		headers []string
		want    string
	}{
		{sms(""), nil, "401 UNAUTHENTICATED"}, {push(both), nil, "401 UNAUTHENTICATED"},
		{sms(both), signed, "401 UNAUTHENTICATED"},
		{push(`,"deviceId":"d1"`), signed, invalid + "challengeId"},
		{push(`,"challengeId":"c1"`), signed, invalid + "deviceId"},
		{sms(`,"challengeId":"c2"`), pAuth, invalid + "challengeId"},
		{strings.Replace(sms(""), "SMS", "sms", 1), pAuth, invalid + "method"},
		{strings.Replace(sms(""), `"123456"`, "123456", 1), pAuth, invalid + "value"},
		{`{}`, pAuth, invalid + "methodId method value"},
	} {
		s.wants(t, line, c.body, c.want, c.headers...)
	}
	storetest.Equal(t, s.answer.MethodID, "", "a refused answer was judged")
	by := func(proof string) device.Request {
		return device.Request{Proof: proof, Method: "POST", Target: "/auth/2fa/challenge/complete", HasBody: true}
	}
	for _, c := range []struct {
		body    string
		headers []string
		want    stepup.Answer
	}{
		{sms(`,"challengeId":"c1","remember":true`), append(pAuth, "webauthn-assertion", "e30"),
			stepup.Answer{ChallengeID: "c1", MethodID: "m1", Method: challenge.SMS, Value: "123456", Remember: true,
				Signed: by("")}},
		{push(both), signed, stepup.Answer{ChallengeID: "c1", MethodID: "m4", Method: challenge.PUSH, Value: "DENIED",
			DeviceID: "d1", Signed: by("d1")}},
		{push(""), append(pAuth, "webauthn-assertion", "e30"), stepup.Answer{ChallengeID: "c1", MethodID: "m4",
			Method: challenge.PUSH, Value: "DENIED", Signed: by(""), Assertion: []byte("{}")}},
		{push(""), append(pAuth, "webauthn-assertion", "?"), stepup.Answer{ChallengeID: "c1", MethodID: "m4",
			Method: challenge.PUSH, Value: "DENIED", Signed: by(""), Assertion: []byte{}}},
	} {
		s.done = stepup.Completion{Action: "LOGIN"}
		s.wants(t, line, c.body, `{"action":"LOGIN"}`, c.headers...)
		if s.answer.By.IP != "0.0.0.0" || s.answer.Signed.BodyHash == [32]byte{} {
			t.Errorf("%+v", s.answer)
		}
		s.answer.By, s.answer.Signed.BodyHash = audit.By{}, [32]byte{}
		storetest.Same(t, s.answer, c.want)
	}
	s.done = stepup.Completion{Action: "LOGIN", ChallengeID: "c1", Final: true, Result: &challenge.Result{Success: true,
		Data: json.RawMessage(`{"sessionKey":"s1"}`), Headers: map[string]string{"x-auth": "the x-auth"}}}
	final := func(outcome string) string {
		return `{"action":"LOGIN","execResult":{` + outcome + `},"challengeId":"c1"}`
	}
	s.wants(t, line, sms(""), final(`"success":true,"data":{"sessionKey":"s1"}`)+"the x-auth", pAuth...)
	s.wants(t, line, push(both), final(`"success":true`), signed...)
	s.wants(t, "GET /auth/2fa/challenge/result", "", `{"action":"LOGIN","challengeId":"c1","execResult":{"success":true,`+
		`"data":{"sessionKey":"s1"}}}the x-auth`, append(pAuth, "prefer", "wait=3")...)
	storetest.Equal(t, s.asked, "c1 3s", "asked")
	s.done.Result = &challenge.Result{Code: fault.Forbidden, Message: "no"}
	s.wants(t, line, sms(""), final(`"success":false,"code":"FORBIDDEN","message":"no"`), pAuth...)
	s.wants(t, line, push(both), final(`"success":false`), signed...)
}

// A renewal shows the open methods with the time that is left, a start all of them with their lifetimes (D-2FA-22, 23).
func TestShapesOfChallenges(t *testing.T) {
	s := newChallenges(t, nil)
	shown := func(status, more, methods string) string {
		return `{"challenge":{"challengeId":"c1","ts":1000,"status":"` + status + `","expire":600,"methodList":[` +
			methods + `]` + more
	}
	for end, left := range map[int64]string{601_000: "120", 129_900: "119"} { // of the challenge
		s.c.ExpiresAt = end
		s.wants(t, "POST /auth/2fa/challenge/renew", `{"methodId":"m1","method":"SMS"}`, strings.Replace(shown("PENDING",
			"}}", `{"id":"m1","name":"SMS","expire":`+left+`,"renewStart":61,"hint":"+90"},{"id":"m2","name":"MAIL",`+
				`"expire":0,"renewStart":0},{"id":"m4","name":"PUSH","expire":`+left+`,"renewStart":0,"matchNumber":"42"}`),
			"600", strconv.FormatInt(end/1000-1, 10), 1), "p-auth", "c1")
		storetest.Equal(t, s.asked, "c1 m1 SMS", "asked")
	}
	s.c.ExpiresAt = 601_000
	s.wants(t, "POST /auth/2fa/challenge/renew", `{"methodId":"m1","method":"FAX"}`, "400 INVALID_FIELD method",
		"p-auth", "c1")

	const line = "POST /auth/2fa/challenge/start"
	all := `{"id":"m1","name":"SMS","expire":120,"renewStart":61,"hint":"+90"},{"id":"m2","name":"MAIL","expire":1,` +
		`"renewStart":0},{"id":"m3","name":"TOTP","expire":600,"renewStart":0%s},` +
		`{"id":"m4","name":"PUSH","expire":600,"renewStart":0,"matchNumber":"42"}`
	s.Gets(line, `{"actionCode":"LOGIN"}`, "400 INVALID_FIELD actionCode")
	s.Wants(line, `{"actionCode":"VERIFY_EMAIL"}`, 200, shown("PENDING", `,"rememberDays":30}}`, fmt.Sprintf(all, "")))
	storetest.Equal(t, s.asked, "admin VERIFY_EMAIL {}", "asked")
	s.c.Methods[2].Remembered, s.c.State, s.done.Result = "r1", challenge.Done, &challenge.Result{Success: true}
	res, answer := s.Send(line, `{"actionCode":"DURING_VIDEO_KYC"}`)
	if want := shown("COMPLETED", `},"execResult":{"success":true}}`, fmt.Sprintf(all, `,"completed":true`)); answer !=
		want || res.Header.Get("p-auth") != "the p-auth" {
		t.Errorf("%s %v, want %s", answer, res.Header, want)
	}
	s.done.Result.Headers = map[string]string{"castellan-grant": "g", "other": "o", "ot-auth": "o", "x-auth": "x"}
	storetest.Same(t, wire.Started(challenge.Started{PAuth: "p", Result: s.done.Result}).Headers, []rest.Header{
		{Name: "p-auth", Value: "p"}, {Name: "x-auth", Value: "x"}, {Name: "ot-auth", Value: "o"},
		{Name: "castellan-grant", Value: "g"}})
}

// A device lists what waits for its owner, with the intent if it asks for it (D-2FA-25).
func TestPendingPushes(t *testing.T) {
	zone := storetest.Value(time.LoadLocation("Europe/Istanbul"))(t)
	const intent = `{"v":1,"challengeId":"c1","action":"LOGIN","userId":"u1","createdAt":1,"language":"en",` +
		`"title":"Sign-in","rows":[],"commandDigest":"x"}`
	a := stepup.Approval{Challenge: challenge.Challenge{ID: "c1", Action: "LOGIN", CreatedAt: 1_700_000_000_000,
		Body: challenge.Body{IntentDigest: "the digest", Starter: challenge.Starter{IP: "192.0.2.1", Brand: "Acme",
			Model: "One", Description: "desk", Country: "TR"}}}, Method: challenge.Method{ID: "m4", Number: "42"},
		Left: 90_999 * time.Millisecond, Title: "Sign-in", Text: "Approve?", Rows: [][2]string{{"Device", "Acme One"}}}
	shown := func(date, country, more string) string {
		return `[{"body":"Approve?","data":{"challengeId":"c1","ts":1700000000000,"methodId":"m4","action":"LOGIN",` +
			`"actionTitle":"Sign-in","numberMatching":true,"params":{"ip":"192.0.2.1","deviceBrand":"Acme",` +
			`"deviceModel":"One","deviceDesc":"desk","dateTime":"` + date + `","timestamp":1700000000000,"countryName":"` +
			country + `","expire":90,"infoTable":{"metadata":{"type":"table","rows":1,"cols":2},` +
			`"data":[["Device","Acme One"]]}}}` + more + `}]`
	}
	const line, istanbul = "GET /auth/2fa/challenge/ongoing?deviceId=d1", "15.11.2023 01:13:20"
	signed := []string{"device-signature", "d1"}
	s := newChallenges(t, zone)
	s.wants(t, line, "", "[]", signed...)
	s.pending = []stepup.Approval{a}
	s.wants(t, line, "", shown(istanbul, "TR in ", ""), signed...)
	storetest.Equal(t, s.asked, "u1 ", "asked")
	s.pending[0].Document = []byte(intent)
	s.wants(t, line+"&intent=true", "", shown(istanbul, "TR in tr", `,"intent":`+intent+`,"intentDigest":"the digest"`),
		append(signed, "accept-language", "tr")...)
	storetest.Equal(t, s.asked, "u1 tr", "asked")
	s.wants(t, line, "", "401 DEVICE_SIGNATURE_INVALID", "device-signature", "d2")
	s = newChallenges(t, nil)
	a.Method.Number = ""
	s.pending = []stepup.Approval{a}
	s.wants(t, line, "", strings.Replace(shown("14.11.2023 22:13:20", "TR in ", ""), `"numberMatching":true,`, "", 1),
		signed...)
}

// The filter of the caller: its shape, and the changes that are refused before a challenge (D-GEO-03 to 05).
func TestGeofilter(t *testing.T) {
	db, u := persistencetest.SQLite(t), usertest.Sample(1)
	storetest.Must(t, db.Commit(t.Context(), u, usertest.Sample(2)))
	storetest.Must(t, db.Commit(t.Context(), user.SetCountries{UserID: u.ID, CV: u.CV, Countries: "TR"},
		geofilter.Add{Country: geofilter.Country{UserID: u.ID, Code: "TR", CreatedAt: time.UnixMilli(1000),
			UpdatedAt: time.UnixMilli(2000)}}))
	s := newStepUp(t, func(*stepUp) rest.Group {
		return httpgeofilter.Group{CDN: "https://cdn.example.com", Service: &geofilter.Service{
			Store: session.NewGeofilters(db), Users: account.NewUsers(db)}}
	})
	const path = " /user/geofilter/countries"
	want := func(language string) string {
		return `[{"id":1,"userId":"` + u.ID + `","countryCode":"TR","countryName":"` + geo.Name("TR", language) +
			`","createDateTimeStamp":1000,"updateDateTimeStamp":2000,"flagImage":"https://cdn.example.com/flags/TR.svg",` +
			`"iosFlagImage":"https://cdn.example.com/flags/TR.ios.png",` +
			`"pngFlagImage":"https://cdn.example.com/flags/TR.png"}]`
	}
	s.As(usertest.Sample(2).ID).Wants("GET"+path, "", 200, "[]")
	own := s.As(u.ID)
	own.Wants("GET"+path, "", 200, want("tr")) // the language of the user
	if _, answer := own.Send("GET"+path, "", "accept-language", "ar"); answer != want("ar") {
		t.Errorf("in Arabic: %s", answer)
	}
	for _, c := range []struct{ line, body, want, asked string }{
		{"POST" + path, ``, "400 INVALID_FIELD countryCode", ""},
		{"POST" + path, `{"countryCode":90}`, "400 INVALID_FIELD countryCode", ""},
		{"DELETE" + path, `{"countryCode":"XX"}`, "400 INVALID_FIELD countryCode", ""},
		{"POST" + path, `{"countryCode":"tr"}`, "409 RECORD_ALREADY_EXIST", ""},
		{"DELETE" + path + "?countryCode=DE", "", "404 RECORD_NOT_FOUND", ""},
		{"POST" + path, `{"countryCode":"de"}`, "200", `GEOFILTER_ADD {"c":"DE"}`},
		{"DELETE" + path + "?countryCode=tr", "", "200", `GEOFILTER_REMOVE {"c":"TR"}`},
	} {
		s.asked = ""
		own.Gets(c.line, c.body, c.want)
		storetest.Equal(t, strings.TrimPrefix(s.asked, u.ID+" "), c.asked, c.line, c.body, "started")
	}
}

// A caller lists the own remembered browsers and ends one or all of them (D-AUTH-17).
func TestRememberedBrowsers(t *testing.T) {
	db, u, now := persistencetest.SQLite(t), usertest.Sample(1), time.UnixMilli(1_700_000_000_000).UTC()
	storetest.Must(t, db.Commit(t.Context(), u, usertest.Sample(2)))
	for i, key := range []string{"k0", "k1", "k2"} {
		storetest.Must(t, db.Commit(t.Context(), remembered.Add{Client: remembered.Client{ID: fmt.Sprint("r", i),
			UserID: u.ID, Thumbprint: key, Action: mfa.Login, Method: challenge.SMS, CV: u.CV,
			CreatedAt: now.Add(-time.Hour), LastUsedAt: now.Add(-time.Minute), ExpiresAt: now.Add(time.Hour),
			IP: "192.0.2.1", Description: "Firefox"}}))
	}
	catalog := mfa.NewCatalog(mfa.SeedMethods(), mfa.SeedActions(), []mfa.Policy{{ID: 1, ActionCode: mfa.Login, Name: "p",
		EntityType: mfa.General, Type: mfa.Common, Required: 1, Methods: []mfa.Choice{{Code: "SMS"}}, RememberDays: 30}})
	s := newStepUp(t, func(*stepUp) rest.Group {
		return httpremembered.Group{Service: &remembered.Service{Store: factor.NewRemembered(db), Commit: db,
			Now: func() time.Time { return now }, Catalog: func() *mfa.Catalog { return catalog }}}
	})
	const path = " /auth/remembered"
	shown := func(id string, current bool) string {
		return fmt.Sprintf(`{"id":%q,"actionCode":"LOGIN","method":"SMS","createdAt":"2023-11-14T21:13:20.000Z",`+
			`"lastUsedAt":"2023-11-14T22:12:20.000Z","expiresAt":"2023-11-14T23:13:20.000Z","ip":"192.0.2.1",`+
			`"deviceDesc":"Firefox","current":%t}`, id, current)
	}
	own, other := s.As(u.ID), s.As(usertest.Sample(2).ID)
	own.Wants("GET"+path, "", 200, "["+shown("r2", false)+","+shown("r1", true)+","+shown("r0", false)+"]")
	for _, body := range []string{`{}`, `{"all":false}`, `{"all":true,"id":"r0"}`} {
		own.Wants("DELETE"+path, body, 400, "INVALID_FIELD id")
	}
	other.Wants("DELETE"+path, `{"id":"r0"}`, 404, "RECORD_NOT_FOUND")
	own.Wants("DELETE"+path, `{"id":"r0"}`, 200, `{"data":{"ended":1}}`)
	own.Wants("DELETE"+path, `{"id":"r0"}`, 404, "RECORD_NOT_FOUND")
	other.Wants("DELETE"+path, `{"all":true}`, 200, `{"data":{"ended":0}}`)
	own.Wants("DELETE"+path, `{"all":true}`, 200, `{"data":{"ended":2}}`)
	own.Wants("GET"+path, "", 200, "[]")
}
