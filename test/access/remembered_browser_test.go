package access

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"castellan/client"
	"castellan/domain/proof/device"
	"castellan/domain/proof/dpop"
	"castellan/internal/blackbox"
)

const rememberedPath = "/auth/remembered"

// browser is a client with a key that may be remembered.
type browser struct {
	*blackbox.Keyed
	of blackbox.Account
}

// start starts a login, and returns its answer with its methods by name.
func (b browser) start(t testing.TB, n *blackbox.Node) (blackbox.Answer, blackbox.Flow, map[string]bool) {
	t.Helper()
	b.Token = ""
	got := n.Do(t, "POST", "/auth/login", blackbox.LoginBody(b.of), b.Proof(t, n, "POST", "/auth/login"))
	return got, blackbox.FlowOf(t, got), completedIn(t, got)
}

func completedIn(t testing.TB, a blackbox.Answer) map[string]bool {
	t.Helper()
	var body struct {
		Challenge struct {
			MethodList []struct {
				Name      string
				Completed bool
			}
		}
	}
	a.Read(t, &body)
	out := map[string]bool{}
	for _, m := range body.Challenge.MethodList {
		out[m.Name] = m.Completed
	}
	return out
}

// complete answers a method, with remember.
func complete(t testing.TB, n *blackbox.Node, f blackbox.Flow, method, value string, remember bool) blackbox.Answer {
	t.Helper()
	m := f.Method(t, method)
	return n.Do(t, "POST", blackbox.CompletePath, map[string]any{"methodId": m.ID, "method": m.Name, "value": value,
		"remember": remember}, blackbox.Headers{"p-auth": f.PAuth}).Is(t, 200, "")
}

// remember logs in by SMS and has the browser remembered.
func (b browser) remember(t testing.TB, n *blackbox.Node) {
	t.Helper()
	_, f, _ := b.start(t, n)
	b.Keyed.Token = complete(t, n, f, "SMS", n.Code(t, b.of, "SMS"), true).Header.Get("x-auth")
}

// known reports whether the next login needs no code, and logs in if so.
func (b browser) known(t testing.TB, n *blackbox.Node) bool {
	t.Helper()
	got, f, methods := b.start(t, n)
	b.Keyed.Token = got.Header.Get("x-auth")
	if (f.Status == "COMPLETED") != (b.Keyed.Token != "") || methods["SMS"] != (f.Status == "COMPLETED") {
		t.Errorf("%s", got)
	}
	return f.Status == "COMPLETED"
}

func rememberedOf(t testing.TB, n *blackbox.Node, token string) (all []struct {
	ID, ActionCode, Method, IP, DeviceDesc string
	CreatedAt, LastUsedAt, ExpiresAt       time.Time
	Current                                bool
}) {
	t.Helper()
	n.Ok(t, "GET", rememberedPath, nil, blackbox.Headers{"x-auth": token}).Read(t, &all)
	return all
}

// until waits for a policy on this node.
func (b browser) until(t testing.TB, n *blackbox.Node, who blackbox.Headers, days int) {
	t.Helper()
	blackbox.Until(t, blackbox.Within(5), "the policy takes effect", func() bool {
		var x struct{ RememberDays int }
		n.Ok(t, "POST", "/admin/system/mfa/explain", `{"actionCode":"LOGIN"}`, who).Read(t, &x)
		return x.RememberDays == days
	})
}

