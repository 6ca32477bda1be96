package main

import (
	"crypto"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/device"
	"castellan/domain/device/devicetest"
	"castellan/internal/blackbox"
)

const (
	devicesPath = "/auth/devices"
	ongoingPath = "/auth/2fa/challenge/ongoing"
)

// pocket is a registered device of an account, as an app on a phone has it.
type pocket struct {
	n   *blackbox.Node
	aud string // the service's public URL
	key crypto.Signer
	pub device.Key
	id  string
}

// sign makes the headers of a signed request; edit may change the claims before.
func (p pocket) sign(t *testing.T, method, path string, body []byte, c device.Claims, edit ...func(*device.Claims)) blackbox.Headers {
	t.Helper()
	c.Issuer, c.Audience, c.Method, c.Target, c.BodyHash = p.id, p.aud, method, path, device.HashBody(body)
	for _, e := range edit {
		e(&c)
	}
	proof, err := device.Sign(p.key, c)
	if err != nil {
		t.Fatal(err)
	}
	return blackbox.Headers{"device-signature": proof}
}

// enroll registers a device with the account behind an x-auth token.
func enroll(t *testing.T, n *blackbox.Node, a blackbox.Account, x, alg, target string) pocket {
	t.Helper()
	p := pocket{n: n, aud: n.URL}
	p.key, p.pub = devicetest.Signer(t, alg)
	p.id = p.pub.Thumbprint()
	f := blackbox.FlowOf(t, p.register(t, x, target))
	got := n.Complete(t, f, f.Method(t, "SMS"), n.Code(t, a, "SMS")).Is(t, 200, "")
	final := blackbox.ReadFinal(t, got)
	if p.id = final.ExecResult.Data["deviceId"]; final.Action != "DEVICE_ADD" || !final.ExecResult.Success || p.id == "" || len(final.ExecResult.Data) != 1 {
		t.Fatalf("the enrolment answered %s", got)
	}
	return p
}

// register sends the request of an enrolment, signed with the new key.
func (p pocket) register(t *testing.T, x, target string, edit ...func(*device.Claims)) blackbox.Answer {
	t.Helper()
	body := `{"publicKey":` + p.pub.JWK() + `,"brand":"Acme","model":"One","description":"","platform":"android"` + target + `}`
	h := p.sign(t, "POST", devicesPath, []byte(body), device.Claims{}, edit...)
	h["x-auth"] = x
	return p.n.Do(t, "POST", devicesPath, body, h)
}

// answer answers the push of a flow without any token.
func (p pocket) answer(t *testing.T, f blackbox.Flow, value string, edit ...func(*device.Claims)) blackbox.Answer {
	t.Helper()
	body, h := p.decision(t, f, value, edit...)
	return p.n.Do(t, "POST", blackbox.CompletePath, body, h)
}

func (p pocket) decision(t *testing.T, f blackbox.Flow, value string, edit ...func(*device.Claims)) ([]byte, blackbox.Headers) {
	t.Helper()
	m := f.Method(t, "PUSH")
	body, err := json.Marshal(map[string]string{"challengeId": f.ChallengeID, "methodId": m.ID, "method": "PUSH", "value": value, "deviceId": p.id})
	if err != nil {
		t.Fatal(err)
	}
	return body, p.sign(t, "POST", blackbox.CompletePath, body, device.Claims{Challenge: f.ChallengeID, MethodID: m.ID, Value: value}, edit...)
}

// ongoing asks what waits for the device.
func (p pocket) ongoing(t *testing.T, edit ...func(*device.Claims)) blackbox.Answer {
	t.Helper()
	path := ongoingPath + "?deviceId=" + p.id
	return p.n.Do(t, "GET", path, nil, p.sign(t, "GET", path, nil, device.Claims{}, edit...))
}

// waiting is a pending push approval item (section 2.1).
type waiting struct {
	Body string
	Data struct {
		ChallengeID, MethodID, Action, ActionTitle string
		TS                                         int64
		NumberMatching                             bool
		Params                                     struct {
			IP, DeviceBrand, DeviceModel, DeviceDesc, DateTime, CountryName string
			Timestamp, Expire                                               int64
			InfoTable                                                       struct {
				Metadata struct {
					Type       string
					Rows, Cols int
				}
				Data [][]string
			}
		}
	}
}

func (p pocket) list(t *testing.T) (all []waiting) {
	t.Helper()
	p.ongoing(t).Is(t, 200, "").Read(t, &all)
	return all
}

// patient lifts the bounds on pushes, for tests of something else.
func patient(s *blackbox.Site) *blackbox.Site {
	return s.Set("LIMITS_PUSH_PENDING=100", "LIMITS_PUSH_DENIALS=100", "LIMITS_IP_PER_HOUR=100000", "LIMITS_USER_PER_DAY=100000", "LIMITS_DESTINATION_PER_HOUR=50000", "LIMITS_DESTINATION_PER_DAY=50000")
}

