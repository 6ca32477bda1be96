package rest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"castellan/domain/fault"
)

// A growing list: pages of its own size, no line twice, the filter kept in the
// link, and a number of all for who asks (D-GEN-11).
func TestPaging(t *testing.T) {
	type in struct {
		Even *bool `json:"even"`
		Paging
	}
	const rows = 7
	s := serve(t, allow(), Get("/rows", "", User, func(_ context.Context, who Caller, in in) (Reply[[]string], error) {
		after, err := in.After()
		if err != nil {
			return Reply[[]string]{}, err
		}
		at := rows
		if after != "" {
			if at, err = strconv.Atoi(after); err != nil {
				return Reply[[]string]{}, in.Foreign()
			}
		}
		var page []int
		for n := at - 1; n >= 0 && len(page) <= in.Limit; n-- {
			if in.Even == nil || *in.Even == (n%2 == 0) {
				page = append(page, n)
			}
		}
		return Page(who, in.Paging, page, 70, func(n int) string { return fmt.Sprint("row ", n) }, strconv.Itoa), nil
	}))
	walk := func(next string) (pages []string) {
		for next != "" {
			a := do(t, s, "GET", next, "", "x-auth: u1")
			if a.status != 200 || len(pages) > rows {
				t.Fatalf("%s: %d %s", next, a.status, a.body)
			}
			pages = append(pages, a.body)
			_, after, _ := strings.Cut(a.header.Get("Link"), "<")
			next, _, _ = strings.Cut(after, `>; rel="next"`)
		}
		return pages
	}
	for _, c := range []struct{ target, want string }{
		{"/rows", `[["row 6","row 5","row 4","row 3","row 2","row 1","row 0"]]`},
		{"/rows?limit=7", `[["row 6","row 5","row 4","row 3","row 2","row 1","row 0"]]`},
		{"/rows?limit=3", `[["row 6","row 5","row 4"] ["row 3","row 2","row 1"] ["row 0"]]`},
		{"/rows?even=true&limit=2", `[["row 6","row 4"] ["row 2","row 0"]]`},
	} {
		if got := fmt.Sprint(walk(c.target)); got != c.want {
			t.Errorf("%s: %s", c.target, got)
		}
	}
	if a := do(t, s, "GET", "/rows?count=true", "", "x-auth: u1"); a.header.Get("X-Total-Count") != "70" {
		t.Errorf("total %q", a.header.Get("X-Total-Count"))
	}
	if a := do(t, s, "GET", "/rows", "", "x-auth: u1"); a.header.Get("X-Total-Count") != "" || a.header.Get("Link") != "" {
		t.Errorf("headers nobody asked for: %v", a.header)
	}
	for _, q := range []string{"limit=0", "limit=1001", "cursor=%21", "cursor=eHg"} {
		if a := do(t, s, "GET", "/rows?"+q, "", "x-auth: u1"); a.status != 400 || a.code() != string(fault.InvalidField) {
			t.Errorf("%s: %d %s", q, a.status, a.body)
		}
	}
}

// Who acts for others is told to the handler where the audience asks for it,
// and judged anew when a captured request runs.
func TestAsAdmin(t *testing.T) {
	acts := true
	opts := allow()
	opts.ActsAsAdmin = func(who Caller, e *Endpoint) bool { return acts && who.UserID == "chief" }
	tell := func(_ context.Context, who Caller, _ None) (Data[bool], error) { return Data[bool]{who.AsAdmin}, nil }
	s := serve(t, opts, Get("/either", "", User, tell).For(SelfOrAdmin), Get("/self", "", User, tell))
	for target, want := range map[string]string{"/either chief": "true", "/either u1": "false", "/self chief": "false"} {
		path, who, _ := strings.Cut(target, " ")
		if a := do(t, s, "GET", path, "", "x-auth: "+who); a.body != `{"data":`+want+`}` {
			t.Errorf("%s: %s", target, a.body)
		}
	}
	c := Captured{Method: "GET", Path: "/either", Caller: Caller{UserID: "chief", AsAdmin: true}}
	for _, now := range []bool{true, false} {
		acts = now
		if out, err := s.RunCaptured(t.Context(), c); err != nil || string(out) != fmt.Sprintf(`{"data":%v}`, now) {
			t.Errorf("captured, acts %v: %s, %v", now, out, err)
		}
	}
}
