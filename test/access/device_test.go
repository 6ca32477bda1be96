package access

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"castellan/domain/proof/device"
	"castellan/internal/blackbox"
)

// Devices are registered, listed and removed (D-EXT-01). No part of a push target is stored in plain text, and
// the message contains no details (D-2FA-29).
func TestDeviceRegistrationListAndRemoval(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := blackbox.Patient(s).Start()
		demo := s.Seeded("user")
		x, _ := n.Session(t, demo)
		me := blackbox.Headers{"x-auth": x}
		if got := string(n.Ok(t, "GET", blackbox.DevicesPath, nil, me).Body); got != "[]" {
			t.Errorf("no device: %s", got)
		}
		n.Do(t, "GET", blackbox.DevicesPath, nil, nil).Is(t, 401, "UNAUTHENTICATED")

		raw := blackbox.NewPocket(t, n, device.ES256)
		raw.Register(t, "", "").Is(t, 401, "UNAUTHENTICATED")
		raw.Register(t, x, "", func(c *device.Claims) { c.Issuer = "x" }).Is(t, 401, "DEVICE_SIGNATURE_INVALID")
		raw.Register(t, x, `,"pushTarget":{"type":"smoke"}`).Is(t, 400, "INVALID_FIELD")
		n.Do(t, "POST", blackbox.DevicesPath,
			`{"publicKey":`+raw.Pub.JWK()+`,"brand":"b","model":"m","description":"","platform":"p"}`, me).
			Is(t, 401, "DEVICE_SIGNATURE_REQUIRED")
		late := raw.Register(t, x, "", func(c *device.Claims) { c.IssuedAt = 1 }).Is(t, 401, "DEVICE_SIGNATURE_INVALID")
		raw.Register(t, x, "", func(c *device.Claims) { c.IssuedAt, c.Nonce = 1, late.Header.Get("device-signature-nonce") }).
			Is(t, 200, "").
			Keys(t, "challenge")

		const hidden = "hook-of-a-thousand-secrets"
		target := `{"type":"webhook","url":"https://push.example.test/` + hidden + `"}`
		p := blackbox.Enroll(t, n, demo, x, device.ES256, `,"pushTarget":`+target)
		q := blackbox.Enroll(t, n, demo, x, device.EdDSA, "")
		p.ID, raw = p.Pub.Thumbprint(), p
		p.Register(t, x, "").Is(t, 409, "RECORD_ALREADY_EXIST")
		var listed []map[string]any
		n.Ok(t, "GET", blackbox.DevicesPath, nil, me).Read(t, &listed)
		if len(listed) != 2 || listed[0]["deviceId"] != q.ID || len(listed[0]) != 8 || listed[1]["brand"] != "Acme" ||
			listed[1]["model"] != "One" || listed[1]["platform"] != "android" ||
			listed[1]["status"] != "ACTIVE" || listed[1]["lastUsedAt"] != nil ||
			listed[1]["createdAt"] == "" ||
			listed[1]["createdAt"] == nil {
			t.Fatalf("%v", listed)
		}
		p.ID = listed[1]["deviceId"].(string)
		p.Ongoing(t).Is(t, 200, "")
		n.Ok(t, "GET", blackbox.DevicesPath, nil, me).Read(t, &listed)
		if listed[1]["lastUsedAt"] == nil {
			t.Error("the use of the device was not noted")
		}

		// Only the device with a target is woken, once, by a message without details.
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
func TestDemoDeviceApprovesAndDenies(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := blackbox.Patient(s).Start()
		demo := s.Seeded("user")
		x, _ := n.Session(t, demo)
		app := blackbox.Enrolled(t, n, demo, blackbox.Headers{"x-auth": x})
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
		// First the token comes from the environment and the code from a flag; then both come from standard
		// input.
		for i, alg := range []string{"ES256", "EdDSA"} {
			var got blackbox.Output
			if i == 0 {
				got = s.CommandWith([]string{"DEVICE_TOKEN=" + x}, "", "device", "enroll", "--key", file, "--server",
					n.URL+"/", "--alg", alg, "--method", "TOTP", "--code", app.Next(t))
			} else {
				got = s.Command(x+"\n"+app.Next(t)+"\n", "device", "enroll", "--key", file, "--server", n.URL, "--alg", alg)
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
			if got := run(0, "", "ongoing"); !strings.Contains(got.Out, "no challenge is pending") {
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
			if got := run(1, "", "approve"); !strings.Contains(got.ErrOut, "2 challenges") {
				t.Errorf("%s", got.ErrOut)
			}
			if got := run(0, "", "approve", f.ChallengeID); !strings.Contains(got.Out, "Sign-in: approved, and executed") {
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
			// The alarm denies what waits, and needs the id of what has ended.
			run(1, "", "alarm")
			third := n.Login(t, demo)
			if got := run(0, "", "alarm"); !strings.Contains(got.Out, "the challenge is reported") {
				t.Errorf("%s", got.Out)
			}
			if blackbox.ReadFinal(t, n.Result(t, third).Is(t, 200, "")).ExecResult.Success {
				t.Error("the reported login succeeded")
			}
			n.Do(t, "GET", "/auth/sessions", nil, blackbox.Headers{"x-auth": x}).Is(t, 401, "TOKEN_REVOKED")
			if got := run(0, "", "alarm", third.ChallengeID); !strings.Contains(got.Out, "0 sessions ended") {
				t.Errorf("%s", got.Out)
			}
			x, _ = n.Session(t, demo)
			if i == 0 {
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
