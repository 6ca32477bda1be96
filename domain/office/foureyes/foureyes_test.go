package foureyes

import (
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/ledger"
)

// A summary names records of the request, and not those made by a rehearsal.
func TestSummary(t *testing.T) {
	names := func(target string) bool { return target == "clerk" }
	seal := audit.Record{Action: ledger.ActionTransfer, Target: "t", Detail: "digest"}
	long := strings.Repeat("ü", maxSummary)
	for want, rows := range map[string][]audit.Record{
		"": {seal},
		"ADJUST_BALANCE of u1: C 0.25 BTC": {
			{Action: "ADJUST_BALANCE", Target: "fresh", UserID: "u1", Detail: "C 0.25 BTC"}, seal},
		"ROLE_ADD clerk: name Clerk; OTHER": {
			{Action: "ROLE_ADD", Target: "clerk", Detail: "name Clerk"}, {Action: "OTHER"}},
		"CLOSE of clerk": {{Action: "CLOSE", Target: "clerk", UserID: "clerk"}},
		"LONG: " + strings.Repeat("ü", maxSummary-6) + " …": {{Action: "LONG", Detail: long}},
	} {
		storetest.Equal(t, Summary(rows, names), want)
	}
}

// Only time expires a request, and only a pending one.
func TestAt(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_000)
	for status, want := range map[Status]Status{Pending: Expired, Approved: Approved, Refused: Refused, Failed: Failed} {
		r := Request{Status: status, ExpiresAt: at}
		if got := r.At(at).Status; got != want || r.At(at.Add(-time.Millisecond)).Status != status {
			t.Errorf("%s is %s", status, got)
		}
	}
}
