package edge

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/http/rest"
)

// item is a record that is its own mark.
type item struct{ N int }

func (r item) Mark() item { return r }

// A growing list: pages of its own size, no line twice, the filter kept in the
// link, and the count of all for a request that asks (D-GEN-11).
func TestPaging(t *testing.T) {
	type in struct {
		Even *bool `json:"even"`
		rest.Paging
	}
	const rows = 7
	read := func(_ context.Context, even *bool, q page.Query[item]) (out page.Of[item], err error) {
		if out.Total = 70; q.After == nil {
			q.After = &item{rows}
		}
		for n := q.After.N - 1; n >= 0 && !out.More; n-- {
			if out.More = len(out.Records) == q.Limit; !out.More && (even == nil || *even == (n%2 == 0)) {
				out.Records = append(out.Records, item{n})
			}
		}
		return out, nil
	}
	list := func(ctx context.Context, who rest.Caller, in in) (rest.Reply[[]string], error) {
		return rest.List(ctx, who, in.Paging, in.Even, read, func(r item) string { return fmt.Sprint("row ", r.N) })
	}
	s := serve(t, allow(), rest.Get("/rows", "", rest.User, list))
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
		storetest.Equal(t, fmt.Sprint(walk(c.target)), c.want, c.target)
	}
	storetest.Equal(t, do(t, s, "GET", "/rows?count=true", "", "x-auth: u1").header.Get("X-Total-Count"), "70", "total")
	if a := do(t, s, "GET", "/rows", "", "x-auth: u1"); a.header.Get("X-Total-Count") != "" || a.header.Get("Link") != "" {
		t.Errorf("headers nobody asked for: %v", a.header)
	}
	for _, q := range []string{"limit=0", "limit=1001", "cursor=%21", "cursor=eHg"} {
		do(t, s, "GET", "/rows?"+q, "", "x-auth: u1").is(t, 400, fault.InvalidField, q)
	}
}

// The link to the next page repeats the request, wherever and however it did (D-GEN-01, D-GEN-11).
func TestPagingOfBody(t *testing.T) {
	type in struct {
		Text  *string      `json:"text" alias:"old_text"`
		Even  *bool        `json:"even"`
		N     *int         `json:"n"`
		Names rest.Strings `json:"names,omitempty"`
		More  rest.JSON    `json:"more,omitempty"`
		rest.Paging
	}
	read := func(_ context.Context, _ rest.None, q page.Query[item]) (page.Of[item], error) {
		return page.Of[item]{Records: make([]item, q.Limit), More: true}, nil
	}
	list := func(ctx context.Context, who rest.Caller, in in) (rest.Reply[[]item], error) {
		r, err := rest.List(ctx, who, in.Paging, rest.None{}, read, func(r item) item { return r })
		in.Cursor, in.Count = nil, nil
		text, _ := json.Marshal(in)
		r.Headers = append(r.Headers, rest.Header{Name: "Seen", Value: string(text)})
		return r, err
	}
	s := serve(t, allow(), rest.Get("/rows", "", rest.User, list))
	for _, c := range []struct{ query, body, want string }{
		{"", `{"text":"LOGIN","limit":1}`, `{"text":"LOGIN","even":null,"n":null,"limit":1,"cursor":null,"count":null}`},
		{"", `{"text":"a&b=c,ş +%","even":true,"n":-1.50e1,"limit":2}`,
			`{"text":"a\u0026b=c,ş +%","even":true,"n":-15,"limit":2,"cursor":null,"count":null}`},
		{"", `{"old_text":"x","even":null,"names":["a,b","c"],"more":{"k":"v"},"limit":1,"unknown":"u","otp":"1"}`,
			`{"text":"x","even":null,"n":null,"names":["a,b","c"],"more":{"k":"v"},"limit":1,"cursor":null,"count":null}`},
		{"", `{"names":"a,b","more":"[1]","limit":1}`,
			`{"text":null,"even":null,"n":null,"names":["a,b"],"more":[1],"limit":1,"cursor":null,"count":null}`},
		{"names=a&names=b&n=7&limit=1", `{"names":["c"],"n":9,"limit":50,"text":""}`,
			`{"text":"","even":null,"n":7,"names":["a","b"],"limit":1,"cursor":null,"count":null}`},
		{"names[]=a&text=x;y%22%3E&limit=1", "",
			`{"text":"x;y\"\u003e","even":null,"n":null,"names":["a"],"limit":1,"cursor":null,"count":null}`},
	} {
		a := do(t, s, "GET", "/rows?"+c.query, c.body, "x-auth: u1")
		next, ok := strings.CutSuffix(strings.TrimPrefix(a.header.Get("Link"), "<"), `>; rel="next"`)
		if a.status != 200 || a.header.Get("Seen") != c.want || !ok || strings.Contains(next, "otp") {
			t.Fatalf("%s %s: %d %s, %v", c.query, c.body, a.status, a.body, a.header)
		}
		if b := do(t, s, "GET", next, "", "x-auth: u1"); b.header.Get("Seen") != c.want {
			t.Errorf("%s: %d %s; saw %s, want %s", next, b.status, b.body, b.header.Get("Seen"), c.want)
		}
	}
}

// AsAdmin is set for audiences that use it, and is checked again when a captured request runs.
func TestAsAdmin(t *testing.T) {
	acts := true
	opts := allow()
	opts.ActsAsAdmin = func(who rest.Caller, e *rest.Endpoint) bool { return acts && who.UserID == "chief" }
	tell := func(_ context.Context, who rest.Caller, _ rest.None) (rest.Data[bool], error) {
		return rest.Data[bool]{Data: who.AsAdmin}, nil
	}
	s := serve(t, opts, rest.Get("/either", "", rest.User, tell).For(rest.SelfOrAdmin),
		rest.Get("/self", "", rest.User, tell))
	for target, want := range map[string]string{"/either chief": "true", "/either u1": "false", "/self chief": "false"} {
		path, who, _ := strings.Cut(target, " ")
		storetest.Equal(t, do(t, s, "GET", path, "", "x-auth: "+who).body, `{"data":`+want+`}`, target)
	}
	c := Captured{Method: "GET", Path: "/either", Caller: rest.Caller{UserID: "chief", AsAdmin: true}}
	for _, now := range []bool{true, false} {
		acts = now
		out := storetest.Value(s.RunCaptured(t.Context(), c))(t)
		storetest.Equal(t, string(out), fmt.Sprintf(`{"data":%v}`, now), "captured")
	}
}
