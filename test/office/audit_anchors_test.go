package office

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"castellan/internal/blackbox"
)

// Checkpoints of the audit trail leave the database: in the log, and signed to an address. A kept checkpoint
// reveals rows that were deleted together with their checkpoints (D-EXT-03).
func TestAuditAnchorsRevealDeletedRows(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		type anchor struct {
			Counter int64
			MAC     string
			signed  bool
		}
		posted := make(chan anchor, 10)
		receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			var a anchor
			body, _ := io.ReadAll(r.Body)
			_ = json.Unmarshal(body, &a)
			a.signed = strings.HasPrefix(r.Header.Get("webhook-signature"), "v1,") &&
				r.Header.Get("webhook-id") == fmt.Sprint("audit-checkpoint-", a.Counter)
			posted <- a
		}))
		defer receiver.Close()
		s.Set("AUDIT_ANCHOR_URL="+receiver.URL, "AUDIT_ANCHOR_SECRET=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
		// A process publishes the current end of the trail when it stops.
		run := func() anchor {
			t.Helper()
			n := s.Start()
			n.Session(t, s.Seeded("user"))
			n.Stop()
			var a anchor
			select {
			case a = <-posted:
			case <-time.After(30 * time.Second):
				t.Fatalf("nothing was posted; the log:\n%s", n.Log())
			}
			if line := fmt.Sprintf(`counter=%d mac=%s`, a.Counter, a.MAC); !a.signed || !strings.Contains(n.Log(), line) &&
				!strings.Contains(n.Log(), fmt.Sprintf(`"counter":%d,"mac":"%s"`, a.Counter, a.MAC)) {
				t.Errorf("posted %+v; the log:\n%s", a, n.Log())
			}
			return a
		}
		verify := func(a anchor) blackbox.Output {
			t.Helper()
			return s.Command("", "audit", "verify", "--at-least", fmt.Sprintf("%d:%s", a.Counter, a.MAC))
		}
		one, two := run(), run()
		if one.Counter != 1 || two.Counter != 2 {
			t.Fatalf("%+v, %+v", one, two)
		}
		for _, a := range []anchor{one, two} {
			got := verify(a)
			if got.Code != 0 || !strings.Contains(got.Out, "all chains are valid") || !strings.Contains(got.Out, "anchored") {
				t.Errorf("at least %d: exit %d, %s%s", a.Counter, got.Code, got.Out, got.ErrOut)
			}
		}
		got := s.Command("", "audit", "verify")
		if got.Code != 0 || !strings.Contains(got.Out, "checkpoints from 1 on are not anchored") {
			t.Errorf("without one: exit %d, %s%s", got.Code, got.Out, got.ErrOut)
		}
		got = s.Command("", "audit", "verify", "--at-least", "two")
		if got.Code == 0 || !strings.Contains(got.ErrOut, "COUNTER:MAC") {
			t.Errorf("nonsense: exit %d, %s", got.Code, got.ErrOut)
		}
		s.Exec("DELETE FROM audit WHERE at > (SELECT at FROM audit_checkpoint WHERE counter = 1)")
		s.Exec("DELETE FROM audit_checkpoint WHERE counter = 2")
		if got := verify(one); got.Code != 0 {
			t.Errorf("what is left: exit %d, %s%s", got.Code, got.Out, got.ErrOut)
		}
		if got := verify(two); got.Code != 1 || !strings.Contains(got.ErrOut, "checkpoints end at 1, before 2") {
			t.Errorf("a cut end: exit %d, %s%s", got.Code, got.Out, got.ErrOut)
		}
	})
}
