package office

import (
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
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
		blackbox.Until(t, blackbox.Within(1), "an administrator",
			func() bool { return n.Do(t, "GET", blackbox.ActionsPath, nil, who).Status == 200 })
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
		if !strings.Contains(string(numbers.Body), "castellan_outbox_sent_total 5") {
			t.Errorf("metrics do not count 5 deliveries")
		}
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