// A remembered browser logs in with the password and its key. Another key, another account, a copied token and a proof
// that was used get nothing from it, and each of its ends ends it (D-AUTH-17).
func TestRememberedBrowser(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start("LIMITS_ENABLED=false")
		demo, root := s.Seeded("user"), s.Seeded("admin")
		who := blackbox.Admin(t, s, n)
		b := browser{&blackbox.Keyed{Key: blackbox.ECKey(t)}, demo}
		b.remember(t, n) // without the policy: ignored
		if b.known(t, n) {
			t.Fatal("remembered without a policy")
		}
		id := blackbox.Policy(t, n, who, "LOGIN", 1, `[["SMS"],["MAIL"]]`, `,"remember":30`)
		b.until(t, n, who, 30)
		before := browser{&blackbox.Keyed{Key: blackbox.EdKey(t)}, demo}
		_, f, _ := before.start(t, n)
		complete(t, n, f, "SMS", n.Code(t, demo, "SMS"), false)
		if before.known(t, n) {
			t.Fatal("remembered without being asked")
		}

		b.remember(t, n)
		letters := len(n.Letters(t, demo.Mail)) + len(n.Letters(t, demo.Number()))
		for range 3 {
			if !b.known(t, n) {
				t.Fatal("not remembered")
			}
		}
		if now := len(n.Letters(t, demo.Mail)) + len(n.Letters(t, demo.Number())); now != letters {
			t.Errorf("completed logins sent %d messages", now-letters)
		}
		if amr := fmt.Sprint(blackbox.ClaimsOf(t, b.Token)["amr"]); amr != "[pwd swk mfa]" {
			t.Errorf("amr %s", amr)
		}
		all := rememberedOf(t, n, b.Token)
		if len(all) != 1 || all[0].ActionCode != "LOGIN" || all[0].Method != "SMS" || !all[0].Current ||
			!all[0].LastUsedAt.After(all[0].CreatedAt) || !all[0].ExpiresAt.Equal(all[0].CreatedAt.AddDate(0, 0, 30)) {
			t.Errorf("%+v", all)
		}

		// Nothing but the key of this browser, for this account.
		plain := n.Login(t, demo)
		if plain.Status != "PENDING" {
			t.Error("a login without a proof is remembered")
		}
		other := browser{&blackbox.Keyed{Key: blackbox.EdKey(t)}, demo}
		if other.known(t, n) {
			t.Error("another key is remembered")
		}
		if (browser{&blackbox.Keyed{Key: b.Key}, root}).known(t, n) {
			t.Error("another account is remembered")
		}
		b.Token = ""
		proof := b.Proof(t, n, "POST", "/auth/login")
		n.Do(t, "POST", "/auth/login", blackbox.LoginBody(demo), proof).Is(t, 200, "")
		n.Do(t, "POST", "/auth/login", blackbox.LoginBody(demo), proof).Is(t, 401, "DPOP_INVALID")
		wrong := blackbox.LoginBody(demo)
		wrong["password"] = "wrong-lantern-1"
		n.Do(t, "POST", "/auth/login", wrong, b.Proof(t, n, "POST", "/auth/login")).Is(t, 401, "INVALID_CREDENTIALS")

		// A policy without the option ends it at once.
		blackbox.ChangePolicy(t, n, who, id, `,"remember":0`)
		b.until(t, n, who, 0)
		if b.known(t, n) || len(rememberedOf(t, n, who["x-auth"])) != 0 {
			t.Error("remembered although the policy is off")
		}
		blackbox.ChangePolicy(t, n, who, id, `,"remember":60`)
		b.until(t, n, who, 60)
		if !b.known(t, n) {
			t.Error("forgotten by a longer policy")
		}
		if got := rememberedOf(t, n, b.Token); len(got) != 1 || !got[0].ExpiresAt.Equal(all[0].ExpiresAt) {
			t.Errorf("%+v", got)
		}

		// The owner ends it.
		n.Do(t, "DELETE", rememberedPath, `{}`, blackbox.Headers{"x-auth": b.Token}).Is(t, 400, "INVALID_FIELD")
		n.Do(t, "DELETE", rememberedPath, `{"id":"`+all[0].ID+`"}`, who).
			Is(t, 404, "RECORD_NOT_FOUND")
		n.Do(t, "DELETE", rememberedPath, `{"id":"`+all[0].ID+`"}`, blackbox.Headers{"x-auth": b.Token}).Is(t, 200, "")
		if b.known(t, n) {
			t.Error("remembered after its end")
		}
		b.remember(t, n)
		var gone struct{ Data struct{ Ended int } }
		n.Do(t, "DELETE", rememberedPath, `{"all":true}`, blackbox.Headers{"x-auth": b.Token}).Is(t, 200, "").Read(t, &gone)
		if gone.Data.Ended != 1 || b.known(t, n) {
			t.Errorf("%+v", gone)
		}

		// Each change of the credentials ends it.
		b.remember(t, n)
		p := blackbox.Enroll(t, n, demo, b.Token, device.ES256, "")
		b.remember(t, n)
		if !b.known(t, n) {
			t.Fatal("not remembered")
		}
		thief := n.Login(t, demo)
		raise(t, p, thief.ChallengeID).Is(t, 200, "")
		if b.known(t, n) {
			t.Error("remembered after an alarm")
		}
		b.remember(t, n)
		f = blackbox.FlowOf(t, n.Do(t, "POST", "/auth/password", map[string]string{"oldPassword": demo.Password,
			"password": "a-third-lantern", "passwordVerify": "a-third-lantern"}, blackbox.Headers{"x-auth": b.Token}))
		n.Complete(t, f, f.Method(t, "SMS"), n.Code(t, demo, "SMS")).Is(t, 200, "")
		b.of.Password = "a-third-lantern"
		if b.known(t, n) {
			t.Error("remembered after a change of the password")
		}
	})
}

