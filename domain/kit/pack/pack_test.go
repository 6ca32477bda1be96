package pack

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestRoundTrip(t *testing.T) {
	long := strings.Repeat("x", 300)
	b := []byte{7}
	b = String(b, "ışık")
	b = String(b, []byte(long))
	b = Strings(b, []string{"a", ""})
	b = Strings(b, nil)
	for _, n := range []int64{0, -1, 63, math.MaxInt64, math.MinInt64} {
		b = Int(b, n)
	}
	b = Bool(Bool(b, true), false)
	r := Read(string(b[1:]))
	if a, c := r.String(), r.String(); a != "ışık" || c != long {
		t.Errorf("%q, %q", a, c)
	}
	if a, c := r.Strings(), r.Strings(); !slices.Equal(a, []string{"a", ""}) || c == nil || len(c) != 0 {
		t.Errorf("%q, %q", a, c)
	}
	for _, n := range []int64{0, -1, 63, math.MaxInt64, math.MinInt64} {
		if got := r.Int(); got != n {
			t.Errorf("%d, want %d", got, n)
		}
	}
	if a := r.Bool(); !a || r.Exact() {
		t.Errorf("%v, and one is left", a)
	}
	if c := r.Bool(); c || r.More() || !r.Exact() || r.Err() != nil {
		t.Errorf("%v, more %v, %v", c, r.More(), r.Err())
	}
	if r.String() != "" || r.Int() != 0 || r.Bool() || len(r.Strings()) != 0 || r.Err() != nil || r.Exact() {
		t.Errorf("after the end: %v", r.Err())
	}
}

func TestTruncatedInput(t *testing.T) {
	whole := string(Strings(String(nil, "abc"), []string{"de", "f"}))
	for n := 1; n < len(whole); n++ {
		r := Read(whole[:n])
		_ = r.String()
		if list := r.Strings(); n > 4 && r.Err() == nil && len(list) == 2 && list[1] == "f" {
			t.Errorf("%d bytes read as the whole", n)
		}
	}
	for _, bad := range []string{"\x05abc", "\x80", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", "\xff\xff\xff\xff\x0fa"} {
		r := Read(bad)
		if s := r.String(); s != "" || r.Err() == nil || r.More() {
			t.Errorf("%q reads as %q", bad, s)
		}
	}
	if r := Read("\xff\xff\xff\xff\x0fa"); r.Strings() != nil || r.Err() == nil {
		t.Error("a list longer than what holds it")
	}
}

// No input makes the reader panic, and every written value is read back.
func FuzzRead(f *testing.F) {
	f.Add("\x03abc\x02\x01a\x00\x7f", int64(-5), "x")
	f.Fuzz(func(t *testing.T, data string, n int64, s string) {
		r := Read(data)
		for r.More() {
			_ = r.String()
			r.Int()
			r.Strings()
			r.Bool()
		}
		again := Read(string(Int(String(nil, s), n)))
		if again.String() != s || again.Int() != n || again.Err() != nil {
			t.Errorf("%q, %d", s, n)
		}
	})
}
