package access

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"castellan/domain/factor/intent"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
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
		storetest.Contains(t, run(1, "", "ongoing").ErrOut, "device enroll", "without a device")
		storetest.Contains(t, run(1, "\n", "enroll", "--server", n.URL).ErrOut, "token", "without a token")
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
				storetest.Contains(t, run(1, x+"\n000000\n", "enroll", "--server", n.URL).ErrOut, "exists", "over another device")
			}
			storetest.Contains(t, run(0, "", "ongoing").Out, "no challenge is pending")
			run(1, "", "approve")
			f := n.Login(t, demo)
			if got := run(0, "", "ongoing"); !strings.Contains(got.Out, f.ChallengeID) ||
				!strings.Contains(got.Out, "Sign-in") || !strings.Contains(got.Out, "IP address: 127.0.0.1") {
				t.Errorf("%s", got.Out)
			}
			if got := run(0, "", "ongoing", "--json"); !json.Valid([]byte(got.Out)) ||
				!strings.Contains(got.Out, `"infoTable"`) {
				t.Errorf("%s", got.Out)
			}
			second := n.Login(t, demo)
			storetest.Contains(t, run(1, "", "approve").ErrOut, "2 challenges")
			storetest.Contains(t, run(0, "", "approve", f.ChallengeID).Out, "Sign-in: approved, and executed")
			if n.Result(t, f).Is(t, 200, "").Header.Get("x-auth") == "" {
				t.Error("the login was not completed")
			}
			storetest.Contains(t, run(0, "", "deny").Out, "denied")
			if blackbox.ReadFinal(t, n.Result(t, second).Is(t, 200, "")).ExecResult.Success {
				t.Error("the denied login succeeded")
			}
			// The alarm denies what waits, and needs the id of what has ended.
			run(1, "", "alarm")
			third := n.Login(t, demo)
			storetest.Contains(t, run(0, "", "alarm").Out, "the challenge is reported")
			if blackbox.ReadFinal(t, n.Result(t, third).Is(t, 200, "")).ExecResult.Success {
				t.Error("the reported login succeeded")
			}
			n.Do(t, "GET", "/auth/sessions", nil, blackbox.Headers{"x-auth": x}).Is(t, 401, "TOKEN_REVOKED")
			storetest.Contains(t, run(0, "", "alarm", third.ChallengeID).Out, "0 sessions ended")
			x, _ = n.Session(t, demo)
			if i == 0 {
				storetest.Must(t, os.Remove(file))
			}
		}
	})
}

// Alarms that race end all sessions, and none is lost to another one.
func TestDeviceAlarmsRace(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		n := blackbox.Patient(s).Start()
		demo := s.Seeded("user")
		x, _ := n.Session(t, demo)
		p := blackbox.Enroll(t, n, demo, x, device.ES256, "")
		f := n.Login(t, demo)
		const path = blackbox.DevicesPath + "/alarm"
		body := fmt.Sprintf(`{"challengeId":%q}`, f.ChallengeID)
		for _, a := range blackbox.Crowd(t, 4, func(int) (blackbox.Answer, error) {
			return n.Try("POST", path, body, p.Sign(t, "POST", path, []byte(body), device.Claims{}))
		}) {
			a.Is(t, 200, "")
		}
		n.Do(t, "GET", "/auth/sessions", nil, blackbox.Headers{"x-auth": x}).Is(t, 401, "TOKEN_REVOKED")
	})
}

