package money_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/job"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/transaction"
	"castellan/http/apitest"
	"castellan/http/auth"
	"castellan/http/edge"
	httptransaction "castellan/http/money/transaction"
	"castellan/http/rest"
	"castellan/persistence/persistencetest"
)

const adjust = "POST /admin/transaction/adjust-balance"

// body is a good request of which a case changes a part.
func body(change ...string) string {
	return strings.NewReplacer(append(change, "$user", `"jane"`, "$currency", `"BTC"`, "$network", `"BTC"`,
		"$amount", "0.25", "$type", `"C"`, "$id", `"u1"`, "$more", "")...).Replace(`{"userId":$user,` +
		`"currencyCode":$currency,"networkCode":$network,"amount":$amount,"type":$type,"uniqueId":$id$more}`)
}

// D-TX-05, D-TX-10: a deposit and a withdrawal, with their rows and one address.
func TestAdjustBalance(t *testing.T) {
	transactionBoth(t, func(s transactionSite) {
		status, first := s.Call(adjust, body("$more", `,"timestamp":1700000000000,"status":9,"address":"x"`))
		for _, want := range []string{`{"code":null,"data":{"transactionId":"`, `"userId":"jane"`, `"currencyCode":"BTC"`,
			`"networkCode":"BTC"`, `"amount":0.25,`, `"type":"C"`, `"uniqueId":"u1"`, `"status":1,`,
			`"timestamp":1700000000000`, `"address":"castellan:`} {
			if status != 200 || !strings.Contains(first, want) {
				t.Errorf("%d %s, want %s", status, first, want)
			}
		}
		s.has("0.25")
		status, second := s.Call(adjust, body("$type", `"D"`, "$amount", `"0.05"`, "$id", `"u2"`))
		if status != 200 || !strings.Contains(second, `"toAddress":"bc1treasury"`) ||
			!strings.Contains(second, `"amount":0.05,"type":"D"`) {
			t.Errorf("%d %s", status, second)
		}
		s.has("0.2")
		if s.count("deposit") != 1 || s.count("withdrawal") != 1 || s.count("coin_address") != 1 {
			t.Error("the rows of the business")
		}
		// D-TX-06: the same again gets the first answer, also after the treasury has lost its address.
		persistencetest.Exec(t, s.db, "UPDATE parameter SET json = '{}' WHERE code = 'TREASURY'")
		storetest.Must(t, s.service.Parameters.Reload(t.Context()))
		s.Wants(adjust, body("$more", `,"timestamp":1700000000000`), 200, first)
		s.Wants(adjust, body("$type", `"D"`, "$amount", `"0.05"`, "$id", `"u2"`), 200, second)
		s.has("0.2")
	})
}

// standing answers a call that waits for a second person.
type standing struct{ auth.SecondPerson }

func (standing) Stand(context.Context, edge.Captured, []byte, string) (any, error) {
	return rest.Data[map[string]string]{Data: map[string]string{"approvalId": "1",
		"expiresAt": "2026-01-01T00:00:00.000Z"}}, nil
}

