package money_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/job"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/ledger"
	"castellan/domain/money/transaction"
	"castellan/http/apitest"
)

const transactionUpdate = "POST /admin/update-status-transaction"

// sends posts an update with the caller's code.
func (s transactionSite) sends(status string, ids []string, headers ...string) (int, string) {
	s.Helper()
	list, _ := json.Marshal(ids)
	return s.Call(transactionUpdate, `{"transactionIds":`+string(list)+`,"status":`+status+`}`,
		append(headers, "otp", "123456")...)
}

// status is that of a deposit.
func (s transactionSite) status(id string) transaction.Status {
	s.Helper()
	all := storetest.Value(s.service.Store.Deposits(s.Context(), id))(s)
	return all[0].Status
}

func unknown(d *transaction.Deposit) { d.SenderInfo = "" }

func kurts(d *transaction.Deposit) { d.UserID = "kurt" }

// D-TX-07: an owner sees what waits, administrators what waits for the treasury.
func TestPendingDeposits(t *testing.T) {
	transactionBoth(t, func(s transactionSite) {
		treasury := s.deposit(transaction.WaitingTreasury, "0.25", func(d *transaction.Deposit) {
			d.TxID, d.ToAddress = "abc", "castellan:1:jane"
		})
		s.pause(s.now().Add(time.Second))
		sender := s.deposit(transaction.WaitingSender, "1", unknown)
		s.pause(s.now().Add(time.Second))
		other := s.deposit(transaction.WaitingTreasury, "2", unknown, kurts)
		s.deposit(transaction.Finalized, "3")
		s.deposit(transaction.FinalizedDeposit, "4")
		own := `[{"transactionId":"` + sender + `","userId":"jane","currencyCode":"BTC","status":-5,"value":1,"txId":null,` +
			`"toAddress":null},{"transactionId":"` + treasury + `","userId":"jane","currencyCode":"BTC","status":-9,` +
			`"value":0.25,"txId":"abc","toAddress":"castellan:1:jane"}]`
		const mine, all = "GET /user/get-waiting-info-transactions", "GET /admin/get-waiting-info-transactions"
		s.As("jane").Wants(mine, "", 200, own)
		s.As("jane").Wants(mine+"?userId=kurt", "", 200, own)
		s.As("admin").Wants(mine, "", 200, "[]")
		first := `{"transactionId":"` + treasury + `","userId":"jane","status":-9,"currencyCode":"BTC","value":0.25,` +
			`"senderInfo":{"name":"Ada"}}`
		s.Wants(all, "", 200, `[{"transactionId":"`+other+`","userId":"kurt","status":-9,"currencyCode":"BTC","value":2,`+
			`"senderInfo":null},`+first+`]`)
		s.Wants(all+"?userId=jane", "", 200, "["+first+"]")
		s.Wants(all+"?userId=nobody", "", 200, "[]")
		s.Wants(all+"?txId=abc", "", 200, "["+first+"]")
		s.Wants(all+"?toAddress=castellan:1:jane&userId=jane", "", 200, "["+first+"]")
		s.Wants(all+"?toAddress=castellan:1:jane&txId=abd", "", 200, "[]")
		s.Wants(all+"?txId=", "", 400, "INVALID_FIELD txId")
		res, _ := s.Send(all+"?limit=1&count=true", "")
		if res.Header.Get("Link") == "" || res.Header.Get("x-total-count") != "2" {
			t.Errorf("%v", res.Header)
		}
	})
}

// Section 3.4, rows 1 and 2: what waits for the treasury and has its sender moves as
// asked, by number, digits or name.
func TestUpdateStatus(t *testing.T) {
	transactionBoth(t, func(s transactionSite) {
		for status, to := range map[string]transaction.Status{"-5": -5, `"-5"`: -5, `"waitingSenderInfo"`: -5,
			"2.0": 2, `"2"`: 2, `"finalizedDeposit"`: 2} {
			id := s.deposit(transaction.WaitingTreasury, "0.25")
			code, got := s.sends(status, []string{id})
			want := fmt.Sprintf(`{"data":[{"transactionId":"%s","userId":"jane","status":%d,"currencyCode":"BTC",`+
				`"value":0.25,"senderInfo":{"name":"Ada"}}]}`, id, to)
			if code != 200 || got != want || s.status(id) != to {
				t.Errorf("%s: %d %s, want %s", status, code, got, want)
			}
			// The same again is refused: the record has left the state.
			if code, got := s.sends(status, []string{id}); code != 409 || s.status(id) != to {
				t.Errorf("again: %d %s", code, got)
			}
		}
		s.has("0.75", "0") // three were credited, each once
		s.holds(ledger.Treasury, "-0.75")
		storetest.Equal(t, s.count("transfer"), 3, "transfers")
		if n := s.count("audit", "action = 'TRANSACTION_STATUS' AND actor_id = 'admin' AND user_id = 'jane'"); n != 6 {
			t.Errorf("%d audit rows", n)
		}
		const detail = "1 to finalizedDeposit: 0.25 BTC" // what a second person reads
		if n := s.count("audit", "action = 'TRANSACTION_STATUS_START' AND detail = '"+detail+"'"); n != 3 {
			t.Errorf("%d audit rows say %q", n, detail)
		}
	})
}

