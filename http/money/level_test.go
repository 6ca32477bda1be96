package money_test

import (
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/level"
	"castellan/http/apitest"
	"castellan/http/edge"
	httplevel "castellan/http/money/level"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/kit"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

// REQ-KYC-07, D-KYC-08: the shape to the last key, by whether a level is special.
func TestLevels(t *testing.T) {
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		s := apitest.Serve(t, edge.Options{},
			httplevel.Group{Service: &level.Service{Store: money.NewLevels(db)}}).Below("/admin/")
		const special = `{"levelId":10,"levelLabel":"Corporate","isSpecial":true,"sendLimitTRYDaily":5000000,` +
			`"sendLimitCryptoDaily":5000000,"sendLimitTRYMonthly":50000000,"sendLimitCryptoMonthly":50000000,` +
			`"receiveLimitTRYDaily":10000000,"receiveLimitCryptoDaily":10000000}`
		s.Wants("GET levels-info?isSpecial=true", "", 200, "["+special+"]")
		_, others := s.Call("GET levels-info?isSpecial=false", "")
		if !strings.HasPrefix(others, `[{"levelId":0,"levelLabel":"Unconfirmed","isSpecial":false,"sendLimitTRYDaily":0,`) ||
			strings.Count(others, "levelId") != 3 || strings.Contains(others, special) {
			t.Errorf("not special: %s", others)
		}
	})
}

// REQ-KYC-06, D-KYC-08.
func TestUpdateLevel(t *testing.T) {
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		jane := user.New("jane", time.Now())
		jane.Phone = "+905321234567"
		storetest.Must(t, db.Commit(t.Context(), user.Add{User: jane}))
		users := account.NewUsers(db)
		s := apitest.Serve(t, edge.Options{}, httplevel.Group{Service: &level.Service{Store: money.NewLevels(db),
			Users: users, Changes: admin.Changes{Commit: db, Now: time.Now}}})
		const line = "POST /level/update-level"
		for body, want := range map[string]string{
			`{"userId":"nobody","levelId":1}`: "404 RECORD_NOT_FOUND", `{"userId":"jane","levelId":3}`: "404 RECORD_NOT_FOUND",
			`{"userId":"jane","levelId":9007199254740991}`: "404 RECORD_NOT_FOUND",
		} {
			s.Gets(line, body, want)
		}
		has := func(want, audits int) {
			t.Helper()
			u := storetest.Value(users.Get(t.Context(), "jane"))(t)
			if n := persistencetest.Count(t, db, "audit", "action = 'USER_LEVEL'"); u.Level != want || n != audits {
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
	})
}

// D-KYC-08: the administration of levels.
func TestAdministration(t *testing.T) {
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		s := apitest.Serve(t, edge.Options{}, httplevel.Group{Service: &level.Service{Store: money.NewLevels(db),
			Changes: admin.Changes{Commit: db, Now: time.Now}}}).Below("/admin/")
		const (
			path   = " levels"
			limits = `"sendLimitTRYDaily":1.5,"sendLimitCryptoDaily":2,"sendLimitTRYMonthly":3,` +
				`"sendLimitCryptoMonthly":4,"receiveLimitTRYDaily":5,"receiveLimitCryptoDaily":6`
			gold = `{"levelId":5,"levelLabel":"Gold",` + limits + `}`
		)
		for body, want := range map[string]string{
			strings.Replace(gold, ":1.5", ":3.5", 1):                      "400 INVALID_FIELD sendLimitTRYMonthly",
			strings.Replace(gold, ":1.5", ":-1", 1):                       "400 INVALID_FIELD sendLimitTRYDaily",
			strings.Replace(gold, "Monthly\":4", "Monthly\":-4", 1):       "400 INVALID_FIELD sendLimitCryptoMonthly",
			strings.Replace(gold, "}", `,"receiveLimitTRYMonthly":4}`, 1): "400 INVALID_FIELD receiveLimitTRYMonthly",
			strings.Replace(gold, ":5,", ":1,", 1):                        "409 RECORD_ALREADY_EXIST",
			strings.Replace(gold, "Gold", "Confirmed", 1):                 "409 RECORD_ALREADY_EXIST",
		} {
			s.Gets("POST"+path, body, want)
		}
		const shown = `{"levelId":5,"levelLabel":"Gold","isSpecial":false,` + limits +
			`,"receiveLimitTRYMonthly":null,"receiveLimitCryptoMonthly":null}`
		s.Wants("POST"+path, gold, 200, `{"data":`+shown+`}`)
		s.Wants("POST"+path, gold, 409, "RECORD_ALREADY_EXIST")
		if _, all := s.Call("GET"+path, ""); !strings.Contains(all, shown) || strings.Count(all, "levelId") != 5 {
			t.Errorf("listed %s", all)
		}

		s.Wants("PATCH"+path, `{"levelId":6,"isSpecial":true}`, 404, "RECORD_NOT_FOUND")
		s.Wants("PATCH"+path, `{"levelId":5,"levelLabel":""}`, 400, "INVALID_FIELD levelLabel")
		s.Wants("PATCH"+path, `{"levelId":5,"levelLabel":"Confirmed"}`, 409, "RECORD_ALREADY_EXIST")
		// The limit of a day is judged beside the stored one of a month.
		s.Wants("PATCH"+path, `{"levelId":5,"sendLimitTRYDaily":3.5}`, 400, "INVALID_FIELD sendLimitTRYMonthly")
		s.Wants("PATCH"+path, `{"levelId":5}`, 200, `{"data":`+shown+`}`)
		changed := strings.NewReplacer(`"receiveLimitTRYMonthly":null`, `"receiveLimitTRYMonthly":9`, ":1.5", ":3",
			"false", "true", "Gold", "Golden").Replace(shown)
		s.Wants("PATCH"+path, `{"levelId":"5","receiveLimitTRYMonthly":9,"sendLimitTRYDaily":3,"isSpecial":true,`+
			`"levelLabel":"Golden"}`, 200, `{"data":`+changed+`}`)
		s.Wants("PATCH"+path, `{"levelId":5,"receiveLimitTRYMonthly":4}`, 400, "INVALID_FIELD receiveLimitTRYMonthly")
		s.Wants("PATCH"+path, `{"levelId":5,"receiveLimitTRYMonthly":null}`, 200, `{"data":`+
			strings.Replace(changed, ":9", ":null", 1)+`}`)
		const all = `"isSpecial":true,"sendLimitTRYDaily":11,"sendLimitCryptoDaily":12,"sendLimitTRYMonthly":13,` +
			`"sendLimitCryptoMonthly":14,"receiveLimitTRYDaily":15,"receiveLimitCryptoDaily":16,` +
			`"receiveLimitTRYMonthly":17,"receiveLimitCryptoMonthly":18}`
		for method, level := range map[string]string{"PATCH": `{"levelId":5,"levelLabel":"Platinum",` + all,
			"POST": `{"levelId":7,"levelLabel":"Special",` + all} {
			s.Wants(method+path, level, 200, `{"data":`+level+`}`)
		}

		if rows, err := kit.NewAudit(db).Verify(t.Context(), []byte(persistencetest.AuditKey)); err != nil || rows != 5 {
			t.Errorf("%d audit rows, %v; want one for each change", rows, err)
		}
	})
}
