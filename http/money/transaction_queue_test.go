package money_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/ledger"
	"castellan/domain/money/transaction"
	"castellan/persistence/account"
	"castellan/persistence/money"
)

const (
	decide    = "POST /admin/update-wallet-withdrawal-crypto-queue"
	queueList = "GET /admin/get-withdrawal-crypto-queue"
	processes = "GET /process/get-process-admin?userId=jane"
)

func decision(id, status, code string) string {
	return `{"withdrawalId":"` + id + `","status":` + status + `,"currencyCode":` + code + `}`
}

// entry is an entry of jane as it is shown to admin, who may list accounts.
func (s transactionSite) entry(id string, status int, description, sum, cost string) string {
	q := storetest.Value(s.service.Store.Queued(s.Context(), id))(s)
	return fmt.Sprintf(`{"id":"%s","userId":"jane","code":"BTC","address":"bc1away","network":"BTC",`+
		`"explorerUrl":"https://explorer.example/tx/x%%2F1","transactionStatus":%d,"transactionDescription":"%s",`+
		`"amount":%s,"fee":%s,"createdAt":"%s","reason":null,"fullName":"Jane Işık","email":"jane@example.com",`+
		`"phoneNumber":null,"hold":null,"initiator":"","ownerMethods":[]}`, id, status, description, sum, cost,
		q.At.UTC().Format("2006-01-02T15:04:05.000Z"))
}

func fee(sum string) func(*transaction.Queued) {
	return func(q *transaction.Queued) { q.Fee = new(amount.Must(sum)) }
}

// Section 3.4, rows 3 and 4; D-TX-08: what has gone out is booked once, with the fee of
// its own or else that of the currency, and has a process.
func TestQueueDecisions(t *testing.T) {
	transactionBoth(t, func(s transactionSite) {
		s.deposit(transaction.Finalized, "10")
		for _, c := range []struct {
			from transaction.QueueStatus
			edit func(*transaction.Queued)
			has  string // afterwards
			fees string
			cost string
		}{
			{transaction.HotWalletIsEmpty, func(*transaction.Queued) {}, "8.999", "0.001", "0.001"},
			{transaction.TimeOut, fee("0.5"), "7.499", "0.501", "0.5"},
			{transaction.HotWalletIsEmpty, fee("0"), "6.499", "0.501", "0"},
		} {
			before := s.count("process")
			id := s.enqueue(c.from, "1", c.edit)
			status, got := s.Call(decide, decision(id, "4", `"btc"`))
			if want := `{"data":` + s.entry(id, 4, "success", "1", c.cost) + `}`; status != 200 || got != want {
				t.Errorf("%d %s, want %s", status, got, want)
			}
			s.has(c.has, "0")
			s.holds(ledger.Fee, c.fees)
			w := storetest.Value(s.service.Store.Withdrawal(t.Context(), id))(t)
			if w.Status != transaction.Processing || w.TransferID == "" || s.count("process") != before+1 ||
				s.count("process", "transaction_id = '"+id+"' AND status = 1") != 1 {
				t.Errorf("%+v", w)
			}
			s.Wants(decide, decision(id, "4", `"BTC"`), 409, "INVALID_STATE")
			s.Wants(decide, decision(id, "5", `"BTC"`), 409, "INVALID_STATE")
			s.has(c.has, "0")
		}
		for _, from := range []transaction.QueueStatus{transaction.HotWalletIsEmpty, transaction.TimeOut} {
			id := s.enqueue(from, "1", fee("0.25"))
			s.Wants(decide, `{"withdrawalId":"`+id+`","status":"5","reason":"by hand"}`, 200,
				`{"data":`+s.entry(id, 5, "waitingApproval", "1", "0.25")+`}`)
			s.Wants(decide, decision(id, "5", "null"), 409, "INVALID_STATE")
			s.Wants(decide, decision(id, "4", `"BTC"`), 409, "INVALID_STATE")
		}
		s.has("6.499", "2.5") // both are held as before
		storetest.Equal(t, s.count("process"), 3, "processes")
		if n := s.count("audit", "action = 'WITHDRAWAL_QUEUE_STATUS' AND user_id = 'jane'"); n != 5 {
			t.Errorf("%d audit rows", n)
		}
		for _, detail := range []string{"timeOut to waitingApproval: 1 BTC; by hand", "timeOut to success: 1 BTC, fee 0.5",
			"hotWalletInsufficientBalance to success: 1 BTC"} {
			if n := s.count("audit", "action = 'WITHDRAWAL_QUEUE_STATUS' AND detail = '"+detail+"'"); n != 1 {
				t.Errorf("%d audit rows say %q", n, detail)
			}
		}
	})
}