// REQ-2FA-10, 13, 14, 15, 18, D-2FA-06, 07, 09, 18, D-AUTH-06: how a push is
// answered, and what whoever answers is told.
func TestPushIsAnswered(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		n := patient(s).Start()
		demo := s.Seeded("user")
		x, _ := n.Session(t, demo)
		p, q := enroll(t, n, demo, x, device.ES256, ""), enroll(t, n, demo, x, device.EdDSA, "")

		// A device approves without a token: it is told the success and nothing else.
		f := n.Login(t, demo)
		socket := n.Socket(t, f)
		if m := f.Method(t, "PUSH"); m.Hint != "" || m.RenewStart != 0 || m.Expire != 120 {
			t.Errorf("%+v", m)
		}
		got := p.answer(t, f, "APPROVED").Is(t, 200, "").Keys(t, "action", "execResult", "challengeId")
		if text := string(got.Body); !strings.Contains(text, `"execResult":{"success":true}`) || strings.Contains(text, "sessionKey") ||
			got.Header.Get("x-auth")+got.Header.Get("ot-auth") != "" {
			t.Errorf("the device is told %s, headers %v", got, got.Header)
		}
		var done struct{ MethodID, Method string }
		if err := json.Unmarshal(socket.Expect(f, "LOGIN", "METHOD_COMPLETE"), &done); err != nil || done.Method != "PUSH" || done.MethodID != f.Method(t, "PUSH").ID {
			t.Errorf("on the socket %+v, %v", done, err)
		}
		result := n.Result(t, f).Is(t, 200, "")
		if blackbox.ReadFinal(t, result).ExecResult.Data["sessionKey"] == "" || result.Header.Get("x-auth") == "" {
			t.Errorf("the starter gets %s", result)
		}
		// Its repeat, and the other device's, get the stored answer; another value does not.
		for _, again := range []blackbox.Answer{p.answer(t, f, "APPROVED"), q.answer(t, f, "APPROVED")} {
			if again.Is(t, 200, ""); string(again.Body) != string(got.Body) {
				t.Errorf("the repeat answers %s, not %s", again, got)
			}
		}
		q.answer(t, f, "DENIED").Is(t, 409, "METHOD_ALREADY_COMPLETED")

		// With the starter's token besides, the starter is who is answered.
		f = n.Login(t, demo)
		body, h := q.decision(t, f, "APPROVED")
		h["p-auth"] = f.PAuth
		with := n.Do(t, "POST", blackbox.CompletePath, body, h).Is(t, 200, "")
		if blackbox.ReadFinal(t, with).ExecResult.Data["sessionKey"] == "" || with.Header.Get("x-auth") == "" {
			t.Errorf("the starter gets %s", with)
		}

		// The literal header of the interface serves as well.
		f = n.Login(t, demo)
		body, h = p.decision(t, f, "APPROVED")
		if resp := n.Raw(t, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\ndevice_signature: %s\r\nContent-Length: %d\r\n\r\n%s",
			blackbox.CompletePath, h["device-signature"], len(body), body)); !strings.HasPrefix(resp, "HTTP/1.1 200") {
			t.Errorf("device_signature: %s", resp)
		}

		// A denial ends it: nothing is done, nobody gets a token.
		f = n.Login(t, demo)
		socket = n.Socket(t, f)
		sessions := s.Count("session")
		got = p.answer(t, f, "DENIED").Is(t, 200, "").Keys(t, "action", "execResult", "challengeId")
		if !strings.Contains(string(got.Body), `"execResult":{"success":false}`) {
			t.Errorf("the denial answers %s", got)
		}
		if data := string(socket.Expect(f, "LOGIN", "ACTION_COMPLETE")); !strings.Contains(data, `"success":false`) {
			t.Errorf("on the socket %s", data)
		}
		if r := n.Result(t, f).Is(t, 200, ""); blackbox.ReadFinal(t, r).ExecResult.Success || r.Header.Get("x-auth") != "" || s.Count("session") != sessions {
			t.Errorf("after the denial: %s", r)
		}
		n.Complete(t, f, f.Method(t, "SMS"), n.Code(t, demo, "SMS")).Is(t, 409, "CHALLENGE_CLOSED")
		q.answer(t, f, "APPROVED").Is(t, 409, "CHALLENGE_CLOSED")
		sameOutcome(t, got, p.answer(t, f, "DENIED"))
		if s.Count("audit WHERE target = $1 AND outcome = 'refused' AND detail = 'denied'", f.ChallengeID) != 1 {
			t.Error("the denial is not in the audit")
		}

		// Hundred copies at once have one effect.
		f = n.Login(t, demo)
		sessions = s.Count("session")
		body, h = p.decision(t, f, "APPROVED")
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if a, err := n.Try("POST", blackbox.CompletePath, body, h); err != nil || a.Status != 200 && a.Code() != "METHOD_ALREADY_COMPLETED" {
					t.Errorf("%s, %v", a, err)
				}
			})
		}
		wg.Wait()
		if made := s.Count("session") - sessions; made != 1 {
			t.Errorf("%d sessions", made)
		}

		// Of two required methods the push is one.
		who := admin(t, s, n)
		twoOf(t, n, who, `["PUSH"],["SMS"]`)
		f = n.Login(t, demo)
		p.answer(t, f, "APPROVED").Is(t, 200, "").Keys(t, "action")
		q.answer(t, f, "APPROVED").Is(t, 409, "METHOD_ALREADY_COMPLETED")
		if all := q.list(t); len(all) != 0 {
			t.Errorf("the other device is still asked: %+v", all)
		}
		n.Complete(t, f, f.Method(t, "SMS"), n.Code(t, demo, "SMS")).Is(t, 200, "")
	})
}

