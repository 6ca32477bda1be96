package level_test

import (
	"testing"

	"castellan/http/apitest"
	"castellan/http/edge"
	httplevel "castellan/http/level"
	"castellan/persistence"
)

// REQ-KYC-07, D-KYC-08: the shape to the last key, by whether a level is special.
func TestLevels(t *testing.T) {
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		s := apitest.Serve(t, edge.Options{}, httplevel.Group{Store: persistence.NewLevels(db)}).Below("/admin/")
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
