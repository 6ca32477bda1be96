package access

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"castellan/domain/factor/intent"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
	"castellan/internal/blackbox"
)

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
		if !strings.Contains(policies, `"intent":"required"`) {
			t.Errorf("the policies do not show the option: %s", policies)
		}

		f := n.Login(t, demo)
		item := intentOf(t, p, f)
		if string(item.Intent) == "" || intent.Digest(item.Intent) != item.IntentDigest {
			t.Fatalf("the digest of %s is not %s", item.Intent, item.IntentDigest)
		}
		d, err := intent.Parse(item.Intent)
		if err != nil || d.ChallengeID != f.ChallengeID || d.Action != "LOGIN" || d.Title == "" || len(d.Rows) < 2 {
			t.Fatalf("%v: %s", err, item.Intent)
		}
		if plain := string(p.Ongoing(t).Body); strings.Contains(plain, "intent") {
			t.Errorf("without the parameter: %s", plain)
		}
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
	t.Helper()
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
