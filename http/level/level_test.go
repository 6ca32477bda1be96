package level_test

import (
	"strings"
	"testing"
	"time"

	"castellan/domain/admin"
	"castellan/domain/level"
	"castellan/domain/storetest"
	"castellan/domain/user"
	"castellan/http/apitest"
	"castellan/http/edge"
	httplevel "castellan/http/level"
	"castellan/persistence"
)

// REQ-KYC-07, D-KYC-08: the shape to the last key, by whether a level is special.
func TestLevels(t *testing.T) {
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		s := apitest.Serve(t, edge.Options{},
			httplevel.Group{Service: &level.Service{Store: persistence.NewLevels(db)}}).Below("/admin/")
		const special = `{"levelId":10,"levelLabel":"Corporate","isSpecial":true,"sendLimitTRYDaily":5000000,` +
			`"sendLimitCryptoDaily":5000000,"sendLimitTRYMonthly":50000000,"sendLimitCryptoMonthly":50000000,` +
			`"receiveLimitTRYDaily":10000000,"receiveLimitCryptoDaily":10000000}`
		s.Wants("GET levels-info?isSpecial=true", "", 200, "["+special+"]")
		s.Wants("GET levels-info", `{"isSpecial":true}`, 200, "["+special+"]")
		s.Wants("GET levels-info?isSpecial=yes", "", 400, "INVALID_FIELD isSpecial")
		s.As("user").Wants("GET levels-info", "", 403, "FORBIDDEN")
		s.As("nobody").Wants("GET levels-info", "", 401, "UNAUTHENTICATED")
	})
}

// REQ-KYC-06, D-KYC-08.
func TestUpdateLevel(t *testing.T) {
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		jane := user.New("jane", time.Now())
		jane.Phone = "+905321234567"
		storetest.Must(t, db.Commit(t.Context(), user.Add{User: jane}))
		users := persistence.NewUsers(db)
		s := apitest.Serve(t, edge.Options{}, httplevel.Group{Service: &level.Service{Store: persistence.NewLevels(db),
			Users: users, Changes: admin.Changes{Commit: db, Now: time.Now}}})
		const line = "POST /level/update-level"
		for body, want := range map[string]string{
			`{"userId":"nobody","levelId":1}`: "404 RECORD_NOT_FOUND", `{"userId":"jane","levelId":3}`: "404 RECORD_NOT_FOUND",
			`{"userId":"jane","levelId":-1}`: "400 INVALID_FIELD levelId", `{"userId":"jane"}`: "400 INVALID_FIELD levelId",
			`{"userId":"","levelId":"x"}`: "400 INVALID_FIELD levelId userId", `{"levelId":1}`: "400 INVALID_FIELD userId",
			`{"userId":"jane","levelId":9007199254740991}`: "404 RECORD_NOT_FOUND",
		} {
			code, refusal, _ := strings.Cut(want, " ")
			s.Wants(line, body, map[string]int{"404": 404, "400": 400}[code], refusal)
		}
		has := func(want, audits int) {
			t.Helper()
			u, err := users.Get(t.Context(), "jane")
			storetest.Must(t, err)
			n, err := db.Conn(t.Context()).NewSelect().Table("audit").Where("action = 'USER_LEVEL'").Count(t.Context())
			if storetest.Must(t, err); u.Level != want || int(n) != audits {
				t.Errorf("level %d after %d changes", u.Level, n)
			}
		}
		has(0, 0)
		const given = `{"data":{"userId":"jane","levelId":10,"levelLabel":"Corporate"}}`
		s.Wants(line, `{"userId":"jane","levelId":"10","levelLabel":"x"}`, 200, given)
		s.Wants(line, `{"userId":"jane","levelId":10}`, 200, given)
		has(10, 1)
		s.Wants(line, `{"userId":"jane","levelId":0}`, 200,
			`{"data":{"userId":"jane","levelId":0,"levelLabel":"Unconfirmed"}}`)
		has(0, 2)
		s.WantsBound(line, `{"userId":"admin","levelId":2}`, true)
		s.As("jane").Wants(line, `{"userId":"jane","levelId":2}`, 403, "FORBIDDEN")
		s.As("nobody").Wants(line, `{"userId":"jane","levelId":2}`, 401, "UNAUTHENTICATED")
	})
}
