package office

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
	"castellan/internal/blackbox"
	"castellan/internal/porttest"
)

// In production mode codes are sent by SMTP and by an SMS gateway. No readable code or token remains anywhere
// afterwards (SEC-43, SEC-45, D-2FA-29, D-EXT-04).
func TestDeliveryLeavesNoReadableCode(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		s.Production()
		gateway, relay := s.Gateway(), s.Relay()
		metrics := porttest.Free(t)
		n := s.Start("METRICS_ADDR=" + metrics)
		boss := s.AddUser("admin")
		var secrets []string

		f := n.Login(t, boss)
		sms, letter := gateway.Wait(t, boss.Number(), 1), relay.Wait(t, boss.Mail, 1)
		smsCode, mailCode := blackbox.CodeIn(t, sms.Text), blackbox.CodeIn(t, letter.Text)
		if sms.Key == "" || !strings.HasSuffix(letter.Key, "@castellan.test>") {
			t.Errorf("keys %q and %q: a provider cannot know a repeat by them", sms.Key, letter.Key)
		}
		blackbox.AttemptsLeft(t, n.Complete(t, f, f.Method(t, "SMS"), blackbox.WrongFor(smsCode)))
		final := n.Complete(t, f, f.Method(t, "SMS"), smsCode).Is(t, 200, "")
		token := blackbox.CheckFinal(t, f, final)
		secrets = append(secrets, boss.Password, smsCode, mailCode, f.PAuth, token)

		who := blackbox.Headers{"x-auth": token}
		n.Awaits(t, blackbox.Within(1), 200, "GET", blackbox.ActionsPath, nil, who) // by then an administrator
		blackbox.TwoMethods(t, n, who)
		blackbox.Tune(t, n, who, "SMS", 120_000, 1)
		f = n.Login(t, boss)
		smsCode, mailCode = blackbox.CodeIn(t, gateway.Wait(t, boss.Number(), 2).Text), blackbox.CodeIn(t,
			relay.Wait(t, boss.Mail, 2).Text)
		secrets = append(secrets, smsCode, mailCode)
		n.Renew(t, f, f.Method(t, "SMS")).Is(t, 200, "")
		smsCode = blackbox.CodeIn(t, gateway.Wait(t, boss.Number(), 3).Text)
		n.Complete(t, f, f.Method(t, "SMS"), smsCode).Is(t, 200, "").Keys(t, "action")
		socket, err := n.TrySocket(f, blackbox.InQuery) // the only case with a token in an address
		storetest.Must(t, err)
		defer socket.Close()
		token = n.Complete(t, f, f.Method(t, "MAIL"), mailCode).Is(t, 200, "").Header.Get("x-auth")
		secrets = append(secrets, smsCode, mailCode, f.PAuth, token)
		n.Do(t, "POST", "/auth/login", map[string]string{"email": boss.Mail, "password": "wrong-orchid-551"}, nil).
			Is(t, 401, "INVALID_CREDENTIALS")
		n.Do(t, "POST", "/auth/login", `{"email":"`+boss.Mail+`","password":"half-a-body-551`, nil).
			Is(t, 400, "INVALID_FIELD")
		secrets = append(secrets, "wrong-orchid-551", "half-a-body-551", blackbox.GatewaySecret, blackbox.RelaySecret)
		for _, token := range []string{f.PAuth, token} { // nor a part that could be reassembled
			parts := strings.Split(token, ".")
			secrets = append(secrets, parts[1], parts[2])
		}

		// No delivery is left to retry.
		blackbox.Until(t, blackbox.Within(5), "settled",
			func() bool { return s.Count("outbox WHERE payload IS NOT NULL") == 0 })
		numbers := blackbox.NewClient("http://"+metrics).Do(t, "GET", "/metrics", nil, nil)
		storetest.Contains(t, string(numbers.Body), "castellan_outbox_sent_total 5")
		places := s.AtRest()
		places["log"], places["output"], places["metrics"] = []byte(n.Log()), []byte(n.Out()), numbers.Body
		n.Stop()
		places["log of the end"] = []byte(n.Log())
		for place, text := range s.AtRest() {
			places["after the end: "+place] = text
		}
		if len(places) < 5 || len(places["log"]) == 0 {
			t.Fatalf("looked at too little: %d places", len(places))
		}
		if len(blackbox.Find(places, boss.ID)) == 0 {
			t.Fatal("not even the account is found: the search is broken")
		}
		for _, secret := range secrets {
			for _, hit := range blackbox.Find(places, secret) {
				t.Errorf("%.8s… shows in %s", secret, hit)
			}
		}
	})
}

