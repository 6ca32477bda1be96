package people_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"castellan/domain/people/presence"
	"castellan/domain/permit/resource"
	"castellan/http/apitest"
	"castellan/http/edge"
	httppresence "castellan/http/people/presence"
	"castellan/http/rest"
	"castellan/persistence"
	"castellan/persistence/account"
)

// rooms are the rooms of one node with a fixed clock.
type rooms map[string]*presence.Room

func (r rooms) Say(_ context.Context, subject string, p presence.Person, leaves bool) ([]presence.Person, error) {
	if r[subject] == nil {
		r[subject] = new(presence.Room)
	}
	return r[subject].Say(time.UnixMilli(1_700_000_000_000), p, leaves), nil
}

// D-KYC-10: each learns of the others in the same room, and of no room whose records the caller may not see.
func TestPresence(t *testing.T) {
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		integrationPeople(t, db, "admin", "second")
		guards := apitest.Guards()
		judge := guards.Judge
		guards.Judge = func(userID, method, path string) resource.Verdict {
			if userID == "second" {
				userID = "admin"
			}
			return judge(userID, method, path)
		}
		shows := func(who rest.Caller, endpoint string) bool {
			return who.UserID == "admin" || endpoint == "GET /user/get-kyc-images"
		}
		s := apitest.Serve(t, edge.Options{Guards: guards.Table(), Authorize: guards.Authorize,
			ActsAsAdmin: guards.ActsAsAdmin}, httppresence.Group{Rooms: rooms{}, Users: account.NewUsers(db), Shows: shows})
		const say = "POST /admin/presence"
		person := func(id string) string {
			return fmt.Sprintf(`{"userId":"%s","fullName":"%[1]s Doe","since":"2023-11-14T22:13:20.000Z"}`, id)
		}
		answer := func(others string) string { return `{"data":{"subject":"kyc/u1","others":[` + others + `]}}` }
		s.Wants(say, `{"subject":"kyc/u1"}`, 200, answer(""))
		s.As("second").Wants(say, `{"subject":"kyc/u1"}`, 200, answer(person("admin")))
		s.Wants(say, `{"subject":"kyc/u1"}`, 200, answer(person("second")))
		s.Wants(say, `{"subject":"kyc/u2"}`, 200, `{"data":{"subject":"kyc/u2","others":[]}}`)
		s.As("second").Wants(say, `{"subject":"kyc/u1","leaves":true}`, 200, answer(person("admin")))
		s.Wants(say, `{"subject":"kyc/u1"}`, 200, answer(""))

		s.Wants(say, `{"subject":"withdrawal/1"}`, 200, `{"data":{"subject":"withdrawal/1","others":[]}}`)
		s.As("second").Wants(say, `{"subject":"withdrawal/1"}`, 403, "FORBIDDEN")
		s.As("u1").Wants(say, `{"subject":"kyc/u1"}`, 403, "FORBIDDEN")
		for _, subject := range []string{"", "kyc", "kyc/", "kyc/ ", "secrets/1", "/u1"} {
			s.Wants(say, `{"subject":"`+subject+`"}`, 400, "INVALID_FIELD subject")
		}
	})
}