func TestAdjustBalanceRefuses(t *testing.T) {
	transactionBoth(t, func(s transactionSite) {
		paired := apitest.Serve(t, edge.Options{Verify: verify, Idempotency: s.repeats,
			FourEyes: map[string]bool{adjust: true}, SecondPerson: standing{auth.SecondPerson{Commit: s.db}}},
			httptransaction.Group{Service: s.service})
		paired.Wants(adjust, body(), 202, "")
		paired.Wants(adjust, body("$user", `"unknown"`), 200, `{"code":1,"data":null,"message":"there is no such user"}`)
		s.Call(adjust, body())
		refused := func(message string) string { return fmt.Sprintf(`{"code":1,"data":null,"message":%q}`, message) }
		for in, want := range map[string]string{
			body("$currency", `"XYZ"`, "$id", `"a"`):              "there is no such currency on this network",
			body("$network", `"XYZ"`, "$id", `"b"`):               "there is no such currency on this network",
			body("$user", `"unknown"`, "$id", `"c"`):              "there is no such user",
			body("$type", `"D"`, "$amount", "0.26", "$id", `"d"`): "the available balance is insufficient",
			body("$amount", "0.26"):                               "the reference belongs to another movement",
			body("$type", `"D"`):                                  "the reference belongs to another movement",
			body("$more", `,"timestamp":5`):                       "the reference belongs to another movement",
			body("$currency", `"ETH"`, "$network", `"ETH"`, "$type", `"D"`, "$id", `"e"`): "the treasury has no address " +
				"for this currency and network",
		} {
			s.Wants(adjust, in, 200, refused(want))
		}
		for in, field := range map[string]string{
			body("$amount", "0"):                                "amount",
			body("$amount", "-1"):                               "amount",
			body("$amount", "0.123456789"):                      "amount",
			body("$id", `"z"`, "$amount", "999999999999999999"): "amount",
			body("$id", `"z"`, "$more", `,"timestamp":0`):       "timestamp",
			body("$id", `"z"`, "$more", `,"timestamp":9e18`):    "timestamp",
			`{"currencyCode":"BTC"}`:                            "userId",
			body("$id", `"z"`, "$amount", "0.3", "$more", `,"`): "",
		} {
			status, got := s.Call(adjust, in)
			if status != 400 || !strings.Contains(got, `"code":1,"data":null,"message":"`+field) ||
				!strings.Contains(got, `"error":"INVALID_FIELD"`) {
				t.Errorf("%s: %d %s", in, status, got)
			}
		}
		s.has("0.25")
		if s.count("deposit") != 1 || s.count("withdrawal") != 0 || s.count("transfer") != 1 {
			t.Error("something was written")
		}
	})
}

// 64 at once with one uniqueId are one movement and equal
// answers; with 64 contents one is made and 63 are refused.
func TestAdjustBalanceInARace(t *testing.T) {
	transactionBoth(t, func(s transactionSite) {
		race := func(in func(i int) string) map[string]int {
			answers := map[string]int{}
			var mu sync.Mutex
			var wg sync.WaitGroup
			for i := range 64 {
				wg.Go(func() {
					status, got := s.Call(adjust, in(i))
					storetest.Equal(t, status, 200, got)
					mu.Lock()
					defer mu.Unlock()
					answers[got]++
				})
			}
			wg.Wait()
			return answers
		}
		if got := race(func(int) string { return body() }); len(got) != 1 {
			t.Errorf("answers: %v", got)
		}
		s.has("0.25")
		got := race(func(i int) string { return body("$id", `"u2"`, "$amount", fmt.Sprint(i+1)) })
		if len(got) != 2 || got[`{"code":1,"data":null,"message":"the reference belongs to another movement"}`] != 63 {
			t.Errorf("answers: %v", got)
		}
		storetest.Equal(t, s.count("transfer"), 2, "transfers")
	})
}

func admins(d *transaction.Deposit) { d.UserID = "admin" }