// D-TX-04: the checks in their order, over all records; nothing changes.
func TestUpdateStatusRefuses(t *testing.T) {
	transactionBoth(t, func(s transactionSite) {
		good := s.deposit(transaction.WaitingTreasury, "1")
		bare := s.deposit(transaction.WaitingTreasury, "1", unknown)
		sender := s.deposit(transaction.WaitingSender, "1")
		done, credited := s.deposit(transaction.Finalized, "1"), s.deposit(transaction.FinalizedDeposit, "1")
		out := s.enqueue(transaction.TimeOut, "0.5")
		many := make([]string, 1001)
		for i := range many {
			many[i] = fmt.Sprint("t", i)
		}
		const both = "transactionIds status"
		for name, c := range map[string]struct {
			ids    string
			status string
			code   int
			want   string
		}{
			"twice":            {quoted(good, good), "2", 400, "INVALID_FIELD transactionIds"},
			"1001":             {quoted(many...), "2", 400, "INVALID_FIELD transactionIds"},
			"empty and status": {`[]`, "9", 400, "INVALID_FIELD " + both},
			"finalized":        {quoted(good), "1", 400, "INVALID_FIELD status"},
			"treasury":         {quoted(good), "-9", 400, "INVALID_FIELD status"},
			"another name":     {quoted(good), `"waitingTreasuryApproval"`, 400, "INVALID_FIELD status"},
			"a fraction":       {quoted(good), "2.5", 400, "INVALID_FIELD status"},
			"unknown first":    {quoted(done, bare, "nothing"), "2", 404, "RECORD_NOT_FOUND"},
			"then the state":   {quoted(good, bare, done), "2", 409, "INVALID_STATE"},
			"waiting sender":   {quoted(sender), "2", 409, "INVALID_STATE"},
			"to where it is":   {quoted(sender), "-5", 409, "INVALID_STATE"},
			"credited":         {quoted(credited), "-5", 409, "INVALID_STATE"},
			"a withdrawal":     {quoted(out), "2", 409, "INVALID_STATE"},
			"then the sender":  {quoted(good, bare), "2", 409, "INVALID_STATE senderInfo"},
			"for -5 too":       {quoted(bare), "-5", 409, "INVALID_STATE senderInfo"},
		} {
			body := `{"transactionIds":` + c.ids + `,"status":` + c.status + `}`
			code, got := s.Call(transactionUpdate, body, "otp", "123456")
			if code != c.code || apitest.Refusal(got) != c.want {
				t.Errorf("%s: %d %s, want %d %s", name, code, got, c.code, c.want)
			}
			// A code is checked after the fields and before the records.
			if code, got = s.Call(transactionUpdate, body); (c.code == 400) != (code == 400) || c.code != 400 && code != 403 {
				t.Errorf("%s without a code: %d %s", name, code, got)
			}
		}
		s.has("2", "0.501")
		if s.status(good) != -9 || s.count("job") != 0 || s.count("notification")+s.count("outbox") != 0 {
			t.Error("something was written")
		}
	})
}

func quoted(ids ...string) string {
	text, _ := json.Marshal(ids)
	return string(text)
}

// D-TX-11: in the account and by mail always, by SMS where there is a phone.
func TestUpdateStatusNotifiesTheOwner(t *testing.T) {
	transactionBoth(t, func(s transactionSite) {
		hers, his := s.deposit(transaction.WaitingTreasury, "0.25"), s.deposit(transaction.WaitingTreasury, "1", kurts)
		if code, got := s.sends("2", []string{hers, his}); code != 200 {
			t.Fatalf("%d %s", code, got)
		}
		for where, want := range map[string]int{
			"user_id = 'jane' AND channel = 'MAIL'": 1, "user_id = 'jane' AND channel = 'SMS'": 0,
			"user_id = 'kurt' AND channel = 'MAIL'": 1, "user_id = 'kurt' AND channel = 'SMS'": 1,
		} {
			storetest.Equal(t, s.count("outbox", where), want, "outbox", where)
		}
		for where, want := range map[string]int{
			"user_id = 'jane' AND topic = 'transaction' AND title LIKE '%0.25 BTC%' AND title LIKE '%hesab%'": 1,
			"user_id = 'kurt' AND body LIKE '%1 BTC is on your account%'":                                     1,
			"user_id IS NOT NULL": 2,
		} {
			storetest.Equal(t, s.count("notification", where), want, "notification", where)
		}
	})
}

