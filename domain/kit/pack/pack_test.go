package pack

import (
	"math"
	"slices"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
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
		storetest.Equal(t, r.Int(), n)
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

// An integer has at most 64 bits in at most ten bytes, and each length up to the end of the data is valid.
func TestBoundsOfValues(t *testing.T) {
	const nine, ff = "\x80\x80\x80\x80\x80\x80\x80\x80\x80", "\xff\xff\xff\xff\xff\xff\xff\xff"
	for data, want := range map[string]int64{"\x7f": -64, "\x80\x01": 64, ff[:7] + "\x7f": math.MinInt64 >> 8,
		ff + "\x7f": math.MinInt64 >> 1, nine + "\x01": 1 << 62, ff + "\xff\x01": math.MinInt64} {
		r := Read(data)
		if got := r.Int(); got != want || r.Err() != nil || !r.Exact() {
			t.Errorf("%x: %d, %v, want %d", data, got, r.Err(), want)
		}
	}
	for _, data := range []string{nine + "\x02", nine + "\x7f", nine + "\x80", nine + "\x80\x00", nine, ff + "\xff\x02x"} {
		r := Read(data)
		if got := r.Int(); got != 0 || r.Err() == nil || r.More() || r.Exact() {
			t.Errorf("%x: %d, %v", data, got, r.Err())
		}
	}
	for n, data := range map[int]string{0: "\x00", 1: "\x01\x00", 2: "\x02\x00\x00"} {
		r := Read(data)
		if got := r.Strings(); len(got) != n || r.Err() != nil || !r.Exact() {
			t.Errorf("%x: %q, %v", data, got, r.Err())
		}
	}
	for data, want := range map[string]string{"\x03abc": "abc", "\x00": "", "\x02abc": "ab"} {
		r := Read(data)
		if got := r.String(); got != want || r.Err() != nil || r.Exact() != (data != "\x02abc") {
			t.Errorf("%x: %q, %v", data, got, r.Err())
		}
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