// A message that was not delivered before a kill is delivered by the next process after its lease expires.
func TestDeliverySurvivesKill(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		s.Production().
			Set("OUTBOX_LEASE=2s", "SMS_TIMEOUT=1s", "MAIL_TIMEOUT=1s", "OUTBOX_RETRY_MIN=100ms", "OUTBOX_RETRY_MAX=100ms")
		gateway := s.Gateway()
		n := s.Start()
		user := s.AddUser("user")
		gateway.Refuse(1 << 20)
		f := n.Login(t, user)
		blackbox.Until(t, blackbox.Within(10), "tried", func() bool { return len(gateway.Deliveries()) > 0 })
		n.Kill()
		gateway.Refuse(0)
		n = s.Start()
		sms := gateway.Wait(t, user.Number(), 1)
		if first := gateway.Deliveries()[0]; sms.Key != first.Key || sms.Text != first.Text {
			t.Errorf("after the kill under key %q, before it %q", sms.Key, first.Key)
		}
		n.Complete(t, f, f.Method(t, "SMS"), blackbox.CodeIn(t, sms.Text)).Is(t, 200, "")
	})
}

// In production mode a channel without a sender is not available to any user.
func TestChannelWithoutSenderIsUnavailable(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		s.Production()
		n := s.Start()
		user := s.AddUser("user")
		n.Do(t, "POST", "/auth/login", blackbox.LoginBody(user), nil).Is(t, 409, "MFA_NOT_AVAILABLE")
		storetest.Equal(t, strings.Count(n.Log(), "key=sms.url severity=feature"), 1, "warnings about SMS")
		n.Stop()
		gateway := s.Gateway()
		n = s.Start()
		f := n.Login(t, user)
		if len(f.MethodList) != 1 || f.MethodList[0].Name != "SMS" {
			t.Errorf("methods %+v, want SMS alone", f.MethodList)
		}
		n.Complete(t, f, f.Method(t, "SMS"), blackbox.CodeIn(t, gateway.Wait(t, user.Number(), 1).Text)).Is(t, 200, "")
	})
}

// Messages cost money, so they are capped (D-EXT-05). A user who has proved the password or a session gets an
// error. A user who also has an authenticator needs no message. Messages are counted in rows, so a restart
// resets nothing.
func TestMessageCapsSurviveRestart(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		s.Set("LIMITS_DESTINATION_PER_HOUR=4", "LIMITS_DESTINATION_PER_DAY=4",
			"MFA_GUARDED="+blackbox.GuardedKey+"="+blackbox.GuardedCode)
		n := s.Start()
		boss := s.Seeded("admin")
		who := blackbox.Admin(t, s, n)
		for range 3 {
			n.Login(t, boss)
		}
		sent := len(n.Letters(t, ""))
		within := n.Login(t, s.Seeded("user")) // other users' messages are counted separately
		n.Complete(t, within, within.Method(t, "SMS"), n.Code(t, s.Seeded("user"), "SMS")).Is(t, 200, "")
		if got := len(n.Letters(t, "")); sent != 8 || got != 10 {
			t.Fatalf("%d letters and then %d, want 8 and 10", sent, got)
		}
		for round := range 2 {
			for _, capped := range []blackbox.Answer{n.Do(t, "POST", "/auth/login", blackbox.LoginBody(boss), nil),
				n.Do(t, "POST", blackbox.ActionsPath, blackbox.NewAction("ONE_MORE"), who)} {
				capped.Is(t, 429, "RATE_LIMITED")
				if wait, _ := strconv.Atoi(capped.Header.Get("Retry-After")); wait < 3000 || wait > 24*3600 {
					t.Errorf("%s: Retry-After %q", capped, capped.Header.Get("Retry-After"))
				}
			}
			stranger := boss
			stranger.Password = "not-the-password"
			n.Do(t, "POST", "/auth/login", blackbox.LoginBody(stranger), nil).Is(t, 401, "INVALID_CREDENTIALS")
			if round == 0 {
				n.Kill()
				n = s.Start()
			}
		}
		storetest.Equal(t, len(n.Letters(t, boss.Number())), 4, "letters to the capped phone")
	})
}

