package access

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"castellan/domain/factor/passkey/passkeytest"
	"castellan/internal/blackbox"
)

// policy makes or changes the general policy of an action, by its JSON members.
func policy(t *testing.T, n *blackbox.Node, who blackbox.Headers, action, options string) (change func(string)) {
	t.Helper()
	id := blackbox.Policy(t, n, who, action, 1, `[["PUSH"],["SMS"]]`, `,"force":true`+options)
	return func(options string) {
		t.Helper()
		blackbox.ChangePolicy(t, n, who, id, options)
	}
}

// A passkey is registered, listed, approves a login and another action, and is removed (D-AUTH-18).
func TestPasskeyRegistrationApprovalAndRemoval(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := blackbox.Patient(s).Start()
		demo := s.Seeded("user")
		x, _ := n.Session(t, demo)
		me := blackbox.Headers{"x-auth": x}
		if got := blackbox.RequestOf(t, n.Do(t, "POST", "/auth/login", blackbox.LoginBody(demo), nil)); got != nil {
			t.Errorf("without a passkey: %s", got)
		}
		p := blackbox.EnrollPasskey(t, n, demo, x)

		var listed []map[string]any
		n.Ok(t, "GET", blackbox.DevicesPath, nil, me).Read(t, &listed)
		if len(listed) != 1 || listed[0]["deviceId"] != p.ID || listed[0]["kind"] != "PASSKEY" ||
			listed[0]["backedUp"] != true || listed[0]["description"] != "My passkey" || listed[0]["lastUsedAt"] != nil {
			t.Fatalf("%v", listed)
		}
		again := passkeytest.Read(t, blackbox.CreationOptions(t, n, x))
		if again.User.ID != p.Handle || len(again.ExcludeCredentials) != 1 ||
			again.ExcludeCredentials[0].ID != passkeytest.Encode(p.Authenticator.ID) {
			t.Errorf("a second registration: %+v", again)
		}
		p.Register(t, x).Is(t, 409, "RECORD_ALREADY_EXIST")

		started := n.Do(t, "POST", "/auth/login", blackbox.LoginBody(demo), nil).Is(t, 200, "")
		options := passkeytest.Read(t, blackbox.RequestOf(t, started))
		if len(options.AllowCredentials) != 1 || options.UserVerification != "required" || options.RPID != "localhost" {
			t.Errorf("%+v", options)
		}
		assertion := p.Get(t, blackbox.RequestOf(t, started))
		f := blackbox.FlowOf(t, started)
		done := p.Send(t, f, "APPROVED", assertion).Is(t, 200, "")
		if done.Header.Get("x-auth") == "" || !blackbox.ReadFinal(t, done).ExecResult.Success {
			t.Fatalf("%s", done)
		}
		blackbox.SameOutcome(t, done, p.Send(t, f, "APPROVED", assertion)) // the exact repeat
		n.Ok(t, "GET", blackbox.DevicesPath, nil, me).Read(t, &listed)
		if listed[0]["lastUsedAt"] == nil {
			t.Error("the use of the passkey was not noted")
		}

		// A sensitive action, with the intent required; the evidence verifies offline.
		who := blackbox.Admin(t, s, n)
		policy(t, n, who, "TOTP_SETUP", `,"intent":"required"`)
		setup := n.Do(t, "POST", "/auth/totp/setup", nil, me).Is(t, 200, "")
		p.Approve(t, setup).Is(t, 200, "")
		file := filepath.Join(t.TempDir(), "evidence.json")
		got := n.Do(t, "GET", "/admin/challenges/"+blackbox.FlowOf(t, setup).ChallengeID+"/evidence", nil, who).Is(t, 200, "")
		if err := os.WriteFile(file, got.Body, 0o600); err != nil {
			t.Fatal(err)
		}
		if out := s.Command("", "intent", "verify", file); out.Code != 0 || !strings.Contains(out.Out, p.ID) ||
			strings.Contains(out.Out, "without signing") {
			t.Errorf("exit %d: %s%s", out.Code, out.Out, out.ErrOut)
		}
		changed := strings.Replace(string(got.Body), `\"title\":\"`, `\"title\":\"x`, 1)
		if out := s.Command(changed, "intent", "verify", "-"); out.Code != 1 {
			t.Errorf("changed evidence: exit %d: %s", out.Code, out.Out)
		}

		x, _ = n.Session(t, demo)
		me = blackbox.Headers{"x-auth": x}
		remove := n.Do(t, "DELETE", blackbox.DevicesPath, map[string]string{"deviceId": p.ID}, me).Is(t, 200, "")
		p.Approve(t, remove).Is(t, 200, "")
		if got := string(n.Ok(t, "GET", blackbox.DevicesPath, nil, me).Body); got != "[]" {
			t.Errorf("after the removal: %s", got)
		}
		if got := n.Do(t, "POST", "/auth/login", blackbox.LoginBody(demo), nil).Is(t, 200, ""); bytes.Contains(got.Body,
			[]byte("PUSH")) {
			t.Errorf("after the removal: %s", got)
		}
		p.LogIn(t).Is(t, 401, "INVALID_CREDENTIALS")
	})
}

