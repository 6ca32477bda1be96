package account_test

import (
	"fmt"
	"testing"

	"castellan/http/apitest"
	"castellan/persistence"
)

// Every user sees the own account, and no other one. A profile without rows has defaults.
func TestMe(t *testing.T) {
	userBoth(t, func(t *testing.T, s *apitest.Site, db *persistence.DB) {
		for _, n := range []int{1, 2, 3} {
			u := userAccount(t, db, n)
			s.As(u.ID).Wants("GET /auth/me?userId="+person(1, 0).ID, "", 200, fmt.Sprintf(
				`{"data":{"userId":%q,"fullName":%q,"email":%q,"phoneNumber":%q,"roles":[]}}`,
				u.ID, u.FullName(), u.Email, u.Phone))
		}
		s.As(person(1, 0).ID).Wants("GET /user/user-profile", "", 200, `{"totp":false,"isWithdrawProhibited":false}`)
	})
}