// The bound holds while nodes join and leave and requests go to every node.
func TestPushLimitHoldsInCluster(t *testing.T) {
	t.Parallel()
	c := blackbox.ThreeNodes(t, blackbox.Unlimited...)
	demo := c.AddUser("user")
	x, _ := c.Nodes[0].Session(t, demo)
	blackbox.Enroll(t, c.Nodes[0], demo, x, device.ES256, "")
	var sent, begun atomic.Int64
	var wg sync.WaitGroup
	nodes := slices.Clone(c.Nodes)
	for i := range 24 {
		wg.Go(func() {
			if i == 12 {
				nodes[2].Kill()
			}
			f, err := nodes[i%3].TryLogin(demo)
			if err != nil { // from a node that has left, or that waits for the owner's successor
				return
			}
			begun.Add(1)
			if blackbox.Offered(f) {
				sent.Add(1)
			}
		})
	}
	wg.Wait()
	c.Forget(nodes[2])
	c.Join()
	blackbox.Whole(t, c)
	for i := range 6 {
		if blackbox.Offered(c.Nodes[i%3].Login(t, demo)) {
			sent.Add(1)
		}
	}
	if rows := c.Count("push WHERE state = 0"); rows < 1 || rows > 3 || sent.Load() > 3 || begun.Load() < 3 {
		t.Errorf("%d starts, %d with a push, %d in the rows", begun.Load(), sent.Load(), rows)
	}
}

// shown is an item of the pending pushes with its intent.
type shown struct {
	Data         struct{ ChallengeID string }
	Intent       json.RawMessage
	IntentDigest string
}