// A login by a passkey needs a second factor, or none with passkeyAlone. phishingResistant accepts nothing else.
func TestPasskeyPolicies(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := blackbox.Patient(s).Start()
		demo := s.Seeded("user")
		x, _ := n.Session(t, demo)
		p := blackbox.EnrollPasskey(t, n, demo, x)
		who := blackbox.Admin(t, s, n)

		started := p.LogIn(t).Is(t, 200, "").Keys(t, "challenge")
		if started.Header.Get("x-auth") != "" || strings.Contains(string(started.Body), "PUSH") {
			t.Errorf("the passkey is both factors: %s", started)
		}
		f := blackbox.FlowOf(t, started)
		n.Complete(t, f, f.Method(t, "SMS"), n.Code(t, demo, "SMS")).Is(t, 200, "")

		change := policy(t, n, who, "LOGIN", `,"passkeyAlone":true`)
		alone := p.LogIn(t).Is(t, 200, "").Keys(t, "challenge", "execResult")
		token := alone.Header.Get("x-auth")
		if token == "" || !strings.Contains(string(alone.Body), `"COMPLETED"`) {
			t.Fatalf("%s", alone)
		}
		n.Ok(t, "GET", blackbox.DevicesPath, nil, blackbox.Headers{"x-auth": token})
		result := n.Result(t, blackbox.FlowOf(t, alone)).Is(t, 200, "")
		if blackbox.ReadFinal(t, result).ExecResult.Data["sessionKey"] !=
			blackbox.ReadFinal(t, alone).ExecResult.Data["sessionKey"] || result.Header.Get("x-auth") != token {
			t.Errorf("%s\n%s", alone, result)
		}
		claims := blackbox.ClaimsOf(t, token)
		if got := fmt.Sprint(claims["amr"]); got != "[hwk mfa]" {
			t.Errorf("amr %s", got)
		}
		n.Login(t, demo) // the password still works, with a second factor

		// The same ticket at once, many times: one session.
		options, ticket := p.Options(t)
		assertion := p.Get(t, options)
		opened := 0
		for _, a := range blackbox.Crowd(t, 8, func(int) (blackbox.Answer, error) {
			return n.Try("POST", "/auth/login", json.RawMessage(fmt.Sprintf(`{"ticket":%q,"assertion":%s}`, ticket, assertion)),
				nil)
		}) {
			if a.Status == 200 {
				opened++
			} else if a.Code() != "INVALID_CREDENTIALS" {
				t.Error(a)
			}
		}
		if opened != 1 {
			t.Errorf("one ticket opened %d", opened)
		}

		// phishingResistant: the code of an SMS and the approval of a phone do not suffice.
		phone := p.Add(t, token)
		change(`,"phishingResistant":true,"passkeyAlone":false,"force":true`)
		if got := string(n.Ok(t, "GET", "/admin/system/mfa/policies", nil, who).Body); !strings.Contains(got,
			`"phishingResistant":true`) || strings.Contains(got, "passkeyAlone") {
			t.Errorf("%s", got)
		}
		started = n.Do(t, "POST", "/auth/login", blackbox.LoginBody(demo), nil).Is(t, 200, "")
		if f = blackbox.FlowOf(t, started); len(f.MethodList) != 1 || f.MethodList[0].Name != "PUSH" {
			t.Fatalf("%s", started)
		}
		phone.Answer(t, f, "APPROVED").Is(t, 401, "DEVICE_SIGNATURE_INVALID")
		if got := string(phone.Ongoing(t).Body); got != "[]" {
			t.Errorf("the phone is asked: %s", got)
		}
		p.Approve(t, started).Is(t, 200, "")
		p.LogIn(t).Is(t, 409, "MFA_NOT_AVAILABLE")
		change(`,"passkeyAlone":true`)
		if p.LogIn(t).Is(t, 200, "").Header.Get("x-auth") == "" {
			t.Error("no session")
		}
		other := s.AddUser("user") // without a passkey
		n.Do(t, "POST", "/auth/login", blackbox.LoginBody(other), nil).Is(t, 409, "MFA_NOT_AVAILABLE")
		change(`,"phishingResistant":false,"numberMatching":true`)
		p.Approve(t, n.Do(t, "POST", "/auth/login", blackbox.LoginBody(demo), nil)).Is(t, 200, "")

		for action, options := range map[string]string{"RESET_PASSWORD": `"phishingResistant":true`,
			"WITHDRAW": `"passkeyAlone":true`, "TOTP_SETUP": `"passkeyAlone":true`} {
			n.Do(t, "POST", "/admin/system/mfa/policies/common", fmt.Sprintf(`{"actionCode":%q,"name":"p","expireAt":0,`+
				`"required":1,"methods":[["PUSH"],["SMS"],["MAIL"]],%s}`, action, options), who).Is(t, 400, "INVALID_FIELD")
		}
	})
}

// A counter that does not rise is reported, and refused unless the settings say otherwise.
func TestPasskeyCounter(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := blackbox.Patient(s).Start()
		demo := s.Seeded("user")
		x, _ := n.Session(t, demo)
		who := blackbox.Admin(t, s, n)
		change := policy(t, n, who, "LOGIN", `,"passkeyAlone":true`)
		_ = change
		p := blackbox.EnrollPasskey(t, n, demo, x)
		p.Count = 5
		p.LogIn(t).Is(t, 200, "")
		p.LogIn(t).Is(t, 200, "")
		p.Count = 3
		p.LogIn(t).Is(t, 401, "INVALID_CREDENTIALS")
		rows := string(n.Ok(t, "GET", "/admin/audit?action=PASSKEY_COUNTER", nil, who).Body)
		if !strings.Contains(rows, p.ID) || !strings.Contains(rows, "the counter is 4 after 7") {
			t.Errorf("audit: %s", rows)
		}
		n.Stop()
		n = s.Start("WEBAUTHN_COUNTER=report")
		p.N, p.Origin = n, n.URL
		p.LogIn(t).Is(t, 200, "")
		p.Count = 20
		p.LogIn(t).Is(t, 200, "")
	})
}