// twoOf makes LOGIN ask for two methods.
func twoOf(t *testing.T, n *blackbox.Node, who blackbox.Headers, methods string) {
	t.Helper()
	n.Ok(t, "POST", "/admin/system/mfa/policies/common", `{"actionCode":"LOGIN","name":"two","expireAt":0,"required":2,"methods":[`+methods+`]}`, who)
}

// SEC-15: what does not approve. The one refusal says nothing of the fault.
func TestPushIsRefused(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		n := patient(s).Start()
		demo, boss := s.Seeded("user"), s.Seeded("admin")
		x, _ := n.Session(t, demo)
		y, _ := n.Session(t, boss)
		p, foreign := enroll(t, n, demo, x, device.ES256, ""), enroll(t, n, boss, y, device.ES256, "")
		f, other := n.Login(t, demo), n.Login(t, demo)
		m := f.Method(t, "PUSH")

		// p-auth alone, nothing at all, and methods that are not a push.
		n.Complete(t, f, m, "APPROVED").Is(t, 401, "DEVICE_SIGNATURE_REQUIRED")
		body, h := p.decision(t, f, "APPROVED")
		n.Do(t, "POST", blackbox.CompletePath, body, nil).Is(t, 401, "UNAUTHENTICATED")
		code := fmt.Sprintf(`{"challengeId":%q,"methodId":%q,"method":"SMS","value":%q,"deviceId":%q}`, f.ChallengeID, f.Method(t, "SMS").ID, n.Code(t, demo, "SMS"), p.id)
		n.Do(t, "POST", blackbox.CompletePath, code, p.sign(t, "POST", blackbox.CompletePath, []byte(code), device.Claims{Challenge: f.ChallengeID})).Is(t, 401, "UNAUTHENTICATED")
		for _, without := range []string{"challengeId", "deviceId"} {
			var fields map[string]string
			json.Unmarshal(body, &fields)
			delete(fields, without)
			n.Do(t, "POST", blackbox.CompletePath, fields, h).Is(t, 400, "INVALID_FIELD")
		}
		// A value that is no decision comes before any proof.
		for _, value := range []string{"approved", "Denied", " APPROVED", "APPROVED ", "yes", "APPROVED:42", "APPROVED:4", "DENIED:42"} {
			wrong, _ := p.decision(t, f, value)
			n.Do(t, "POST", blackbox.CompletePath, wrong, blackbox.Headers{"device-signature": "nonsense"}).Is(t, 400, "INVALID_FIELD")
			p.answer(t, f, value).Is(t, 400, "INVALID_FIELD")
		}

		replayed := func(edit func(fields map[string]string)) blackbox.Answer {
			var fields map[string]string
			json.Unmarshal(body, &fields)
			edit(fields)
			return n.Do(t, "POST", blackbox.CompletePath, fields, h)
		}
		alg := func(name string) blackbox.Answer {
			parts := strings.Split(h["device-signature"], ".")
			parts[0] = base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"` + name + `","typ":"device-signature+jwt","kid":"` + p.id + `"}`))
			return n.Do(t, "POST", blackbox.CompletePath, body, blackbox.Headers{"device-signature": strings.Join(parts, ".")})
		}
		impostor := foreign
		impostor.id = p.id
		unknown := p
		unknown.id = "01JD0000000000000000000000"
		elsewhere, hElsewhere := p.decision(t, f, "APPROVED")
		for name, got := range map[string]blackbox.Answer{
			"a flipped decision": replayed(func(m map[string]string) { m["value"] = "DENIED" }),
			"another challenge": replayed(func(m map[string]string) {
				m["challengeId"], m["methodId"] = other.ChallengeID, other.Method(t, "PUSH").ID
			}),
			"another challenge's c": p.answer(t, f, "APPROVED", func(c *device.Claims) { c.Challenge = other.ChallengeID }),
			"another method":        p.answer(t, f, "APPROVED", func(c *device.Claims) { c.MethodID = f.Method(t, "SMS").ID }),
			"another device's name": replayed(func(m map[string]string) { m["deviceId"] = foreign.id }),
			"another user's device": foreign.answer(t, f, "APPROVED"),
			"another's key":         impostor.answer(t, f, "APPROVED"),
			"an unknown device":     unknown.answer(t, f, "APPROVED"),
			"another path":          p.answer(t, f, "APPROVED", func(c *device.Claims) { c.Target = "/auth/2fa/challenge/renew" }),
			"a query":               n.Do(t, "POST", blackbox.CompletePath+"?x=1", elsewhere, hElsewhere),
			"another HTTP method":   p.answer(t, f, "APPROVED", func(c *device.Claims) { c.Method = "PUT" }),
			"another body":          p.answer(t, f, "APPROVED", func(c *device.Claims) { c.BodyHash = device.HashBody([]byte("{}")) }),
			"no hash of the body":   p.answer(t, f, "APPROVED", func(c *device.Claims) { c.BodyHash = "" }),
			"another service":       p.answer(t, f, "APPROVED", func(c *device.Claims) { c.Audience = "https://other.example" }),
			"alg none":              alg("none"),
			"alg EdDSA":             alg("EdDSA"),
			"alg HS256":             alg("HS256"),
			"nonsense":              n.Do(t, "POST", blackbox.CompletePath, body, blackbox.Headers{"device-signature": "a.b.c"}),
		} {
			if got.Status != 401 || got.Code() != "DEVICE_SIGNATURE_INVALID" || got.Header.Get("device-signature-nonce") != "" {
				t.Errorf("%s: %s", name, got)
			}
			if got.Problem().Detail != "the device signature is not valid" {
				t.Errorf("%s tells: %s", name, got)
			}
		}
		// A challenge that nobody has is no more to a stranger than one that somebody has.
		none := f
		none.ChallengeID = "01JD0000000000000000000000"
		impostor.answer(t, none, "APPROVED").Is(t, 401, "DEVICE_SIGNATURE_INVALID")
		p.answer(t, none, "APPROVED").Is(t, 404, "CHALLENGE_NOT_FOUND")

		// A signature beside a code is not needed, but it must not be false.
		withCode := func(signer pocket, deviceID string) blackbox.Answer {
			sms := f.Method(t, "SMS")
			body := fmt.Sprintf(`{"methodId":%q,"method":"SMS","value":%q%s}`, sms.ID, blackbox.WrongFor(n.Code(t, demo, "SMS")), deviceID)
			h := signer.sign(t, "POST", blackbox.CompletePath, []byte(body), device.Claims{Challenge: f.ChallengeID, MethodID: sms.ID})
			h["p-auth"] = f.PAuth
			return n.Do(t, "POST", blackbox.CompletePath, body, h)
		}
		withCode(foreign, `,"deviceId":"`+foreign.id+`"`).Is(t, 401, "DEVICE_SIGNATURE_INVALID")
		withCode(foreign, "").Is(t, 422, "OTP_INVALID")
		withCode(p, `,"deviceId":"`+p.id+`"`).Is(t, 422, "OTP_INVALID")

		// After all this the challenge is as it was, also for a clock that is years off.
		p.answer(t, f, "APPROVED", func(c *device.Claims) { c.IssuedAt = 1 }).Is(t, 200, "")

		// Devices are changed: what was begun before is closed, and a removed device
		// signs nothing (D-AUTH-11).
		f = n.Login(t, demo)
		me := blackbox.Headers{"x-auth": x}
		n.Do(t, "DELETE", devicesPath, map[string]string{"deviceId": foreign.id}, me).Is(t, 404, "RECORD_NOT_FOUND")
		removal := blackbox.FlowOf(t, n.Do(t, "DELETE", devicesPath, map[string]string{"deviceId": p.id}, me))
		if done := p.answer(t, removal, "APPROVED").Is(t, 200, ""); !strings.Contains(string(done.Body), `"success":true`) { // its own removal
			t.Errorf("removal: %s", done)
		}
		p.answer(t, f, "APPROVED").Is(t, 401, "DEVICE_SIGNATURE_INVALID")
		n.Complete(t, f, f.Method(t, "SMS"), n.Code(t, demo, "SMS")).Is(t, 409, "CHALLENGE_CLOSED")
		p.ongoing(t).Is(t, 401, "DEVICE_SIGNATURE_INVALID")
		for _, m := range n.Login(t, demo).MethodList {
			if m.Name == "PUSH" {
				t.Error("a push is offered to nobody's device")
			}
		}

		// SEC-04: who was locked after the start approves nothing.
		f = n.Login(t, boss)
		s.Exec("UPDATE users SET status = 'blocked', cv = cv + 1 WHERE id = (SELECT user_id FROM device WHERE id = $1)", foreign.id)
		foreign.answer(t, f, "APPROVED").Is(t, 409, "CHALLENGE_CLOSED")
		n.Result(t, f).Is(t, 409, "CHALLENGE_CLOSED")
		if all := foreign.list(t); len(all) != 0 {
			t.Errorf("a locked account is asked: %+v", all)
		}
	})
}

// REQ-2FA-25…27, 29, D-2FA-25, SEC-17: what waits for a device.
func TestOngoing(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		n := patient(s).Set("LANGUAGE_TIME_ZONE=Europe/Istanbul").Start()
		demo, boss := s.Seeded("user"), s.Seeded("admin")
		x, _ := n.Session(t, demo)
		y, _ := n.Session(t, boss)
		p, foreign := enroll(t, n, demo, x, device.EdDSA, ""), enroll(t, n, boss, y, device.ES256, "")
		if got := string(p.ongoing(t).Is(t, 200, "").Body); got != "[]" {
			t.Errorf("nothing waits: %s", got)
		}
		from := blackbox.Headers{"device-brand": "Acme", "device-model": "Browser", "device-desc": "desk", "accept-language": "tr"}
		f := blackbox.FlowOf(t, n.Do(t, "POST", "/auth/login", blackbox.LoginBody(demo), from))
		q := pocket{n: n, aud: n.URL}
		q.key, q.pub = devicetest.Signer(t, device.ES256)
		q.id = q.pub.Thumbprint()
		add := blackbox.FlowOf(t, q.register(t, x, ""))

		got := p.ongoing(t).Is(t, 200, "")
		var items []struct {
			Body json.RawMessage
			Data map[string]json.RawMessage
		}
		got.Read(t, &items)
		if len(items) != 2 || slices.Sorted(maps.Keys(items[0].Data))[0] != "action" || len(items[0].Data) != 6 {
			t.Fatalf("%s", got)
		}
		var params map[string]json.RawMessage
		json.Unmarshal(items[1].Data["params"], &params)
		if want := []string{"countryName", "dateTime", "deviceBrand", "deviceDesc", "deviceModel", "expire", "infoTable", "ip", "timestamp"}; !slices.Equal(slices.Sorted(maps.Keys(params)), want) {
			t.Errorf("params %v", slices.Sorted(maps.Keys(params)))
		}
		all := p.list(t) // newest first
		login := all[1].Data
		if all[0].Data.ChallengeID != add.ChallengeID || all[0].Data.Action != "DEVICE_ADD" || login.ChallengeID != f.ChallengeID || login.Action != "LOGIN" ||
			login.TS != f.TS || login.MethodID != f.Method(t, "PUSH").ID || login.ActionTitle != "Sign-in" || all[1].Body != "Do you approve: Sign-in" || login.NumberMatching {
			t.Errorf("%+v", all)
		}
		zone, err := time.LoadLocation("Europe/Istanbul")
		if err != nil {
			t.Fatal(err)
		}
		w := login.Params
		if w.IP != "127.0.0.1" || w.DeviceBrand != "Acme" || w.DeviceModel != "Browser" || w.DeviceDesc != "desk" || w.Timestamp != f.TS || w.CountryName != "" ||
			w.DateTime != time.UnixMilli(f.TS).In(zone).Format("02.01.2006 15:04:05") || w.Expire > 120 || w.Expire < 60 {
			t.Errorf("%+v", w)
		}
		for i, rows := range [][][]string{
			{{"Account device", "Acme One"}, {"IP address", "127.0.0.1"}},
			{{"Device", "Acme Browser"}, {"IP address", "127.0.0.1"}},
		} {
			table := all[i].Data.Params.InfoTable
			kept := slices.DeleteFunc(table.Data, func(r []string) bool { return i == 0 && r[0] == "Device" }) // of Go's client
			if fmt.Sprint(kept) != fmt.Sprint(rows) || table.Metadata.Type != "table" || table.Metadata.Cols != 2 || table.Metadata.Rows < len(rows) {
				t.Errorf("table %+v, want %v", table, rows)
			}
		}
		path := ongoingPath + "?deviceId=" + p.id + "&_requesterLanguage=tr"
		if tr := string(n.Ok(t, "GET", path, nil, p.sign(t, "GET", path, nil, device.Claims{})).Body); !strings.Contains(tr, "Onaylıyor musunuz: Giriş") || !strings.Contains(tr, `["Cihaz","Acme Browser"]`) {
			t.Errorf("in Turkish: %s", tr)
		}
		if others := foreign.list(t); len(others) != 0 {
			t.Errorf("another user's device sees %+v", others)
		}

		// Every fault is one refusal; only age has a way out.
		unknown, impostor := p, foreign
		unknown.id, impostor.id = "01JD0000000000000000000000", p.id
		other := ongoingPath + "?deviceId=" + foreign.id
		refused := p.ongoing(t, func(c *device.Claims) { c.Target += "x" }).Is(t, 401, "DEVICE_SIGNATURE_INVALID")
		for name, got := range map[string]blackbox.Answer{
			"an unknown device": unknown.ongoing(t), "another's key": impostor.ongoing(t), "another's name": n.Do(t, "GET", other, nil, p.sign(t, "GET", other, nil, device.Claims{})),
		} {
			same := strings.ReplaceAll(string(got.Body), got.Header.Get("x-request-id"), refused.Header.Get("x-request-id"))
			if got.Status != 401 || same != string(refused.Body) || got.Header.Get("device-signature-nonce") != "" {
				t.Errorf("%s: %s", name, got)
			}
		}
		n.Do(t, "GET", ongoingPath+"?deviceId="+p.id, nil, nil).Is(t, 401, "DEVICE_SIGNATURE_REQUIRED")
		n.Do(t, "GET", ongoingPath+"?deviceId="+p.id, nil, blackbox.Headers{"x-auth": x}).Is(t, 401, "DEVICE_SIGNATURE_REQUIRED")
		n.Do(t, "GET", ongoingPath, nil, p.sign(t, "GET", ongoingPath, nil, device.Claims{})).Is(t, 400, "INVALID_FIELD")
		inBody := []byte(`{"deviceId":"` + p.id + `"}`) // D-GEN-01
		n.Do(t, "GET", ongoingPath, inBody, p.sign(t, "GET", ongoingPath, inBody, device.Claims{})).Is(t, 200, "")

		stale := func(c *device.Claims) { c.IssuedAt = time.Now().Unix() - 400 }
		nonce := p.ongoing(t, stale).Is(t, 401, "DEVICE_SIGNATURE_INVALID").Header.Get("device-signature-nonce")
		with := func(c *device.Claims) { stale(c); c.Nonce = nonce }
		p.ongoing(t, with).Is(t, 200, "")
		if again := p.ongoing(t, with).Is(t, 401, "DEVICE_SIGNATURE_INVALID"); nonce == "" || again.Header.Get("device-signature-nonce") == nonce {
			t.Errorf("nonce %q, then %q", nonce, again.Header.Get("device-signature-nonce"))
		}
		once := func(c *device.Claims) { c.ID = "once" }
		p.ongoing(t, once).Is(t, 200, "")
		p.ongoing(t, once).Is(t, 401, "DEVICE_SIGNATURE_INVALID")
		if s.Kind == "postgres" { // another node remembers too
			second := s.Start("HTTP_PUBLIC_URL=" + n.URL)
			path := ongoingPath + "?deviceId=" + p.id
			second.Do(t, "GET", path, nil, p.sign(t, "GET", path, nil, device.Claims{}, once)).Is(t, 401, "DEVICE_SIGNATURE_INVALID")
			second.Do(t, "GET", path, nil, p.sign(t, "GET", path, nil, device.Claims{})).Is(t, 200, "")
		}

		// What was answered is gone, and what expired.
		p.answer(t, f, "APPROVED").Is(t, 200, "")
		if all := p.list(t); len(all) != 1 || all[0].Data.ChallengeID != add.ChallengeID {
			t.Errorf("after the approval: %+v", all)
		}
		p.answer(t, add, "DENIED").Is(t, 200, "")
		tune(t, n, admin(t, s, n), "PUSH", 1000, 0)
		f = n.Login(t, demo)
		for len(p.list(t)) > 0 { // it waits for a second of real time
			time.Sleep(50 * time.Millisecond)
		}
		p.answer(t, f, "APPROVED").Is(t, 410, "METHOD_EXPIRED")
	})
}

// D-EXT-01: registering, listing and removing devices; D-2FA-29 and 45: nothing
// of a push target is kept in the clear, and the message says nothing.
func TestDevices(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		n := patient(s).Start()
		demo := s.Seeded("user")
		x, _ := n.Session(t, demo)
		me := blackbox.Headers{"x-auth": x}
		if got := string(n.Ok(t, "GET", devicesPath, nil, me).Body); got != "[]" {
			t.Errorf("no device: %s", got)
		}
		n.Do(t, "GET", devicesPath, nil, nil).Is(t, 401, "UNAUTHENTICATED")

		raw := pocket{n: n, aud: n.URL}
		raw.key, raw.pub = devicetest.Signer(t, device.ES256)
		raw.id = raw.pub.Thumbprint()
		raw.register(t, "", "").Is(t, 401, "UNAUTHENTICATED")
		raw.register(t, x, "", func(c *device.Claims) { c.Issuer = "x" }).Is(t, 401, "DEVICE_SIGNATURE_INVALID")
		raw.register(t, x, "", func(c *device.Claims) { c.Target = "/x" }).Is(t, 401, "DEVICE_SIGNATURE_INVALID")
		raw.register(t, x, `,"pushTarget":{"type":"smoke"}`).Is(t, 400, "INVALID_FIELD")
		n.Do(t, "POST", devicesPath, `{"publicKey":`+raw.pub.JWK()+`,"brand":"b","model":"m","description":"","platform":"p"}`, me).Is(t, 401, "DEVICE_SIGNATURE_REQUIRED")
		n.Do(t, "POST", devicesPath, `{"publicKey":{"kty":"RSA"},"brand":"b","model":"m","description":"","platform":"p"}`, me).Is(t, 400, "INVALID_FIELD")
		n.Do(t, "POST", devicesPath, `{}`, me).Is(t, 400, "INVALID_FIELD")
		late := raw.register(t, x, "", func(c *device.Claims) { c.IssuedAt = 1 }).Is(t, 401, "DEVICE_SIGNATURE_INVALID")
		raw.register(t, x, "", func(c *device.Claims) { c.IssuedAt, c.Nonce = 1, late.Header.Get("device-signature-nonce") }).Is(t, 200, "").Keys(t, "challenge")

		const hidden = "hook-of-a-thousand-secrets"
		target := `{"type":"webhook","url":"https://push.example.test/` + hidden + `"}`
		p := enroll(t, n, demo, x, device.ES256, `,"pushTarget":`+target)
		q := enroll(t, n, demo, x, device.EdDSA, "")
		p.id, raw = p.pub.Thumbprint(), p
		p.register(t, x, "").Is(t, 409, "RECORD_ALREADY_EXIST")
		var listed []map[string]any
		n.Ok(t, "GET", devicesPath, nil, me).Read(t, &listed)
		if len(listed) != 2 || listed[0]["deviceId"] != q.id || len(listed[0]) != 8 || listed[1]["brand"] != "Acme" || listed[1]["model"] != "One" || listed[1]["platform"] != "android" ||
			listed[1]["status"] != "ACTIVE" || listed[1]["lastUsedAt"] != nil || listed[1]["createdAt"] == "" || listed[1]["createdAt"] == nil {
			t.Fatalf("%v", listed)
		}
		p.id = listed[1]["deviceId"].(string)
		p.ongoing(t).Is(t, 200, "")
		n.Ok(t, "GET", devicesPath, nil, me).Read(t, &listed)
		if listed[1]["lastUsedAt"] == nil {
			t.Error("the use of the device was not noted")
		}

		// Only the device with a target is woken, once, with nothing to tell.
		f := n.Login(t, demo)
		var woken []blackbox.Letter
		for _, l := range n.Letters(t, "") {
			if l.Channel == "push" && strings.Contains(l.Body, f.ChallengeID) {
				woken = append(woken, l)
			}
		}
		if len(woken) != 1 || woken[0].To != target || woken[0].Body != fmt.Sprintf(`{"challengeId":%q,"action":"LOGIN","expire":120}`, f.ChallengeID) {
			t.Errorf("woken: %+v", woken)
		}
		if s.Count("outbox WHERE channel = 'push' AND challenge_id = $1", f.ChallengeID) != 1 {
			t.Error("the message is not in the outbox")
		}
		for place, text := range s.AtRest() {
			if strings.Contains(string(text), hidden) {
				t.Errorf("the push target is readable in %s", place)
			}
		}
		if strings.Contains(n.Log(), hidden) {
			t.Error("the push target is in the log")
		}
	})
}

// SEC-16: a fourth push does not reach somebody who has not answered three, and
// three denials are understood.
func TestPushFatigue(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		demo := s.Seeded("user")
		x, _ := n.Session(t, demo)
		p := enroll(t, n, demo, x, device.ES256, "")
		offered := func(f blackbox.Flow) bool {
			return slices.ContainsFunc(f.MethodList, func(m blackbox.Method) bool { return m.Name == "PUSH" })
		}
		var flows []blackbox.Flow
		for i := range 4 {
			f := n.Login(t, demo)
			if offered(f) != (i < 3) {
				t.Errorf("start %d: %+v", i+1, f.MethodList)
			}
			flows = append(flows, f)
		}
		n.Complete(t, flows[3], flows[3].Method(t, "SMS"), n.Code(t, demo, "SMS")).Is(t, 200, "") // without the push it is as good
		if all := p.list(t); len(all) != 3 {
			t.Errorf("%d wait", len(all))
		}
		n.Kill()
		n = s.Start("HTTP_PUBLIC_URL=" + p.n.URL) // the bound is in the rows
		if f := n.Login(t, demo); offered(f) {
			t.Error("after a restart a fourth push is offered")
		}
		p.n = n
		for _, f := range flows[:3] {
			p.answer(t, f, "DENIED").Is(t, 200, "")
		}
		if all := p.list(t); len(all) != 0 {
			t.Errorf("%d wait", len(all))
		}
		if f := n.Login(t, demo); offered(f) {
			t.Error("a push is offered after three denials")
		}
		// Where the push cannot be left out nothing is lowered: the start has to wait.
		who := admin(t, s, n)
		twoOf(t, n, who, `["PUSH"],["SMS"]`)
		if got := n.Do(t, "POST", "/auth/login", blackbox.LoginBody(demo), nil).Is(t, 429, "RATE_LIMITED"); got.Header.Get("retry-after") == "" {
			t.Errorf("%s: no Retry-After", got)
		}
		s.Exec("UPDATE challenge SET touched_at = touched_at - 3600000 WHERE state = 3") // an hour passes
		if f := n.Login(t, demo); !offered(f) {
			t.Error("no push is offered after the pause")
		}
	})
}

// SEC-16, D-2FA-08: number matching where the policy asks for it, and the other
// code of the method.
func TestNumberMatching(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		n := patient(s).Start()
		demo := s.Seeded("user")
		x, _ := n.Session(t, demo)
		p := enroll(t, n, demo, x, device.ES256, "")
		if m := n.Login(t, demo).Method(t, "PUSH"); m.MatchNumber != "" {
			t.Errorf("without being asked for: %+v", m)
		}
		who := admin(t, s, n)
		n.Ok(t, "POST", "/admin/system/mfa/methods", `{"methodCode":"PUSH_OTP","expireMs":90000,"renewStartMs":0}`, who)
		var made struct{ ID int64 }
		n.Ok(t, "POST", "/admin/system/mfa/policies/common",
			`{"actionCode":"LOGIN","name":"n","expireAt":0,"required":1,"numberMatching":true,"methods":[["PUSH_OTP"],["PUSH"],["SMS"]]}`, who).Read(t, &made)
		policies := string(n.Ok(t, "GET", "/admin/system/mfa/policies", nil, who).Body)
		if !strings.Contains(policies, `"preffered":1,"numberMatching":true}`) {
			t.Errorf("listed %s", policies)
		}

		f := n.Login(t, demo)
		m := f.Method(t, "PUSH")
		if len(f.MethodList) != 2 || m.Expire != 90 || len(m.MatchNumber) != 2 {
			t.Fatalf("%+v", f.MethodList)
		}
		if all := p.list(t); !all[0].Data.NumberMatching || strings.Contains(string(p.ongoing(t).Body), `"`+m.MatchNumber+`"`) {
			t.Errorf("the device is shown %+v", all)
		}
		right, wrong := "APPROVED:"+m.MatchNumber, "APPROVED:"+blackbox.WrongFor(m.MatchNumber)
		for i, value := range []string{"APPROVED", wrong, wrong} {
			if left := p.answer(t, f, value).Is(t, 422, "OTP_INVALID").Problem().AttemptsLeft; left == nil || *left != 4-i {
				t.Errorf("%s leaves %v", value, left)
			}
		}
		p.answer(t, f, right, func(c *device.Claims) { c.Value = wrong }).Is(t, 401, "DEVICE_SIGNATURE_INVALID")
		p.answer(t, f, right+"0").Is(t, 400, "INVALID_FIELD")
		done := p.answer(t, f, right).Is(t, 200, "")
		sameOutcome(t, done, p.answer(t, f, right))
		p.answer(t, f, wrong).Is(t, 409, "METHOD_ALREADY_COMPLETED")

		// Guessing is locked; refusing is not.
		f = n.Login(t, demo)
		wrong = "APPROVED:" + blackbox.WrongFor(f.Method(t, "PUSH").MatchNumber)
		for range 5 {
			p.answer(t, f, wrong).Is(t, 422, "OTP_INVALID")
		}
		p.answer(t, f, "APPROVED:"+f.Method(t, "PUSH").MatchNumber).Is(t, 423, "METHOD_LOCKED")
		p.answer(t, f, "DENIED").Is(t, 200, "")

		// PUSH_OTP is another name of PUSH in requests.
		n.Ok(t, "PATCH", "/admin/system/mfa/policies/common", fmt.Sprintf(`{"id":%d,"numberMatching":false}`, made.ID), who)
		if text := string(n.Ok(t, "GET", "/admin/system/mfa/policies", nil, who).Body); strings.Contains(text, "numberMatching") {
			t.Errorf("listed %s", text)
		}
		f = n.Login(t, demo)
		body := strings.Replace(func() string { b, _ := p.decision(t, f, "APPROVED"); return string(b) }(), `"method":"PUSH"`, `"method":"PUSH_OTP"`, 1)
		h := p.sign(t, "POST", blackbox.CompletePath, []byte(body), device.Claims{Challenge: f.ChallengeID, MethodID: f.Method(t, "PUSH").ID, Value: "APPROVED"})
		n.Do(t, "POST", blackbox.CompletePath, body, h).Is(t, 200, "")
	})
}

// The demo device, from its enrolment to an approval and a denial.
func TestDemoDevice(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		n := patient(s).Start()
		demo := s.Seeded("user")
		x, _ := n.Session(t, demo)
		f := blackbox.FlowOf(t, n.Do(t, "POST", "/auth/totp/setup", nil, blackbox.Headers{"x-auth": x}))
		var set totpOutcome
		n.Complete(t, f, f.Method(t, "SMS"), n.Code(t, demo, "SMS")).Is(t, 200, "").Read(t, &set)
		app := newAuthenticator(t, set.ExecResult.Data.Base32)

		file := filepath.Join(t.TempDir(), "device.json")
		run := func(code int, stdin string, args ...string) blackbox.Output {
			t.Helper()
			got := s.Command(stdin, append(append([]string{"device"}, args...), "--key", file)...)
			if got.Code != code || strings.Contains(got.Out+got.ErrOut, x) {
				t.Fatalf("device %v: exit %d, %s%s", args, got.Code, got.Out, got.ErrOut)
			}
			return got
		}
		if got := run(1, "", "ongoing"); !strings.Contains(got.ErrOut, "device enroll") {
			t.Errorf("without a device: %s", got.ErrOut)
		}
		if got := run(1, "\n", "enroll", "--server", n.URL); !strings.Contains(got.ErrOut, "token") {
			t.Errorf("without a token: %s", got.ErrOut)
		}
		run(1, "nonsense\n", "enroll", "--server", n.URL)
		run(1, x+"\n000000\n", "enroll", "--server", n.URL, "--method", "SMS")
		if _, err := os.Stat(file); err == nil {
			t.Error("an enrolment that failed left a device")
		}
		// The token by the environment, the code by a flag; then by standard input.
		for i, alg := range []string{"ES256", "EdDSA"} {
			var got blackbox.Output
			if i == 0 {
				got = s.CommandWith([]string{"DEVICE_TOKEN=" + x}, "", "device", "enroll", "--key", file, "--server", n.URL+"/", "--alg", alg, "--method", "TOTP", "--code", app.next(t))
			} else {
				got = s.Command(x+"\n"+app.next(t)+"\n", "device", "enroll", "--key", file, "--server", n.URL, "--alg", alg)
			}
			if got.Code != 0 || strings.Contains(got.Out+got.ErrOut, x) || !strings.Contains(got.Out, "registered as") {
				t.Fatalf("enroll: exit %d, %s%s", got.Code, got.Out, got.ErrOut)
			}
			st, err := os.Stat(file)
			if err != nil || st.Mode().Perm() != 0o600 {
				t.Fatalf("%v, %v", st, err)
			}
			if text, err := os.ReadFile(file); err != nil || strings.Contains(string(text), x) {
				t.Fatalf("the file holds the token, or %v", err)
			}
			if i == 0 {
				if got := run(1, x+"\n000000\n", "enroll", "--server", n.URL); !strings.Contains(got.ErrOut, "exists") {
					t.Errorf("over another device: %s", got.ErrOut)
				}
			}
			if got := run(0, "", "ongoing"); !strings.Contains(got.Out, "nothing waits") {
				t.Errorf("%s", got.Out)
			}
			run(1, "", "approve")
			f := n.Login(t, demo)
			if got := run(0, "", "ongoing"); !strings.Contains(got.Out, f.ChallengeID) || !strings.Contains(got.Out, "Sign-in") || !strings.Contains(got.Out, "IP address: 127.0.0.1") {
				t.Errorf("%s", got.Out)
			}
			if got := run(0, "", "ongoing", "--json"); !json.Valid([]byte(got.Out)) || !strings.Contains(got.Out, `"infoTable"`) {
				t.Errorf("%s", got.Out)
			}
			second := n.Login(t, demo)
			if got := run(1, "", "approve"); !strings.Contains(got.ErrOut, "2 approvals") {
				t.Errorf("%s", got.ErrOut)
			}
			if got := run(0, "", "approve", f.ChallengeID); !strings.Contains(got.Out, "Sign-in: approved, and done") {
				t.Errorf("%s", got.Out)
			}
			if n.Result(t, f).Is(t, 200, "").Header.Get("x-auth") == "" {
				t.Error("the login was not completed")
			}
			if got := run(0, "", "deny"); !strings.Contains(got.Out, "denied") {
				t.Errorf("%s", got.Out)
			}
			if blackbox.ReadFinal(t, n.Result(t, second).Is(t, 200, "")).ExecResult.Success {
				t.Error("the denied login succeeded")
			}
			if i == 0 {
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