// The queue says what a held withdrawal waits for: rules, approvals that count, and who asked for it.
func TestQueueHeld(t *testing.T) {
	transactionBoth(t, func(s transactionSite) {
		s.deposit(transaction.Finalized, "10")
		users := account.NewUsers(s.db)
		s.service.Judge = &transaction.Judge{Past: money.NewTransactions(s.db), Users: users,
			Shared: func(context.Context, string, string) (bool, error) { return false, nil }}
		for _, name := range []string{"ann", "bob"} {
			u := user.New(name, s.now())
			u.Roles = []string{"treasury"}
			storetest.Must(t, s.db.Commit(t.Context(), user.Add{User: u}))
		}
		asked := transaction.Withdrawal{Initiator: "SERVICE:shop", OwnerMethods: "PUSH+MAIL"}
		id := s.enqueueAs(asked, transaction.QueueWaiting, "1", func(q *transaction.Queued) {
			q.Held = transaction.Held{Reason: transaction.HeldPolicy, Since: time.UnixMilli(1e12),
				Until: time.UnixMilli(2e12), Asks: `{"rules":[{"label":"Large","version":3}],"approvals":[{"group":"treasury",` +
					`"required":2,"expires":"72h"},{"group":"admin","required":1,"expires":"1h"}]}`}
		})
		all, err := s.service.Store.Queue(t.Context(), transaction.QueueQuery{ID: &id}, page.Query[transaction.Place]{})
		storetest.Must(t, err)
		digest := s.service.Order(all.Records[0].Outgoing).Digest()
		for i, userID := range []string{"ann", "jane", "bob"} { // jane is the owner; bob approved another order
			storetest.Must(t, s.db.Commit(t.Context(), transaction.AddApproval{ID: id, UserID: userID,
				OrderDigest: digest[:len(digest)-i/2], At: s.now()}))
		}
		const hold = `"hold":{"reason":"POLICY","since":"2001-09-09T01:46:40.000Z","until":"2033-05-18T03:33:20.000Z",` +
			`"rules":[{"label":"Large","version":3}],"approvals":[{"group":"treasury","required":2,"given":1,` +
			`"expiresAt":"2001-09-12T01:46:40.000Z"},{"group":"admin","required":1,"given":0,` +
			`"expiresAt":"2001-09-09T02:46:40.000Z"}],"approvedBy":["ann"]},"initiator":"SERVICE:shop",` +
			`"ownerMethods":["PUSH","MAIL"]`
		if _, got := s.Call(queueList+"?statusCode=5", ""); !strings.Contains(got, hold) {
			t.Errorf("%s, want %s", got, hold)
		}
	})
}

