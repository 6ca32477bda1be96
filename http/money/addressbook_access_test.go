package money_test

import (
	"strings"
	"testing"

	httpaddressbook "castellan/http/money/addressbook"
	"castellan/http/rest"
)

// Section 4.18 of the interface: every endpoint requires x-auth, before it reads the body.
func TestAccess(t *testing.T) {
	var got []string
	for _, e := range (httpaddressbook.Group{}).Endpoints() {
		if e.Credential != rest.User || e.Audience != rest.SelfUser || e.Extension {
			t.Errorf("%s: %s for %s", e.Key(), e.Credential, e.Audience)
		}
		got = append(got, e.Method)
	}
	if strings.Join(got, " ") != "GET POST PATCH DELETE" {
		t.Errorf("served %v", got)
	}
	addressbookBoth(t, func(t *testing.T, s *addressbookService) {
		for _, method := range got {
			for _, token := range []string{"", "nonsense"} {
				s.wants(token, method, "", 401, "UNAUTHENTICATED")
			}
		}
	})
}
