package office

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"castellan/internal/blackbox"
)

// doctorOutput is the output of castellan doctor --json, and the data of GET /admin/setup.
type doctorOutput struct {
	Mode      string
	CheckedAt *string
	Findings  []struct{ Key, Severity, State, Effect, Mend string }
}

func (o doctorOutput) keys(severity string) (keys []string) {
	for _, f := range o.Findings {
		if f.Severity == severity {
			keys = append(keys, f.Key)
		}
	}
	return keys
}

// The command checks a missing, a migrated and a serving database, writes nothing, and fails in production
// mode only. The endpoint and the start's log show the same findings.
func TestDoctorReportsFindings(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		s.Empty()
		development := s.Command("", "doctor")
		if development.Code != 0 || !strings.HasPrefix(development.Out, "dev: control off (true), ") {
			t.Errorf("in development mode: exit %d, %s%s", development.Code, development.Out, development.ErrOut)
		}
		s.Production()
		doctor := func() (o doctorOutput) {
			t.Helper()
			got := s.Command("", "doctor", "--json")
			if err := json.Unmarshal([]byte(got.Out), &o); err != nil || o.Mode != "production" || o.CheckedAt == nil {
				t.Fatalf("%v, %s%s", err, got.Out, got.ErrOut)
			}
			if got.Code != 1 || !strings.Contains(got.ErrOut, "controls that are off") {
				t.Errorf("exit %d, %s", got.Code, got.ErrOut)
			}
			return o
		}
		first := doctor()
		lacks := map[string]string{"sqlite": "database.url", "postgres": "database schema"}[s.Kind]
		if !slices.Contains(first.keys("fault"), lacks) {
			t.Errorf("before the first start: faults %q, want %s", first.keys("fault"), lacks)
		}
		if _, err := os.Stat(s.Dir); err == nil && s.Kind == "sqlite" {
			t.Error("the data folder was made")
		}
		if s.Kind == "postgres" {
			if n := s.Count("information_schema.tables WHERE table_schema = 'public'"); n > 0 {
				t.Errorf("%d tables were made", n)
			}
		}
		n := s.Start()
		running := doctor()
		for _, key := range []string{"TREASURY", "WITHDRAWAL_FEE", "WITHDRAWAL_MINIMUM", "mail.host", "sms.url"} {
			if !slices.Contains(running.keys("feature"), key) {
				t.Errorf("%s is not named: %q", key, running.keys("feature"))
			}
		}
		if faults := running.keys("fault"); !slices.Equal(faults, []string{"money policy groups"}) { // no administrator yet
			t.Errorf("faults of a running service: %q", faults)
		}
		n.Stop()
		log := n.Log()
		for _, f := range running.Findings {
			level := map[string]string{"control": "WARN", "feature": "INFO"}[f.Severity]
			if level == "" || strings.HasPrefix(f.Key, "database ") { // a start makes no live checks
				continue
			}
			if strings.Count(log, "level="+level+" msg=setup key="+logged(f.Key)+" severity="+f.Severity) < 1 {
				t.Errorf("the log has no line of %s at level %s", f.Key, level)
			}
		}
	})
}

// logged is a value as the log writes it.
func logged(text string) string {
	if strings.Contains(text, " ") {
		return `"` + text + `"`
	}
	return text
}