// With two required methods one is remembered, and the other is asked every time. An option for an action that moves
// money is refused.
func TestRememberedBrowserKeepsOtherRequirements(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start("LIMITS_ENABLED=false")
		demo := s.Seeded("user")
		who := blackbox.Admin(t, s, n)
		a := n.Do(t, "POST", "/admin/system/mfa/policies/common", `{"actionCode":"WITHDRAW","name":"n","expireAt":0,`+
			`"required":1,"methods":[["SMS"]],"remember":7}`, who)
		if a.Is(t, 400, "INVALID_FIELD").Problem().Field != "remember" {
			t.Errorf("%s", a)
		}
		blackbox.Policy(t, n, who, "WITHDRAW", 1, `[["SMS"]]`, `,"remember":7,"rememberAnyway":true`)
		blackbox.Policy(t, n, who, "LOGIN", 2, `[["SMS"],["MAIL"]]`, `,"remember":7`)
		b := browser{&blackbox.Keyed{Key: blackbox.ECKey(t)}, demo}
		b.until(t, n, who, 7)
		_, f, _ := b.start(t, n)
		complete(t, n, f, "MAIL", n.Code(t, demo, "MAIL"), false)
		complete(t, n, f, "SMS", n.Code(t, demo, "SMS"), true)
		for range 2 {
			got, f, methods := b.start(t, n)
			if f.Status != "PENDING" || !methods["SMS"] || methods["MAIL"] || got.Header.Get("x-auth") != "" {
				t.Fatalf("%s", got)
			}
			n.Complete(t, f, f.Method(t, "SMS"), "123456").Is(t, 409, "METHOD_ALREADY_COMPLETED")
			if x := complete(t, n, f, "MAIL", n.Code(t, demo, "MAIL"), true).Header.Get("x-auth"); x == "" {
				t.Error("no session")
			} else if all := rememberedOf(t, n, x); len(all) != 1 || all[0].Method != "SMS" {
				t.Errorf("%+v", all)
			}
		}
	})
}