// A device that was enrolled with a target is woken when a challenge waits for it: by a signed webhook, and by
// Web Push under the key that clients get.
func TestDevicesAreWokenByWebhookAndWebPush(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		type call struct {
			path   string
			header http.Header
			body   []byte
		}
		calls := make(chan call, 16)
		var gone atomic.Bool // every outside address is gone
		outside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			calls <- call{r.URL.Path, r.Header, body}
			if gone.Load() {
				w.WriteHeader(http.StatusGone)
				return
			}
			w.WriteHeader(http.StatusCreated)
		}))
		defer outside.Close()
		secret := []byte("a secret of thirty-two letters..")
		n := s.Start("PUSH_WEBHOOK_SECRET=whsec_" + base64.StdEncoding.EncodeToString(secret))
		demo := s.Seeded("user")
		token, _ := n.Session(t, demo)
		enroll := func(target string) { blackbox.Enroll(t, n, demo, token, device.ES256, `,"pushTarget":`+target) }
		enroll(`{"type":"webhook","url":"` + outside.URL + `/hook"}`)
		const ( // of RFC 8291
			public = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
			auth   = "BTBZMqHH6r4Tts7J_aSIgg"
		)
		enroll(`{"type":"webpush","endpoint":"` + outside.URL + `/push","keys":{"p256dh":"` + public + `","auth":"` + auth +
			`"}}`)
		for len(calls) > 0 { // the second enrolment may have woken the first device
			<-calls
		}
		f := n.Login(t, demo)
		seen := map[string]bool{}
		for len(seen) < 2 {
			var c call
			select {
			case c = <-calls:
			case <-time.After(blackbox.Within(10)):
				t.Fatalf("woken by %v alone", seen)
			}
			switch c.path {
			case "/hook":
				mac := hmac.New(sha256.New, secret)
				mac.Write([]byte(c.header.Get("webhook-id") + "." + c.header.Get("webhook-timestamp") + "." + string(c.body)))
				want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
				storetest.Equal(t, c.header.Get("webhook-signature"), want, "signature")
				var told struct {
					ChallengeID, Action string
					Expire              int
				}
				storetest.Must(t, json.Unmarshal(c.body, &told))
				if told.ChallengeID != f.ChallengeID { // of the enrolment before
					continue
				}
				if told.Action != "LOGIN" || told.Expire <= 0 || !strings.HasPrefix(c.header.Get("webhook-id"), f.ChallengeID) {
					t.Errorf("sent %s as %s", c.body, c.header.Get("webhook-id"))
				}
			case "/push":
				key, h := n.Ok(t, "GET", "/.well-known/vapid.json", nil, nil).At(t, "publicKey"), c.header
				if h.Get("TTL") == "" || h.Get("Urgency") != "high" || h.Get("Content-Encoding") != "aes128gcm" ||
					!strings.HasSuffix(h.Get("Authorization"), ", k="+key) || len(c.body) < 100 {
					t.Errorf("%v, %d bytes", h, len(c.body))
				}
			}
			seen[c.path] = true
		}
		// A target that is gone gets one more message, and then none.
		gone.Store(true)
		n.Login(t, demo)
		blackbox.Until(t, blackbox.Within(10), "the targets are gone",
			func() bool { return s.Count("device WHERE target IS NOT NULL") == 0 })
		before := s.Count("outbox WHERE channel = 'push'")
		n.Login(t, demo)
		storetest.Equal(t, s.Count("outbox WHERE channel = 'push'"), before, "messages to targets that are gone")
		storetest.Lacks(t, n.Log(), outside.URL, "log")
	})
}
