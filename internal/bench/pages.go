package main

import (
	"net/url"
	"strings"
	"time"
)

// pages measures the cost of a page of a long list at its beginning, middle and end, and the cost of filters on a
// million accounts. By index each is the same.
func pages(b *bench) {
	many := b.many(1_000_000, 100_000, 2_000)
	b.report.begin("Pages of 100 of GET /admin/list-users, %d accounts, median time of an answer", many)
	b.onEach(cheap(), many, b.pagesOf)
}

// listed are filters of the list of accounts that match at most one, or half of all.
var listed = []struct{ about, query string }{
	{"by id", "userId=PAGE0077777"},
	{"by mail", "email=page0077777@bench.castellan.test"},
	{"by status", "status=active"},
	{"by the decision on the identity", "kycConfirm=false"},
	{"newest first", "isSortedByDate=true"},
}

func (b *bench) pagesOf(p *place, s *server) {
	v, token := administrator(s)
	defer v.Close()
	get := func(path string) (took float64) {
		began := time.Now()
		must(v.expect(200, "GET", path, token, ""))
		return time.Since(began).Seconds() * 1e3
	}
	// Every page to the end, of 1000: the positions of the measured pages.
	var starts []string
	for path := "/admin/list-users?limit=1000"; path != ""; path = v.next {
		get(path)
		starts = append(starts, path)
	}
	at := func(part float64) string {
		u, _ := url.Parse(starts[int(part*float64(len(starts)-1))])
		q := u.Query()
		q.Set("limit", "100")
		return u.Path + "?" + q.Encode()
	}
	of := series{}
	for range b.rounds {
		b.await()
		for _, asked := range append([]struct{ about, query string }{
			{"first page", at(0)}, {"page in the middle", at(0.5)}, {"page at the end", at(0.99)},
		}, listed...) {
			path := asked.query
			if !strings.HasPrefix(path, "/") {
				path = "/admin/list-users?limit=100&" + path
			}
			var took []float64
			for range 40 {
				took = append(took, get(path))
			}
			of.add(asked.about, median(took))
		}
		last := func(name string) float64 { return of[name][len(of[name])-1] }
		of.add("grown", last("page at the end")/last("first page"))
	}
	r := &b.report
	for _, name := range []string{"first page", "page in the middle", "page at the end"} {
		r.line(p.name+": "+name, "ms", of[name], bar{})
	}
	r.line(p.name+": page at the end, in first ones", "×", of["grown"], atMost(1.25))
	for _, l := range listed {
		r.line(p.name+": "+l.about, "ms", of[l.about], bar{})
	}
}

// copies creates accounts as copies of a seeded one, until there are that many.
func (p *place) copies(many int) {
	p.clone("u1@bench.castellan.test", 1, many-people-1, map[string]string{
		"id": "'PAGE' || k", "email": "'page' || k || '@bench.castellan.test'", "phone": "'+90599' || k"})
	p.analyze()
}
