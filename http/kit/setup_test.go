package kit_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/setup"
	"castellan/domain/kit/storetest"
	"castellan/http/apitest"
	"castellan/http/edge"
	httpsetup "castellan/http/kit/setup"
	"castellan/persistence"
)

func TestMain(m *testing.M) { apitest.Main(m, "setup") }

func TestSetup(t *testing.T) {
	apitest.Both(t, func(t *testing.T, _ *persistence.DB) {
		report := func(at time.Time) setup.Report {
			return setup.NewReport(true, at, []setup.Finding{
				{Key: "clock", Severity: setup.OK, State: "plausible"},
				{Key: "tracing.endpoint", Severity: setup.Accepted, State: "empty", Reason: "no collector"},
				{Key: "mfa.four_eyes", Severity: setup.Control, State: "empty", Effect: "e", Mend: "m"}})
		}
		var fails error
		s := apitest.Serve(t, edge.Options{}, httpsetup.Group{
			Report: func(context.Context) setup.Report { return report(time.Time{}) },
			Check: func(context.Context) (setup.Report, error) {
				return report(time.UnixMilli(1_700_000_000_000)), fails
			}})
		const findings = `"findings":[{"key":"mfa.four_eyes","severity":"control","state":"empty","effect":"e","mend":"m",` +
			`"reason":""},{"key":"tracing.endpoint","severity":"accepted","state":"empty","effect":"","mend":"",` +
			`"reason":"no collector"},` +
			`{"key":"clock","severity":"ok","state":"plausible","effect":"","mend":"","reason":""}]`
		const judged = `{"data":{"mode":"production","checkedAt":null,` + findings + `}}`
		for _, query := range []string{"", "?check=false"} {
			s.Wants("GET /admin/setup"+query, "", 200, judged)
		}
		for language, empty := range map[string]string{"tr": "boş", "ar": "فارغ", "en": "empty"} {
			_, answer := s.Call("GET /admin/setup", "", "accept-language", language)
			storetest.Equal(t, answer, strings.ReplaceAll(judged, `"empty"`, `"`+empty+`"`), language)
		}
		s.Wants("GET /admin/setup?check=true", "", 200,
			`{"data":{"mode":"production","checkedAt":"2023-11-14T22:13:20.000Z",`+findings+`}}`)
		s.As("clerk").Wants("GET /admin/setup", "", 200, judged)
		fails = errors.New("given up")
		s.Wants("GET /admin/setup?check=true", "", 503, "UNAVAILABLE")
	})
}
