package office

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"castellan/client"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device/devicetest"
	"castellan/internal/blackbox"
)

// losing drops the next answers: the service has executed the request, but the client does not learn the
// result.
type losing struct{ lost atomic.Int32 }

func (l *losing) RoundTrip(r *http.Request) (*http.Response, error) {
	a, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && l.lost.Add(-1) >= 0 {
		io.Copy(io.Discard, a.Body)
		a.Body.Close()
		return nil, errors.New("the answer was lost")
	}
	return a, err
}

// Package client logs in by each factor, with and without the socket, and repeats only requests that are safe
// to repeat.
func TestGoClientLogsInByEveryFactor(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		ctx, n, link := t.Context(), s.Start(), &losing{}
		demo := s.Seeded("user")
		must := func(err error) {
			t.Helper()
			storetest.Must(t, err)
		}
		login := func(who blackbox.Account) (*client.Client, *client.Flow) {
			t.Helper()
			c, err := client.New(n.URL + "/")
			must(err)
			c.HTTP = &http.Client{Transport: link}
			f, err := c.Login(ctx, client.Credentials{Email: who.Mail, Password: who.Password})
			must(err)
			return c, f
		}
		complete := func(f *client.Flow, name, code string) client.Outcome {
			t.Helper()
			m, ok := f.Method(name)
			if !ok {
				t.Fatalf("no %s in %+v", name, f.Methods)
			}
			o, err := f.Complete(ctx, m, code)
			must(err)
			if !o.Done || !o.Success {
				t.Fatalf("%s came to %+v", name, o)
			}
			return o
		}

		c, f := login(demo)
		wrong := *c
		_, err := wrong.Login(ctx, client.Credentials{Email: demo.Mail, Password: "wrong"})
		if client.CodeOf(err) != "INVALID_CREDENTIALS" || !strings.HasPrefix(err.Error(), "INVALID_CREDENTIALS: ") {
			t.Errorf("a wrong password: %v", err)
		}
		sms, _ := f.Method("SMS")
		_, err = f.Complete(ctx, sms, blackbox.WrongFor(n.Code(t, demo, "SMS")))
		if e, ok := errors.AsType[*client.Error](err); !ok || e.Code != "OTP_INVALID" || *e.AttemptsLeft != 4 {
			t.Errorf("a wrong code: %v", err)
		}
		if err := f.Renew(ctx, sms); client.CodeOf(err) != "RENEW_TOO_EARLY" {
			t.Errorf("an early renewal: %v", err)
		}
		link.lost.Store(1) // the completion is repeated
		if o := complete(f, "SMS", n.Code(t, demo, "SMS")); o.Action != "LOGIN" || o.XAuth != c.Token || c.Token == "" {
			t.Errorf("the login came to %+v, token %q", o, c.Token)
		}
		var sessions []struct{ Current bool }
		link.lost.Store(2)
		must(c.Call(ctx, "GET", "/auth/sessions", nil, &sessions))
		if len(sessions) != 1 || !sessions[0].Current {
			t.Errorf("sessions %+v", sessions)
		}

		signer, _ := devicetest.Signer(t, "ES256")
		phone := &client.Device{Key: signer}
		f, err = c.Enroll(ctx, phone, client.About{Brand: "Acme", Model: "One", Platform: "android"})
		must(err)
		must(phone.Enrolled(complete(f, "SMS", n.Code(t, demo, "SMS"))))
		second, f := login(demo)
		socket, err := f.Socket(ctx)
		must(err)
		defer socket.Close()
		var waiting []client.Approval
		must(second.Ongoing(ctx, phone, &waiting))
		if len(waiting) != 1 || waiting[0].Data.Action != "LOGIN" {
			t.Fatalf("waiting %+v", waiting)
		}
		if o, err := second.Answer(ctx, phone, waiting[0], client.Approved); err != nil || !o.Success || o.XAuth != "" {
			t.Errorf("the device gets %+v, %v", o, err)
		}
		for _, want := range []string{client.MethodComplete, client.ActionComplete} {
			e, err := socket.Next(ctx)
			must(err)
			if e.Event != want || e.ChallengeID != f.ID || len(e.Data) != 1 || want == client.ActionComplete &&
				(!e.Data[0].Success || e.Data[0].Headers["x-auth"] == "") {
				t.Errorf("%s on the socket: %+v", want, e)
			}
		}
		if o, err := f.Wait(ctx); err != nil || o.XAuth == "" || o.XAuth != second.Token {
			t.Errorf("waited for %+v, %v", o, err)
		}

		var set struct{ Base32 string }
		f, err = c.Start(ctx, "POST", "/auth/totp/setup", nil)
		must(err)
		must(json.Unmarshal(complete(f, "SMS", n.Code(t, demo, "SMS")).Data, &set))
		_, f = login(demo)
		complete(f, "TOTP", blackbox.NewAuthenticator(t, set.Base32).Next(t))

		// One key is one job, however many answers are lost. Without a key the loss is reported.
		boss, f := login(s.Seeded("admin"))
		complete(f, "SMS", n.Code(t, s.Seeded("admin"), "SMS"))
		var job struct{ Data struct{ ID string } }
		text := map[string]any{"sendAllUsers": true, "messageBody": "hello"}
		link.lost.Store(2)
		must(boss.Call(ctx, "POST", "/send-bulk-sms", text, &job, client.Once("k1")))
		link.lost.Store(1)
		if err := boss.Call(ctx, "POST", "/send-bulk-sms", text, nil); err == nil || client.CodeOf(err) != "" {
			t.Errorf("a lost answer without a key: %v", err)
		}
		if jobs := s.Count("job WHERE kind = 'send-bulk-sms'"); jobs != 2 || job.Data.ID == "" {
			t.Errorf("%d jobs, the first one %q", jobs, job.Data.ID)
		}
	})
}
