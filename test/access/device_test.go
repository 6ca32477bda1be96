package access

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

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
				storetest.Must(t, os.Remove(file))
			}
		}
	})
}
