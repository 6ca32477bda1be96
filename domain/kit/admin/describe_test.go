package admin_test

import (
	"fmt"
	"strings"
	"testing"

	"castellan/domain/kit/admin"
)

type limits struct {
	Most *int64 `json:"mostOf"`
}

type record struct {
	ID     int64 `audit:"-"`
	HostID string
	URL    string
	On     bool
	List   []string
	limits
	Limits limits
	Hash   []byte `audit:"-"`
}

// A record is described by its fields that are set, and a change by those that differ. A cut value differs by its
// digest, and a list by its elements, however long it is.
func TestDescriptions(t *testing.T) {
	hundred := make([]string, 100)
	for i := range hundred {
		hundred[i] = fmt.Sprintf("192.0.2.%d", i)
	}
	long := strings.Repeat("ü", 300)
	full := record{ID: 1, HostID: "a<b", On: true, List: []string{"x", "y", "x"}, Limits: limits{new(int64(7))},
		Hash: []byte("secret")}
	for _, c := range []struct {
		edit func(*record)
		want string
	}{
		{func(*record) {}, "unchanged"},
		{func(r *record) { r.ID, r.Hash = 2, nil }, "unchanged"},
		{func(r *record) { r.HostID, r.URL = "c", "u" }, `hostId "a<b" -> "c", url "" -> "u"`},
		{func(r *record) { r.On = false }, "on true -> false"},
		{func(r *record) { r.List = []string{"z", "x"} }, `list -["y","x"] +["z"]`},
		{func(r *record) { r.List = []string{"x", "x", "y"} }, `list ["x","y","x"] -> ["x","x","y"]`},
		{func(r *record) { r.List = append(hundred, "y", "x", "x") }, `list +["192.0.2.0","192.0.2.1",`},
		{func(r *record) { r.Limits.Most = nil }, `limits {"mostOf":7} -> {"mostOf":null}`},
		{func(r *record) { r.URL = "a\u202eb" }, `url "" -> "a[U+202E]b"`},
	} {
		next := full
		c.edit(&next)
		if got := admin.Difference(full, next); got != c.want && (len(c.want) < 30 || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%s; want %s", got, c.want)
		}
	}
	if got := admin.Values(full); got != `hostId "a<b", on true, list ["x","y","x"], limits {"mostOf":7}` {
		t.Error(got)
	}
	one, two := full, full
	one.URL, two.URL = long+"1", long+"2"
	got := admin.Difference(one, two)
	if before, after, _ := strings.Cut(got, " -> "); strings.TrimPrefix(before, "url ") == after || len(got) > 1400 ||
		!strings.Contains(got, "… (603 bytes, SHA-256 ") {
		t.Errorf("cut ends are not told apart: %s", got)
	}
}