// D-TX-03: half a second between two records and none after the last; more than 20
// are answered at once.
func TestUpdateStatusKeepsItsPace(t *testing.T) {
	transactionBoth(t, func(s transactionSite) {
		made := func(n int) (ids []string) {
			for range n {
				ids = append(ids, s.deposit(transaction.WaitingTreasury, "0.01"))
			}
			return ids
		}
		for _, n := range []int{1, 3, 20} {
			s.pauses = nil
			code, got := s.sends("2", made(n))
			if code != 200 || strings.Count(got, `"status":2`) != n || len(s.pauses) != n-1 {
				t.Errorf("%d: %d %s, after %v", n, code, got, s.pauses)
			}
			for _, p := range s.pauses {
				storetest.Equal(t, p, 500*time.Millisecond, "paused for")
			}
		}
		s.pauses = nil
		ids := made(21)
		code, got := s.sends("2", ids)
		var out struct {
			Data struct {
				Accepted bool
				ID       string
				Count    int
			}
		}
		if json.Unmarshal([]byte(got), &out) != nil || code != 200 || !out.Data.Accepted || out.Data.Count != 21 ||
			s.status(ids[0]) != -9 {
			t.Fatalf("%d %s", code, got)
		}
		j, _ := s.jobs.Finish(t, out.Data.ID, s.pause)
		if j.State != job.Done || j.Total != 21 || j.Counts.Done != 21 || len(s.pauses) != 20 || s.status(ids[20]) != 2 {
			t.Errorf("%+v, %d pauses", j, len(s.pauses))
		}
		s.has("0.45")
	})
}

// A process that dies in the middle leaves a job that goes on; each record moves once,
// whatever is done twice. Until then no other request changes them.
func TestUpdateStatusOutlivesItsProcess(t *testing.T) {
	transactionBoth(t, func(s transactionSite) {
		ids := []string{s.deposit(transaction.WaitingTreasury, "1"), s.deposit(transaction.WaitingTreasury, "2")}
		s.cut = func() bool { return true }
		code, got := s.sends("2", ids)
		if code != 200 || !strings.HasPrefix(got, `{"data":{"accepted":true,"id":"`) {
			t.Fatalf("%d %s", code, got)
		}
		if code, _ := s.sends("-5", ids[1:]); code != 409 {
			t.Errorf("a record that is being moved: %d", code)
		}
		all := storetest.Value(s.service.Store.Deposits(s.Context(), ids[0]))(s)
		params, _ := json.Marshal(map[string]any{"IDs": ids, "To": 2, "By": audit.By{UserID: "admin"}})
		for range 2 { // the step of the first record, of which the first time is not noted
			next, _, err := s.service.Kind().Step(s.Context(), job.Job{ID: all[0].JobID, Params: params})
			if err != nil || next.Done != 1 || next.Cursor != "1" || next.Rest != 500*time.Millisecond {
				t.Errorf("%+v %v", next, err)
			}
		}
		s.has("1")
		j, _ := s.jobs.Finish(t, all[0].JobID, s.pause)
		if j.State != job.Done || j.Counts.Done != 2 {
			t.Errorf("%+v", j)
		}
		s.has("3")
		if s.count("notification") != 2 || s.count("transfer") != 2 {
			t.Error("something happened twice")
		}
	})
}

// Records of a job that was cancelled can be moved by another one. A record that
// cannot be moved does not stop the rest.
func TestUpdateStatusAfterAJobThatEnded(t *testing.T) {
	transactionBoth(t, func(s transactionSite) {
		whole := s.deposit(transaction.WaitingTreasury, "999999999999999999")
		more, last := s.deposit(transaction.WaitingTreasury, "1"), s.deposit(transaction.WaitingTreasury, "1", kurts)
		s.cut = func() bool { return true }
		s.sends("-5", []string{whole, more, last})
		all := storetest.Value(s.service.Store.Deposits(s.Context(), whole))(s)
		storetest.Must(s, s.jobs.Cancel(s.Context(), audit.By{UserID: "admin"}, all[0].JobID))
		s.cut = nil
		code, got := s.sends("2", []string{whole, more})
		if code != 200 || s.status(whole) != 2 || s.status(more) != -9 || !strings.Contains(got, `"status":-9`) {
			t.Errorf("%d %s", code, got)
		}
		if code, got = s.sends("-5", []string{more, last}); code != 200 || s.status(more) != -5 {
			t.Errorf("%d %s", code, got)
		}
	})
}

// Of many administrators who decide on one record one wins.
func TestUpdateStatusInARace(t *testing.T) {
	transactionBoth(t, func(s transactionSite) {
		id := s.deposit(transaction.WaitingTreasury, "1")
		won := storetest.Race(t, 8, fault.InvalidState, func(i int) error {
			status := map[bool]string{true: "2", false: "-5"}[i%2 == 0]
			if code, got := s.sends(status, []string{id}); code != 200 {
				return fault.New(fault.Code(apitest.Refusal(got)), "refused")
			}
			return nil
		})
		if won != 1 || s.count("notification") != 1 {
			t.Errorf("%d won, %d notifications", won, s.count("notification"))
		}
	})
}
