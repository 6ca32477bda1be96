package calibrate

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/kit/storetest"
)

// The strongest set that serves the logins is chosen, whatever the order, and a published set wins a tie.
func TestCalibrateChoosesTheStrongestThatServes(t *testing.T) {
	set := func(name string, kib, passes uint32, served float64) calibrated {
		return calibrated{password.Candidate{Name: name, Params: password.Params{MemoryKiB: kib, Passes: passes, Lanes: 1}},
			time.Millisecond, served}
	}
	all := []calibrated{set("usual", 19456, 2, 200), set("too slow", 65536, 3, 49), set("", 47104, 2, 50),
		set("", 19456, 2, 300)}
	all = append(all, calibrated{Candidate: password.Candidate{Params: password.Params{MemoryKiB: 1 << 21, Passes: 1,
		Lanes: 4}}})
	for logins, want := range map[int]string{50: "argon2_memory_kib: 47104", 51: "argon2_memory_kib: 19456", 301: ""} {
		var out bytes.Buffer
		err := printSets(&out, all, logins, 1)
		if (err == nil) != (want != "") || !strings.Contains(out.String(), want) || !strings.Contains(out.String(), "–") {
			t.Errorf("%d logins: %v\n%s", logins, err, out.String())
		}
	}
	if best, _ := strongest(all, 100); best.Name != "usual" {
		t.Errorf("%+v", best)
	}
}

// The sets that fit into memory are measured.
func TestCalibrateMeasures(t *testing.T) {
	all := storetest.Value(measureAll(t.Context(), 1e9, 1, 2, 2*8<<20))(t)
	for _, m := range all {
		if fits := m.MemoryBytes() <= 8<<20; (m.hash > 0) != fits || fits && m.served <= 0 {
			t.Errorf("%+v", m)
		}
	}
}
