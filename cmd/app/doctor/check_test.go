package doctor

import (
	"slices"
	"testing"

	"castellan/config"
	"castellan/domain/kit/storetest"
)

// Faults that only the parts can detect are found without opening anything.
func TestCheckFindsErrorsOfParts(t *testing.T) {
	_, err := config.Load("", []string{
		"CASTELLAN_MFA_GUARDED=POST /nope=FOO,POST /auth/login=BAR,POST /asset/withdrawal-addresses=LOGIN,PATCH " +
			"/asset/withdrawal-addresses=DURING_VIDEO_KYC,DELETE /asset/withdrawal-addresses=MINE",
		"CASTELLAN_MFA_FOUR_EYES=POST /nope,POST /auth/totp/setup,GET /admin/roles,POST /auth/logout,POST " +
			"/admin/approvals/{id}/refuse,POST /admin/transaction/adjust-balance,POST /auth/login",
		"CASTELLAN_SMS_URL=https://sms.example.com", "CASTELLAN_SMS_PARAMS=to={{to}},text={{txt}}",
		"CASTELLAN_MAIL_HOST=mail.example.com", "CASTELLAN_MAIL_FROM=a@example.com", "CASTELLAN_MAIL_CA_FILE=/nope",
		"CASTELLAN_GEO_MMDB_FILE=/nope", "CASTELLAN_PUSH_CA_FILE=/nope",
		"CASTELLAN_RATES_URL=http://rates.example.com", "CASTELLAN_LIMITS_RLS_ADDR=127.0.0.1:0",
		"CASTELLAN_LIMITS_RLS_CERT_FILE=/nope", "CASTELLAN_LIMITS_RLS_KEY_FILE=/nope",
		"CASTELLAN_PROVIDERS_FILES=vault=/nope", "CASTELLAN_NOTICES_OFF=new-network,new-moon",
	}, Check)
	faults, _ := err.(config.Faults)
	var keys []string
	for _, f := range faults {
		keys = append(keys, f.Key)
	}
	if want := []string{"mail.ca_file", "sms.params", "rates.url", "providers.files", "push.ca_file",
		"limits.rls_cert_file", "limits.rls_key_file", "notices.off", "geo.mmdb_file", "mfa.guarded", "mfa.guarded",
		"mfa.guarded", "mfa.four_eyes", "mfa.four_eyes", "mfa.four_eyes", "mfa.four_eyes", "mfa.four_eyes",
		"mfa.four_eyes"}; !slices.Equal(keys, want) {
		t.Fatalf("faults of %v, want %v: %v", keys, want, err)
	}
	for _, want := range []string{"txt", "mail.ca_file (CASTELLAN_MAIL_CA_FILE): open /nope",
		`"POST /nope" is no endpoint`, "POST /auth/login does not take x-auth", "LOGIN is the action of other endpoints",
		"POST /auth/totp/setup starts a challenge of its own action: only the call of an administrator",
		"GET /admin/roles changes nothing", "POST /auth/logout is not for administrators alone",
		"POST /admin/approvals/{id}/refuse decides on such requests itself",
		`"new-moon" is not a kind of notice; the kinds are alarm-raised, applied-again,`} {
		storetest.Fails(t, err, want)
	}
	for _, permitted := range []string{"DURING_VIDEO_KYC", "MINE", "adjust-balance"} {
		storetest.Lacks(t, err.Error(), permitted)
	}
	storetest.Must(t, storetest.Err(config.Load("", nil, Check)))
}