// Of an update the records of users who hold more than the caller fail, and so do the
// caller's own; the others move. An update of such records alone is refused (D-AUTH-03).
func TestUpdateStatusFailsRowsAlone(t *testing.T) {
	transactionBoth(t, func(s transactionSite) {
		for _, c := range []struct {
			caller string
			key    bool
		}{{"clerk", false}, {"clerk", true}, {"admin", false}} {
			theirs, good := s.deposit(transaction.WaitingTreasury, "1", admins), s.deposit(transaction.WaitingTreasury, "0.25")
			as := s
			as.Site = s.As(c.caller)
			if code, got := as.sends("2", []string{theirs}); code != 403 || s.status(theirs) != transaction.WaitingTreasury {
				t.Errorf("%+v: %d %s", c, code, got)
			}
			var headers []string
			if c.key {
				headers = []string{"idempotency-key", "k"}
			}
			code, got := as.sends("2", []string{theirs, good}, headers...)
			row := func(id, user string, status int, value, failed string) string {
				return fmt.Sprintf(`{"transactionId":"%s","userId":"%s","status":%d,"currencyCode":"BTC","value":%s,`+
					`"senderInfo":{"name":"Ada"}%s}`, id, user, status, value, failed)
			}
			want := `{"data":[` + row(theirs, "admin", -9, "1", `,"failed":"FORBIDDEN"`) + `,` +
				row(good, "jane", 2, "0.25", "") + `]}`
			if code != 200 || got != want {
				t.Errorf("%+v: %d %s, want %s", c, code, got, want)
			}
			if s.status(theirs) != transaction.WaitingTreasury || s.status(good) != transaction.FinalizedDeposit {
				t.Errorf("%+v: the statuses %d and %d", c, s.status(theirs), s.status(good))
			}
		}
		s.has("0.75", "0")
		all := storetest.Value(s.jobs.Store.List(s.Context(), job.Query{}, page.Query[job.Place]{Limit: 10}))(t)
		for _, j := range all.Records {
			if j.Done != 1 || j.Failed != 1 || len(j.Failures) != 1 || j.Failures[0].Reason != "FORBIDDEN" {
				t.Errorf("the job %+v", j)
			}
		}
		storetest.Equal(t, len(all.Records), 3, "jobs")
	})
}

// A record is judged when it moves: who has gained permissions since is out of reach.
func TestUpdateStatusJudgesWhenARowMoves(t *testing.T) {
	transactionBoth(t, func(s transactionSite) {
		first, second := s.deposit(transaction.WaitingTreasury, "1"), s.deposit(transaction.WaitingTreasury, "1", kurts)
		asked := 0
		may := s.service.MayMove
		s.service.MayMove = func(caller, userID string) error {
			if asked++; userID == "kurt" && s.status(first) == transaction.FinalizedDeposit {
				return may("clerk", "admin") // kurt is an administrator by now
			}
			return may(caller, userID)
		}
		as := s
		as.Site = s.As("clerk")
		code, got := as.sends("2", []string{first, second})
		if code != 200 || s.status(second) != transaction.WaitingTreasury {
			t.Errorf("%d %s, status %d", code, got, s.status(second))
		}
	})
}

const previewing = "GET /admin/transaction/adjust-balance/preview"

// D-TX-12: both accounts before and after, to the last digit, and nothing is booked;
// what the adjustment is refused for, the preview is.
func TestPreviewAdjustment(t *testing.T) {
	transactionBoth(t, func(s transactionSite) {
		ask := func(query string) string {
			t.Helper()
			status, got := s.Call(previewing+"?userId=jane&currencyCode=BTC&networkCode=BTC"+query, "")
			if status != 200 {
				t.Fatalf("%d %s", status, got)
			}
			return got
		}
		want := `{"user":{"before":{"balance":0,"available":0,"locked":0},` +
			`"after":{"balance":0.25,"available":0.25,"locked":0}},` +
			`"treasury":{"before":{"balance":0},"after":{"balance":-0.25}}}`
		storetest.Equal(t, ask("&amount=0.25&type=C"), want, "nothing yet")
		s.Call(adjust, body())
		want = `{"user":{"before":{"balance":0.25,"available":0.25,"locked":0},` +
			`"after":{"balance":0.24999999,"available":0.24999999,"locked":0}},` +
			`"treasury":{"before":{"balance":-0.25},"after":{"balance":-0.24999999}}}`
		storetest.Equal(t, ask("&amount=0.00000001&type=D"), want, "a debit")
		s.has("0.25")
		storetest.Equal(t, s.count("transfer"), 1, "a preview is booked")
		for query, code := range map[string]string{
			"userId=jane&currencyCode=BTC&networkCode=BTC&amount=0.26&type=D":  "INVALID_STATE",
			"userId=nobody&currencyCode=BTC&networkCode=BTC&amount=0.1&type=C": "RECORD_NOT_FOUND",
			"userId=jane&currencyCode=XYZ&networkCode=BTC&amount=0.1&type=C":   "RECORD_NOT_FOUND",
			"userId=jane&currencyCode=ETH&networkCode=ETH&amount=0.1&type=D":   "INVALID_STATE",
			"userId=jane&currencyCode=BTC&networkCode=BTC&amount=0&type=C":     "INVALID_FIELD",
			"userId=jane&currencyCode=BTC&networkCode=BTC&amount=1e-9&type=C":  "INVALID_FIELD",
		} {
			if _, got := s.Call(previewing+"?"+query, ""); !strings.Contains(got, `"code":"`+code+`"`) {
				t.Errorf("%s: %s, want %s", query, got, code)
			}
		}
	})
}