func TestQueueDecisionsRefused(t *testing.T) {
	transactionBoth(t, func(s transactionSite) {
		s.deposit(transaction.Finalized, "3")
		waits := s.enqueue(transaction.TimeOut, "1")
		tooFine, now := amount.Must("0.000000001"), s.now()
		fine := id.New(now)
		s.do(transaction.Enqueue(transaction.Withdrawal{ID: fine, UserID: "jane", Asset: s.asset(),
			Amount: amount.Must("0.5"), At: now},
			transaction.Queued{Status: transaction.TimeOut, Fee: &tooFine}, amount.Amount{}))
		for body, want := range map[string]string{
			decision(waits, "6", `"BTC"`):                                "400 INVALID_FIELD status",
			decision(waits, "1", `"BTC"`):                                "400 INVALID_FIELD status",
			decision(waits, "4", "null"):                                 "400 INVALID_FIELD currencyCode",
			decision(waits, "4", `"ETH"`):                                "400 INVALID_FIELD currencyCode",
			decision(waits, "4", `"XYZ"`):                                "400 INVALID_FIELD currencyCode",
			decision("nothing", "4", "null"):                             "400 INVALID_FIELD currencyCode",
			decision("nothing", "4", `"BTC"`):                            "404 RECORD_NOT_FOUND",
			decision("nothing", "5", "null"):                             "404 RECORD_NOT_FOUND",
			decision(fine, "4", `"BTC"`):                                 "409 INVALID_STATE", // too fine for the network
			decision(s.deposit(transaction.Finalized, "1"), "5", "null"): "404 RECORD_NOT_FOUND",
		} {
			s.Gets(decide, body, want)
		}
		s.has("4", "1.501")
		if s.count("process") != 0 || s.count("transfer") != 2 || s.count("withdrawal_queue", "status <> 7") != 0 {
			t.Error("something was written")
		}
	})
}

// A fee that is not there any more is not taken, and nothing else is.
func TestQueueDecisionWithoutFunds(t *testing.T) {
	transactionBoth(t, func(s transactionSite) {
		s.deposit(transaction.Finalized, "1")
		at := s.now()
		q := transaction.Queued{Status: transaction.TimeOut}
		w := transaction.Withdrawal{ID: id.New(at), UserID: "jane", Asset: s.asset(), Amount: amount.Must("1"), At: at}
		s.do(transaction.Enqueue(w, q, amount.Amount{})) // before the currency had a fee
		s.Wants(decide, decision(w.ID, "4", `"BTC"`), 409, "INVALID_STATE")
		s.has("1", "1")
	})
}

// Of many who decide at once one wins, and one transfer of each sort is made.
func TestQueueDecisionsInARace(t *testing.T) {
	transactionBoth(t, func(s transactionSite) {
		s.deposit(transaction.Finalized, "10")
		for _, mixed := range []bool{false, true} {
			id := s.enqueue(transaction.TimeOut, "1")
			won := storetest.Race(t, 8, fault.InvalidState, func(i int) error {
				status := "4"
				if mixed && i%2 == 0 {
					status = "5"
				}
				return s.Try(decide, decision(id, status, `"BTC"`))
			})
			storetest.Equal(t, won, 1, "won")
		}
	})
}

