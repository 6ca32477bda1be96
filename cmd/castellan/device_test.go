package main

import (
	"crypto"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
func (p pocket) sign(
	t *testing.T,
	method, path string,
	body []byte,
	c device.Claims,
	edit ...func(*device.Claims),
) blackbox.Headers {
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
	if p.id = final.ExecResult.Data["deviceId"]; final.Action != "DEVICE_ADD" || !final.ExecResult.Success || p.id == "" ||
		len(final.ExecResult.Data) != 1 {
		t.Fatalf("the enrolment answered %s", got)
	}
	return p
}

// register sends the request of an enrolment, signed with the new key.
func (p pocket) register(t *testing.T, x, target string, edit ...func(*device.Claims)) blackbox.Answer {
	t.Helper()
	body := `{"publicKey":` + p.pub.JWK() +
		`,"brand":"Acme","model":"One","description":"","platform":"android"` + target + `}`
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

func (p pocket) decision(
	t *testing.T,
	f blackbox.Flow,
	value string,
	edit ...func(*device.Claims),
) ([]byte, blackbox.Headers) {
	t.Helper()
	m := f.Method(t, "PUSH")
	body, err := json.Marshal(
		map[string]string{"challengeId": f.ChallengeID, "methodId": m.ID, "method": "PUSH", "value": value, "deviceId": p.id},
	)
	if err != nil {
		t.Fatal(err)
	}
	return body, p.sign(
		t,
		"POST",
		blackbox.CompletePath,
		body,
		device.Claims{Challenge: f.ChallengeID, MethodID: m.ID, Value: value},
		edit...)
}

// ongoing asks what waits for the device.
func (p pocket) ongoing(t *testing.T, edit ...func(*device.Claims)) blackbox.Answer {
	t.Helper()
	path := ongoingPath + "?deviceId=" + p.id
	return p.n.Do(t, "GET", path, nil, p.sign(t, "GET", path, nil, device.Claims{}, edit...))
}

// waiting is a pending push approval item (section 2.1 of the interface).
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
	return s.Set(
		"LIMITS_PUSH_PENDING=100",
		"LIMITS_PUSH_PER_DAY=1000",
		"LIMITS_PUSH_DENIALS=100",
		"LIMITS_IP_PER_HOUR=100000",
		"LIMITS_USER_PER_DAY=100000",
		"LIMITS_DESTINATION_PER_HOUR=50000",
		"LIMITS_DESTINATION_PER_DAY=50000",
	)
}

// D-EXT-01: registering, listing and removing devices; D-2FA-29: nothing
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
		n.Do(t, "POST", devicesPath,
			`{"publicKey":`+raw.pub.JWK()+`,"brand":"b","model":"m","description":"","platform":"p"}`, me).
			Is(t, 401, "DEVICE_SIGNATURE_REQUIRED")
		n.Do(t, "POST", devicesPath, `{"publicKey":{"kty":"RSA"},"brand":"b","model":"m","description":"","platform":"p"}`,
			me).
			Is(t, 400, "INVALID_FIELD")
		n.Do(t, "POST", devicesPath, `{}`, me).Is(t, 400, "INVALID_FIELD")
		late := raw.register(t, x, "", func(c *device.Claims) { c.IssuedAt = 1 }).Is(t, 401, "DEVICE_SIGNATURE_INVALID")
		raw.register(t, x, "", func(c *device.Claims) { c.IssuedAt, c.Nonce = 1, late.Header.Get("device-signature-nonce") }).
			Is(t, 200, "").
			Keys(t, "challenge")

		const hidden = "hook-of-a-thousand-secrets"
		target := `{"type":"webhook","url":"https://push.example.test/` + hidden + `"}`
		p := enroll(t, n, demo, x, device.ES256, `,"pushTarget":`+target)
		q := enroll(t, n, demo, x, device.EdDSA, "")
		p.id, raw = p.pub.Thumbprint(), p
		p.register(t, x, "").Is(t, 409, "RECORD_ALREADY_EXIST")
		var listed []map[string]any
		n.Ok(t, "GET", devicesPath, nil, me).Read(t, &listed)
		if len(listed) != 2 || listed[0]["deviceId"] != q.id || len(listed[0]) != 8 || listed[1]["brand"] != "Acme" ||
			listed[1]["model"] != "One" || listed[1]["platform"] != "android" ||
			listed[1]["status"] != "ACTIVE" || listed[1]["lastUsedAt"] != nil ||
			listed[1]["createdAt"] == "" ||
			listed[1]["createdAt"] == nil {
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
		if len(woken) != 1 || woken[0].To != target ||
			woken[0].Body != fmt.Sprintf(`{"challengeId":%q,"action":"LOGIN","expire":120}`, f.ChallengeID) {
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
				got = s.CommandWith(
					[]string{"DEVICE_TOKEN=" + x},
					"",
					"device",
					"enroll",
					"--key",
					file,
					"--server",
					n.URL+"/",
					"--alg",
					alg,
					"--method",
					"TOTP",
					"--code",
					app.next(t),
				)
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
			if got := run(0, "", "ongoing"); !strings.Contains(got.Out, f.ChallengeID) ||
				!strings.Contains(got.Out, "Sign-in") ||
				!strings.Contains(got.Out, "IP address: 127.0.0.1") {
				t.Errorf("%s", got.Out)
			}
			if got := run(0, "", "ongoing", "--json"); !json.Valid([]byte(got.Out)) ||
				!strings.Contains(got.Out, `"infoTable"`) {
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