// The reason of an adjustment goes to the audit log, and is not part of the identity of the adjustment.
func TestAdjustmentReason(t *testing.T) {
	transactionBoth(t, func(s transactionSite) {
		_, first := s.Call(adjust, body("$more", `,"reason":" A deposit was booked short "`))
		s.Wants(adjust, body("$more", `,"reason":"something else"`), 200, first)
		if got := s.count("audit", "detail = 'C 0.25 BTC; A deposit was booked short'"); got != 1 {
			t.Errorf("%d rows of the audit with the reason, want one", got)
		}
	})
}

// The approver of a request sees the deposits and the withdrawal that it names, before and
// after. Nothing of them changes.
func TestChanges(t *testing.T) {
	transactionBoth(t, func(s transactionSite) {
		s.deposit(transaction.Finalized, "10")
		one, other := s.deposit(transaction.WaitingTreasury, "1"), s.deposit(transaction.WaitingTreasury, "2")
		queued := s.enqueue(transaction.TimeOut, "3", func(*transaction.Queued) {})
		table := edge.NewIndex(httptransaction.Group{Service: s.service, Numbers: numbers}.Endpoints())
		for _, c := range []struct{ key, body, want string }{
			{"POST /admin/update-status-transaction", `{"transactionIds":["` + one + `","` + other + `"],"status":2}`,
				"deposit " + one + ` {"userId":"jane","currencyCode":"BTC","amount":1,"status":"waitingTreasuryApproval"} ` +
					`{"userId":"jane","currencyCode":"BTC","amount":1,"status":"finalizedDeposit"}; deposit ` + other +
					` {"userId":"jane","currencyCode":"BTC","amount":2,"status":"waitingTreasuryApproval"} ` +
					`{"userId":"jane","currencyCode":"BTC","amount":2,"status":"finalizedDeposit"}`},
			{decide, decision(queued, "4", `"BTC"`), "withdrawal " + queued +
				` {"userId":"jane","currencyCode":"BTC","amount":3,"address":"bc1away","status":"timeOut"} ` +
				`{"userId":"jane","currencyCode":"BTC","amount":3,"address":"bc1away","status":"success"}`},
			{decide, decision("none", "4", `"BTC"`), "RECORD_NOT_FOUND"},
		} {
			in, _, err := table[c.key].Bind(rest.Query{}, []byte(c.body))
			storetest.Must(t, err)
			all, err := table[c.key].Preview(t.Context(), in)
			var got []string
			for _, ch := range all {
				before, _ := json.Marshal(ch.Before)
				after, _ := json.Marshal(ch.After)
				got = append(got, fmt.Sprintf("%s %s %s %s", ch.Of, ch.ID, before, after))
			}
			if text := strings.Join(got, "; "); text != c.want && string(fault.CodeOf(err)) != c.want {
				t.Errorf("%s: %v\n got %s\nwant %s", c.key, err, text, c.want)
			}
		}
	})
}