// A device signs what its owner read, and the evidence of it verifies offline, also after the keys were rotated twice
// (D-EXT-09).
func TestIntentIsSignedAndEvident(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := blackbox.Patient(s).Start()
		demo := s.Seeded("user")
		x, _ := n.Session(t, demo)
		p := blackbox.Enroll(t, n, demo, x, device.ES256, "")
		who := blackbox.Admin(t, s, n)
		policy := blackbox.Policy(t, n, who, "LOGIN", 1, `[["PUSH"],["SMS"]]`, `,"intent":"required"`)
		policies := string(n.Ok(t, "GET", "/admin/system/mfa/policies", nil, who).Body)
		storetest.Contains(t, policies, `"intent":"required"`, "policies")

		f := n.Login(t, demo)
		item := intentOf(t, p, f)
		if string(item.Intent) == "" || intent.Digest(item.Intent) != item.IntentDigest {
			t.Fatalf("the digest of %s is not %s", item.Intent, item.IntentDigest)
		}
		d, err := intent.Parse(item.Intent)
		if err != nil || d.ChallengeID != f.ChallengeID || d.Action != "LOGIN" || d.Title == "" || len(d.Rows) < 2 {
			t.Fatalf("%v: %s", err, item.Intent)
		}
		storetest.Lacks(t, string(p.Ongoing(t).Body), "intent", "without the parameter")
		claim := func(value string) func(*device.Claims) { return func(c *device.Claims) { c.Intent = value } }
		for _, wrong := range []string{"", "x", item.IntentDigest + "x", intent.Digest([]byte("another"))} {
			p.Answer(t, f, "APPROVED", claim(wrong)).Is(t, 401, "DEVICE_SIGNATURE_INVALID")
			p.Answer(t, f, "DENIED", claim(wrong)).Is(t, 401, "DEVICE_SIGNATURE_INVALID")
		}
		p.Answer(t, f, "APPROVED", claim(item.IntentDigest)).Is(t, 200, "")

		// Where the option is not required, a proof without the claim is accepted and a wrong one is not.
		blackbox.ChangePolicy(t, n, who, policy, `,"intent":"optional"`)
		second := n.Login(t, demo)
		p.Answer(t, second, "APPROVED", claim("x")).Is(t, 401, "DEVICE_SIGNATURE_INVALID")
		p.Answer(t, second, "APPROVED").Is(t, 200, "")
		third := n.Login(t, demo)
		p.Answer(t, third, "DENIED").Is(t, 200, "")

		read := func(id string) string {
			return string(n.Do(t, "GET", "/admin/challenges/"+id+"/evidence", nil, who).Is(t, 200, "").Body)
		}
		verify := func(of string, options ...string) string {
			t.Helper()
			out := s.Command(of, append([]string{"intent", "verify", "-"}, options...)...)
			last := regexp.MustCompile(`, thumbprint (\S+)\nvalid( if (\S+) is a key of the service)?\n$`).
				FindStringSubmatch(out.Out)
			if out.Code != 0 || last == nil || options == nil && last[1] != last[3] || options != nil && last[2] != "" {
				t.Fatalf("exit %d: %s%s\n%s", out.Code, out.Out, out.ErrOut, of)
			}
			return out.Out
		}
		early, denied := read(f.ChallengeID), read(third.ChallengeID)
		if got := verify(denied); !strings.Contains(got, "PUSH: denied at ") || !strings.Contains(got, ": denied") {
			t.Errorf("a denial: %s", got)
		}
		lie := strings.Replace(denied, `"state":"DENIED"`, `"state":"SUCCESS"`, 1)
		if out := s.Command(lie, "intent", "verify", "-"); out.Code != 1 || lie == denied {
			t.Errorf("a denial that is shown as a success: exit %d: %s", out.Code, out.Out)
		}

		for range 2 {
			for _, purpose := range []string{"signing", "sealing", "hashing", "master"} {
				s.Succeeds("", "keys", "rotate", purpose, "--force")
			}
		}
		n.Stop()
		n = s.Start()
		who = blackbox.Admin(t, s, n)
		x, _ = n.Session(t, demo)
		got := n.Do(t, "GET", "/admin/challenges/"+f.ChallengeID+"/evidence", nil, who)
		got.Is(t, 200, "")

		// The key of the service is in each file. Its thumbprint stays in the list of keys.
		thumbprint := regexp.MustCompile(`(?m), thumbprint (\S+)$`)
		was, is := thumbprint.FindStringSubmatch(verify(early)), thumbprint.FindStringSubmatch(verify(string(got.Body)))
		list := s.Command("", "keys", "list").Out
		if was == nil || is == nil || was[1] == is[1] || !strings.Contains(list, "expired; thumbprint "+was[1]) ||
			!strings.Contains(list, "thumbprint "+is[1]) {
			t.Errorf("the keys %q and %q in\n%s", was, is, list)
		}
		verify(early, "--service-key", is[1], "--service-key", was[1])
		storetest.Equal(t, s.Command(early, "intent", "verify", "-", "--service-key", is[1]).Code, 1, "exit with another key")
		file := filepath.Join(t.TempDir(), "evidence.json")
		storetest.Must(t, os.WriteFile(file, got.Body, 0o600))
		if out := s.Command("", "intent", "verify", file); out.Code != 0 ||
			!strings.Contains(out.Out, "signed by device "+p.ID) ||
			strings.Contains(out.Out, "without signing") || !strings.Contains(out.Out, "success") {
			t.Fatalf("exit %d: %s%s\n%s", out.Code, out.Out, out.ErrOut, got.Body)
		}
		for _, change := range [][2]string{{`\"title\":\"`, `\"title\":\"x`}, {item.IntentDigest, intent.Digest(nil)},
			{p.ID, f.ChallengeID}, {`"required":1`, `"required":2`}, {`"state":"SUCCESS"`, `"state":"FAILURE"`}} {
			changed := strings.Replace(string(got.Body), change[0], change[1], 1)
			if out := s.Command(changed, "intent", "verify", "-"); out.Code != 1 || changed == string(got.Body) {
				t.Errorf("%q became %q: exit %d: %s%s", change[0], change[1], out.Code, out.Out, out.ErrOut)
			}
		}
		n.Do(t, "GET", "/admin/challenges/unknown/evidence", nil, who).
			Is(t, 404, "RECORD_NOT_FOUND")
		n.Do(t, "GET", "/admin/challenges/"+f.ChallengeID+"/evidence", nil, blackbox.Headers{"x-auth": x}).
			Is(t, 403, "FORBIDDEN")
	})
}

// intentOf returns the pending push of a flow with its intent.
func intentOf(t *testing.T, p blackbox.Pocket, f blackbox.Flow) shown {
	path := blackbox.OngoingPath + "?intent=true&deviceId=" + p.ID
	var all []shown
	p.N.Do(t, "GET", path, nil, p.Sign(t, "GET", path, nil, device.Claims{})).Is(t, 200, "").Read(t, &all)
	for _, one := range all {
		if one.Data.ChallengeID == f.ChallengeID {
			return one
		}
	}
	t.Fatalf("no push of challenge %s in %+v", f.ChallengeID, all)
	return shown{}
}
