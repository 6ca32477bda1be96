package httpapi_test

import (
	"context"
	"regexp"
	"testing"

	"castellan/domain/kit/storetest"
	httpapi "castellan/http"
	"castellan/http/rest"
)

var (
	// mayName matches the names of fields that can name a user or a record of one.
	mayName = regexp.MustCompile(`(?i)^ids?$|ids?$|user|(^|[^e])member|mail|phone|account|owner|` +
		`subject|customer|person|entities`)
	// doesName matches those that name a user by themselves.
	doesName = regexp.MustCompile(`(?i)^user_?ids?$|(^|[^e])member|entities`)
)

// Every write of an administrator whose request has a field that can name a user declares the
// named users. Otherwise it declares why it names none (D-AUTH-03).
func TestWritesDeclareTheUsersTheyName(t *testing.T) {
	changesNothing := []string{"POST /admin/system/mfa/explain", "POST /admin/system/waf/explain",
		"POST /admin/system/waf/rehearse"}
	declared, exempt := 0, []string{}
	for _, e := range httpapi.Endpoints() {
		fields := fieldsMatching(e, mayName)
		bound := e.Method != "GET" && (e.Audience == rest.Admin || e.Audience == rest.SelfOrAdmin)
		switch n := e.Naming; {
		case !bound:
			if n.Declared() || n.NoUser != "" {
				t.Errorf("%s declares users, and the rule does not bind it", e.Key())
			}
		case n.Declared() && n.NoUser != "":
			t.Errorf("%s names users, and names none because %s", e.Key(), n.NoUser)
		case n.Rows && !n.Declared():
			t.Errorf("%s declares rows without users", e.Key())
		case n.Declared():
			declared++
		case n.NoUser != "":
			if len(fieldsMatching(e, doesName)) > 0 {
				exempt = append(exempt, e.Key())
			}
		case len(fields) > 0:
			t.Errorf("%s has the fields %q: declare the users that it names by Names or NamesBy, or say by NamesNoUser "+
				"why it names none (docs/add-a-section.md, section 1)", e.Key(), fields)
		}
	}
	storetest.Same(t, exempt, changesNothing, "fields that name a user and are exempt")
	if declared < 25 {
		t.Errorf("only %d endpoints declare users", declared)
	}
}

// fieldsMatching are the fields of a request whose names match, those of inner objects too.
func fieldsMatching(e rest.Endpoint, name *regexp.Regexp) (found []string) {
	for _, f := range e.Fields() {
		if name.MatchString(f.Name) {
			found = append(found, f.Name)
		}
		for _, inner := range f.Inner() {
			if name.MatchString(inner.Name) {
				found = append(found, f.Name+"."+inner.Name)
			}
		}
	}
	return found
}

// The walk finds a write without a declaration.
func TestFieldsThatNameUsersAreFound(t *testing.T) {
	type inner struct {
		OwnerID string `json:"ownerId"`
	}
	type request struct {
		UserID  string  `json:"userId"`
		Rows    []inner `json:"rows"`
		Amount  int64   `json:"amount"`
		Details string  `json:"details"`
	}
	e := rest.Post("/x", "", rest.Tenant,
		func(context.Context, rest.Caller, request) (rest.None, error) { return rest.None{}, nil })
	storetest.Same(t, fieldsMatching(e, mayName), []string{"userId", "rows.ownerId"})
}