// D-PRC-05.
func TestQueueList(t *testing.T) {
	transactionBoth(t, func(s transactionSite) {
		s.deposit(transaction.Finalized, "10")
		first := s.now()
		a := s.enqueue(transaction.HotWalletIsEmpty, "1", func(q *transaction.Queued) {
			q.AddressTag, q.ExternalID, q.Attempt = "tag", "ext", "att"
		})
		s.pause(first.Add(25 * time.Hour))
		b := s.enqueue(transaction.TimeOut, "2", func(q *transaction.Queued) { q.TxID = "" })
		s.pause(first.Add(50 * time.Hour))
		c := s.enqueue(transaction.QueueWaiting, "1")
		s.Call(decide, decision(b, "4", `"BTC"`))
		s.Wants(queueList+"?id="+a, "", 200, "["+s.entry(a, 6, "hotWalletInsufficientBalance", "1", "0.001")+"]")
		s.Wants(queueList+"?id="+b, "", 200, "["+strings.Replace(s.entry(b, 4, "success", "2", "0.001"),
			"https://explorer.example/tx/x%2F1", "", 1)+"]")
		day := first.Add(25 * time.Hour).Format("2006-01-02")
		for query, want := range map[string][]string{
			"": {c, b, a}, "userId=jane": {c, b, a}, "userId=kurt": nil, "code=BTC": {c, b, a}, "code=btc": nil, "code=ETH": nil,
			"network=BTC": {c, b, a}, "network=ETH": nil, "code=BTC&network=ETH": nil, "address=bc1away": {c, b, a},
			"address=bc1": nil, "addressTag=tag": {a}, "externalId=ext": {a}, "attemptIdentifier=att": {a}, "txId=x%2F1": {c, a},
			"isActive=true": {c, a}, "isActive=false": {b}, "statusCode=6": {a}, "statusCode=7": nil, "statusCode=4": {b},
			"statusCode=5": {c}, "statusCode=99": nil, "fullName=JANE": {c, b, a}, "fullName=ne%20I%C5%9F": {c, b, a},
			"fullName=kurt": nil, "startDate=" + fmt.Sprint(first.Add(25*time.Hour).UnixMilli()): {c, b},
			"endDate=" + fmt.Sprint(first.UnixMilli()): {a}, "startDate=" + day + "&endDate=" + day: {b},
			"statusCode=6&isActive=false": nil, "unknown=1": {c, b, a}, "limit=1": {c},
		} {
			status, got := s.Call(queueList+"?"+query, "")
			var ids []string
			for part := range strings.SplitSeq(got, `{"id":"`) {
				if id, _, ok := strings.Cut(part, `"`); ok && part[0] != '[' {
					ids = append(ids, id)
				}
			}
			if status != 200 || fmt.Sprint(ids) != fmt.Sprint(want) {
				t.Errorf("%s: %d %s, want %v", query, status, got, want)
			}
		}
		s.Wants(queueList+"?startDate=2&endDate=1", "", 400, "INVALID_FIELD startDate")
		s.lists = false // contact data is for callers who may list accounts
		hidden := s.entry(a, 6, "hotWalletInsufficientBalance", "1", "0.001")
		hidden = strings.Replace(hidden, `"jane@example.com"`, "null", 1)
		s.Wants(queueList+"?id="+a, "", 200, "["+hidden+"]")
	})
}

// D-PRC-04.
func TestProcessList(t *testing.T) {
	transactionBoth(t, func(s transactionSite) {
		s.deposit(transaction.Finalized, "10")
		first := s.now()
		a := s.enqueue(transaction.TimeOut, "1")
		s.Call(decide, decision(a, "4", `"BTC"`))
		s.pause(first.Add(time.Hour))
		at := s.now()
		inside := transaction.Withdrawal{ID: id.New(at), UserID: "jane", Asset: s.asset(), Amount: amount.Must("2"),
			ToAddress: "castellan:1:kurt", At: at}
		s.do(transaction.Enqueue(inside, transaction.Queued{Status: transaction.TimeOut}, amount.Amount{}))
		s.Call(decide, decision(inside.ID, "4", `"BTC"`))
		one := `{"transactionId":"` + a + `","networkCode":"BTC","txId":"x/1",` +
			`"explorerUrl":"https://explorer.example/tx/x%2F1","internalTransaction":false,"currencyCode":"BTC","amount":1}`
		two := `{"transactionId":"` + inside.ID + `","networkCode":"BTC","txId":"","explorerUrl":"",` +
			`"internalTransaction":true,"currencyCode":"BTC","amount":2}`
		for query, want := range map[string]string{
			"": two + "," + one, "&code=BTC": two + "," + one, "&code=ETH": "", "&type=bireysel": two + "," + one,
			"&type=kurumsal": "", "&type=x": "", "&endDate=" + fmt.Sprint(first.UnixMilli()): one,
			"&startDate=" + fmt.Sprint(at.UnixMilli()): two, "&limit=1": two,
		} {
			s.Wants(processes+query, "", 200, "["+want+"]")
		}
		s.Wants("GET /process/get-process-admin?userId=nobody&type=bireysel", "", 200, "[]")
		s.Wants(processes+"&startDate=2&endDate=1", "", 400, "INVALID_FIELD startDate")
	})
}
