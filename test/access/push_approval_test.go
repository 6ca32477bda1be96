package access

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"castellan/domain/proof/device"
	"castellan/internal/blackbox"
)

// The answers to a push and the device's response (REQ-2FA-10, 13, 14, 15, 18, D-2FA-06, 07, 09, 18,
// D-AUTH-06).
func TestPushApprovalAndDenial(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := blackbox.Patient(s).Start()
		demo := s.Seeded("user")
		x, _ := n.Session(t, demo)
		p, q := blackbox.Enroll(t, n, demo, x, device.ES256, ""), blackbox.Enroll(t, n, demo, x, device.EdDSA, "")

		// A device approves without a token. Its answer contains the success and nothing else.
		f := n.Login(t, demo)
		socket := n.Socket(t, f)
		if m := f.Method(t, "PUSH"); m.Hint != "" || m.RenewStart != 0 || m.Expire != 120 {
			t.Errorf("%+v", m)
		}
		got := p.Answer(t, f, "APPROVED").Is(t, 200, "").Keys(t, "action", "execResult", "challengeId")
		if text := string(got.Body); !strings.Contains(text, `"execResult":{"success":true}`) ||
			strings.Contains(text, "sessionKey") ||
			got.Header.Get("x-auth")+got.Header.Get("ot-auth") != "" {
			t.Errorf("the device gets %s, headers %v", got, got.Header)
		}
		var done struct{ MethodID, Method string }
		if err := json.Unmarshal(socket.Expect(f, "LOGIN", "METHOD_COMPLETE"), &done); err != nil || done.Method != "PUSH" ||
			done.MethodID != f.Method(t, "PUSH").ID {
			t.Errorf("on the socket %+v, %v", done, err)
		}
		result := n.Result(t, f).Is(t, 200, "")
		if blackbox.ReadFinal(t, result).ExecResult.Data["sessionKey"] == "" || result.Header.Get("x-auth") == "" {
			t.Errorf("the starter gets %s", result)
		}
		// A repeat and the other device's answer get the stored answer; another value does not.
		for _, again := range []blackbox.Answer{p.Answer(t, f, "APPROVED"), q.Answer(t, f, "APPROVED")} {
			if again.Is(t, 200, ""); string(again.Body) != string(got.Body) {
				t.Errorf("the repeat answers %s, not %s", again, got)
			}
		}
		q.Answer(t, f, "DENIED").Is(t, 409, "METHOD_ALREADY_COMPLETED")

		// A request that also carries the starter's token gets the starter's answer.
		f = n.Login(t, demo)
		body, h := q.Decision(t, f, "APPROVED")
		h["p-auth"] = f.PAuth
		with := n.Do(t, "POST", blackbox.CompletePath, body, h).Is(t, 200, "")
		if blackbox.ReadFinal(t, with).ExecResult.Data["sessionKey"] == "" || with.Header.Get("x-auth") == "" {
			t.Errorf("the starter gets %s", with)
		}

		// The literal header of the interface works as well.
		f = n.Login(t, demo)
		body, h = p.Decision(t, f, "APPROVED")
		if resp := n.Raw(t, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: "+
			"application/json\r\ndevice_signature: %s\r\nContent-Length: %d\r\n\r\n%s",
			blackbox.CompletePath, h["device-signature"], len(body), body)); !strings.HasPrefix(
			resp,
			"HTTP/1.1 200",
		) {
			t.Errorf("device_signature: %s", resp)
		}

		// A denial ends the challenge: the action is not executed and no token is issued.
		f = n.Login(t, demo)
		socket = n.Socket(t, f)
		sessions := s.Count("session")
		got = p.Answer(t, f, "DENIED").Is(t, 200, "").Keys(t, "action", "execResult", "challengeId")
		if !strings.Contains(string(got.Body), `"execResult":{"success":false}`) {
			t.Errorf("the denial answers %s", got)
		}
		if data := string(socket.Expect(f, "LOGIN", "ACTION_COMPLETE")); !strings.Contains(data, `"success":false`) {
			t.Errorf("on the socket %s", data)
		}
		if r := n.Result(t, f).Is(t, 200, ""); blackbox.ReadFinal(t, r).ExecResult.Success || r.Header.Get("x-auth") != "" ||
			s.Count("session") != sessions {
			t.Errorf("after the denial: %s", r)
		}
		n.Complete(t, f, f.Method(t, "SMS"), n.Code(t, demo, "SMS")).Is(t, 409, "CHALLENGE_CLOSED")
		q.Answer(t, f, "APPROVED").Is(t, 409, "CHALLENGE_CLOSED")
		blackbox.SameOutcome(t, got, p.Answer(t, f, "DENIED"))
		if s.Count("audit WHERE target = $1 AND outcome = 'refused' AND detail = 'denied'", f.ChallengeID) != 1 {
			t.Error("the denial is not in the audit")
		}

		// One hundred copies at once have one effect.
		f = n.Login(t, demo)
		sessions = s.Count("session")
		body, h = p.Decision(t, f, "APPROVED")
		for _, a := range blackbox.Crowd(t, 100, func(int) (blackbox.Answer, error) {
			return n.Try("POST", blackbox.CompletePath, body, h)
		}) {
			if a.Status != 200 && a.Code() != "METHOD_ALREADY_COMPLETED" {
				t.Errorf("%s", a)
			}
		}
		if made := s.Count("session") - sessions; made != 1 {
			t.Errorf("%d sessions", made)
		}

		// The push counts as one of two required methods.
		who := blackbox.Admin(t, s, n)
		blackbox.Policy(t, n, who, "LOGIN", 2, `[["PUSH"],["SMS"]]`, `,"force":true`)
		f = n.Login(t, demo)
		p.Answer(t, f, "APPROVED").Is(t, 200, "").Keys(t, "action")
		q.Answer(t, f, "APPROVED").Is(t, 409, "METHOD_ALREADY_COMPLETED")
		if all := q.List(t); len(all) != 0 {
			t.Errorf("the other device is still asked: %+v", all)
		}
		n.Complete(t, f, f.Method(t, "SMS"), n.Code(t, demo, "SMS")).Is(t, 200, "")
	})
}

