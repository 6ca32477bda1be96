package account_test

import (
	"fmt"
	"strings"
	"testing"

	httpuser "castellan/http/account/user"
	"castellan/http/apitest"
	"castellan/http/edge"
	"castellan/http/rest"
	"castellan/persistence"
	accountstore "castellan/persistence/account"
)

// The names of accounts need no permission for the list of accounts; the contact data does.
func TestUserNames(t *testing.T) {
	userBoth(t, func(t *testing.T, _ *apitest.Site, db *persistence.DB) {
		contacts := false
		s := apitest.Serve(t, edge.Options{}, httpuser.Group{Directory: accountstore.NewUsers(db),
			Shows: func(_ rest.Caller, endpoint string) bool { return endpoint == "GET /admin/list-users" && contacts }})
		one, two := person(1, 0).User, person(2, 0).User
		item := func(id, name, mail, phone string) string {
			return fmt.Sprintf(`{"userId":%q,"fullName":%q,"email":%s,"phoneNumber":%s}`, id, name, mail, phone)
		}
		line := "GET /admin/user-names?ids=" + strings.Join([]string{two.ID, "unknown", one.ID, two.ID}, ",")
		s.Wants(line, "", 200, `{"data":[`+item(one.ID, one.FullName(), "null", "null")+`,`+
			item(two.ID, two.FullName(), "null", "null")+`]}`)
		contacts = true
		s.Wants(line, "", 200, `{"data":[`+item(one.ID, one.FullName(), `"`+one.Email+`"`, `"`+one.Phone+`"`)+`,`+
			item(two.ID, two.FullName(), `"`+two.Email+`"`, `"`+two.Phone+`"`)+`]}`)
		s.Wants("GET /admin/user-names?ids=unknown", "", 200, `{"data":[]}`)

		hundred := strings.TrimSuffix(strings.Repeat("x,", 100), ",")
		s.Wants("GET /admin/user-names?ids="+hundred, "", 200, `{"data":[]}`)
		for _, query := range []string{"?ids=", "?ids=" + hundred + ",x", "?ids=" + strings.Repeat("x", 65)} {
			s.Wants("GET /admin/user-names"+query, "", 400, "INVALID_FIELD ids")
		}
	})
}