// A session remembers an action of its own, whose next start needs a proof by the key. The outcome survives the death
// of the node.
func TestRememberedBrowserInASession(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start("LIMITS_ENABLED=false")
		demo := s.Seeded("user")
		who := blackbox.Admin(t, s, n)
		blackbox.Policy(t, n, who, "LOGIN", 1, `[["SMS"]]`, `,"remember":7`)
		blackbox.Policy(t, n, who, "DURING_VIDEO_KYC", 1, `[["SMS"]]`, `,"remember":7`)
		b := browser{&blackbox.Keyed{Key: blackbox.ECKey(t)}, demo}
		b.until(t, n, who, 7)
		b.remember(t, n)
		const path = "/auth/2fa/challenge/start"
		start := func(h blackbox.Headers) blackbox.Answer {
			return n.Do(t, "POST", path, `{"actionCode":"DURING_VIDEO_KYC"}`, h)
		}
		f := blackbox.FlowOf(t, start(blackbox.Headers{"x-auth": b.Token}))
		complete(t, n, f, "SMS", n.Code(t, demo, "SMS"), true)
		if f := blackbox.FlowOf(t, start(blackbox.Headers{"x-auth": b.Token})); f.Status != "PENDING" {
			t.Error("a token without its key is enough")
		}
		thief := blackbox.Keyed{Key: blackbox.EdKey(t), Token: b.Token}
		start(thief.Proof(t, n, "POST", path)).Is(t, 401, "DPOP_INVALID")
		start(b.Proof(t, n, "POST", path, func(c *dpop.Claims) { c.TokenHash = "" })).Is(t, 401, "DPOP_INVALID")
		nonce := start(b.Proof(t, n, "POST", path, func(c *dpop.Claims) {
			c.IssuedAt = time.Now().Add(-time.Hour).Unix()
		})).Is(t, 401, "DPOP_INVALID").Header.Get("dpop-nonce")
		if nonce == "" {
			t.Error("no nonce for an old proof")
		}
		proof := b.Proof(t, n, "POST", path)
		got := start(proof)
		f = blackbox.FlowOf(t, got)
		if f.Status != "COMPLETED" || !blackbox.ReadFinal(t, got).ExecResult.Success {
			t.Fatalf("%s", got)
		}
		start(proof).Is(t, 401, "DPOP_INVALID")
		if !b.known(t, n) {
			t.Fatal("not remembered")
		}
		_, login, _ := b.start(t, n)
		n.Kill()
		n = s.Start("LIMITS_ENABLED=false")
		for _, f := range []blackbox.Flow{f, login} {
			if !blackbox.ReadFinal(t, n.Result(t, f).Is(t, 200, "")).ExecResult.Success {
				t.Error("the outcome is lost")
			}
		}
		if x := n.Result(t, login).Header.Get("x-auth"); x == "" {
			t.Error("the session is lost")
		}

		// The evidence names the remembered method as such.
		var evidence struct {
			Data struct {
				Document string
				Proofs   []struct {
					Method     string
					Remembered bool
				}
			}
		}
		n.Ok(t, "GET", "/admin/challenges/"+login.ChallengeID+"/evidence", nil, who).
			Read(t, &evidence)
		e := evidence.Data
		var doc struct {
			Rows []struct{ Key, Value string }
		}
		if err := json.Unmarshal([]byte(e.Document), &doc); err != nil || len(e.Proofs) != 1 || !e.Proofs[0].Remembered {
			t.Errorf("%+v, %v", e, err)
		}
		if last := doc.Rows[len(doc.Rows)-1]; last.Key != "remembered" || last.Value != "SMS" {
			t.Errorf("%+v", doc.Rows)
		}
	})
}

// The Go client has itself remembered, and gets its next session without a code.
func TestGoClientIsRemembered(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start("LIMITS_ENABLED=false")
		demo := s.Seeded("user")
		boss := blackbox.Admin(t, s, n)
		blackbox.Policy(t, n, boss, "LOGIN", 1, `[["SMS"]]`, `,"remember":7`)
		(browser{}).until(t, n, boss, 7)
		c, err := client.New(n.URL)
		if err != nil {
			t.Fatal(err)
		}
		c.Key = client.NewKey(blackbox.ECKey(t))
		who := client.Credentials{Email: demo.Mail, Password: demo.Password}
		f, err := c.Login(t.Context(), who)
		if err != nil || f.Completed || f.RememberDays != 7 {
			t.Fatalf("%+v, %v", f, err)
		}
		m, _ := f.Method("SMS")
		if o, err := f.CompleteAndRemember(t.Context(), m, n.Code(t, demo, "SMS")); err != nil || !o.Success {
			t.Fatalf("%+v, %v", o, err)
		}
		if f, err = c.Login(t.Context(), who); err != nil || !f.Completed || !f.Methods[0].Completed {
			t.Fatalf("%+v, %v", f, err)
		}
		if o, err := f.Wait(t.Context()); err != nil || o.XAuth == "" {
			t.Errorf("%+v, %v", o, err)
		}
	})
}