// Answers that do not approve (SEC-15). The one refusal does not reveal the error.
func TestInvalidPushAnswersAreRefused(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := blackbox.Patient(s).Start()
		demo, boss := s.Seeded("user"), s.Seeded("admin")
		x, _ := n.Session(t, demo)
		y, _ := n.Session(t, boss)
		p, foreign := blackbox.Enroll(t, n, demo, x, device.ES256, ""), blackbox.Enroll(t, n, boss, y, device.ES256, "")
		f, other := n.Login(t, demo), n.Login(t, demo)
		m := f.Method(t, "PUSH")

		// Requests with p-auth alone, without any proof, and with methods that are not a push.
		n.Complete(t, f, m, "APPROVED").Is(t, 401, "DEVICE_SIGNATURE_REQUIRED")
		body, h := p.Decision(t, f, "APPROVED")
		n.Do(t, "POST", blackbox.CompletePath, body, nil).Is(t, 401, "UNAUTHENTICATED")
		code := fmt.Sprintf(
			`{"challengeId":%q,"methodId":%q,"method":"SMS","value":%q,"deviceId":%q}`,
			f.ChallengeID,
			f.Method(t, "SMS").ID,
			n.Code(t, demo, "SMS"),
			p.ID,
		)
		n.Do(t, "POST", blackbox.CompletePath, code,
			p.Sign(t, "POST", blackbox.CompletePath, []byte(code), device.Claims{Challenge: f.ChallengeID})).
			Is(t, 401, "UNAUTHENTICATED")
		for _, without := range []string{"challengeId", "deviceId"} {
			var fields map[string]string
			json.Unmarshal(body, &fields)
			delete(fields, without)
			n.Do(t, "POST", blackbox.CompletePath, fields, h).Is(t, 400, "INVALID_FIELD")
		}
		// An invalid decision is refused before any proof is checked.
		for _, value := range []string{"approved", "APPROVED:42"} {
			wrong, _ := p.Decision(t, f, value)
			n.Do(t, "POST", blackbox.CompletePath, wrong, blackbox.Headers{"device-signature": "nonsense"}).
				Is(t, 400, "INVALID_FIELD")
			p.Answer(t, f, value).Is(t, 400, "INVALID_FIELD")
		}

		replayed := func(edit func(fields map[string]string)) blackbox.Answer {
			var fields map[string]string
			json.Unmarshal(body, &fields)
			edit(fields)
			return n.Do(t, "POST", blackbox.CompletePath, fields, h)
		}
		impostor := foreign
		impostor.ID = p.ID
		unknown := p
		unknown.ID = "01JD0000000000000000000000"
		elsewhere, hElsewhere := p.Decision(t, f, "APPROVED")
		for name, got := range map[string]blackbox.Answer{
			"a flipped decision": replayed(func(m map[string]string) { m["value"] = "DENIED" }),
			"another challenge": replayed(func(m map[string]string) {
				m["challengeId"], m["methodId"] = other.ChallengeID, other.Method(t, "PUSH").ID
			}),
			"another challenge's c": p.Answer(t, f, "APPROVED", func(c *device.Claims) { c.Challenge = other.ChallengeID }),
			"another user's device": foreign.Answer(t, f, "APPROVED"),
			"an unknown device":     unknown.Answer(t, f, "APPROVED"),
			"a query":               n.Do(t, "POST", blackbox.CompletePath+"?x=1", elsewhere, hElsewhere),
			"nonsense":              n.Do(t, "POST", blackbox.CompletePath, body, blackbox.Headers{"device-signature": "a.b.c"}),
		} {
			if got.Status != 401 || got.Code() != "DEVICE_SIGNATURE_INVALID" || got.Header.Get("device-signature-nonce") != "" {
				t.Errorf("%s: %s", name, got)
			}
			if got.Problem().Detail != "the device signature is not valid" {
				t.Errorf("%s tells: %s", name, got)
			}
		}
		// For a stranger, a challenge that does not exist looks like one that does.
		none := f
		none.ChallengeID = "01JD0000000000000000000000"
		impostor.Answer(t, none, "APPROVED").Is(t, 401, "DEVICE_SIGNATURE_INVALID")
		p.Answer(t, none, "APPROVED").Is(t, 404, "CHALLENGE_NOT_FOUND")

		// A signature beside a code is optional, but must be valid.
		sms := f.Method(t, "SMS")
		beside := func(signer blackbox.Pocket, deviceID string) blackbox.Answer {
			body := fmt.Sprintf(`{"methodId":%q,"method":"SMS","value":%q%s}`, sms.ID,
				blackbox.WrongFor(n.Code(t, demo, "SMS")), deviceID)
			h := signer.Sign(t, "POST", blackbox.CompletePath, []byte(body),
				device.Claims{Challenge: f.ChallengeID, MethodID: sms.ID})
			h["p-auth"] = f.PAuth
			return n.Do(t, "POST", blackbox.CompletePath, body, h)
		}
		beside(foreign, `,"deviceId":"`+foreign.ID+`"`).Is(t, 401, "DEVICE_SIGNATURE_INVALID")
		beside(p, `,"deviceId":"`+p.ID+`"`).Is(t, 422, "OTP_INVALID")

		// The challenge is unchanged after all this. It accepts an approval from a clock that is years off.
		p.Answer(t, f, "APPROVED", func(c *device.Claims) { c.IssuedAt = 1 }).Is(t, 200, "")

		// A removed device cannot sign (D-AUTH-11).
		removal := n.Do(t, "DELETE", blackbox.DevicesPath, map[string]string{"deviceId": p.ID}, blackbox.Headers{"x-auth": x})
		done := p.Answer(t, blackbox.FlowOf(t, removal), "APPROVED").Is(t, 200, "") // the device removes itself
		if !strings.Contains(string(done.Body), `"success":true`) {
			t.Errorf("removal: %s", done)
		}
		p.Ongoing(t).Is(t, 401, "DEVICE_SIGNATURE_INVALID")
		if blackbox.Offered(n.Login(t, demo)) {
			t.Error("a push is offered without a device")
		}
	})
}
