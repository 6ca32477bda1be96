package people_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/job"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/ledger"
	"castellan/domain/money/transaction"
	"castellan/persistence/persistencetest"
)

const (
	report  = "POST deposits"
	waiting = `{"externalId":"d1","userId":"jane","currencyCode":"BTC","network":"BTC","amount":"0.25","txId":"0xAb",` +
		`"toAddress":"bc1jane","fromAddress":"bc1from","status":"waiting"}`
	sender = `,"senderInfo":{"name":"Ada","city":"London"}}`
)

var (
	informed = waiting[:len(waiting)-1] + sender
	final    = strings.Replace(waiting, "waiting", "finalized", 1)
)

// reports sends a report and checks status and balance afterwards. It returns the id.
func (s integrationMoney) reports(body, status string, code int) string {
	s.Helper()
	got, answer := s.Call(report, body)
	if got != 200 || field(s.T, answer, "status") != status ||
		!strings.Contains(answer, fmt.Sprintf(`"statusCode":%d,`, code)) {
		s.Fatalf("%s: %d %s, want %s %d", body, got, answer, status, code)
	}
	return field(s.T, answer, "id")
}

// D-INT-05: a deposit waits for its sender, then for the treasury, and is credited once.
func TestDepositMoves(t *testing.T) {
	bothMoney(t, func(s integrationMoney) {
		id := s.reports(waiting, "waitingSenderInfo", -5)
		s.reports(waiting, "waitingSenderInfo", -5) // after a lost answer
		s.reports(informed, "waitingTreasuryApproval", -9)
		for _, body := range []string{waiting, informed, edited(informed, `"name":"Ada","city":"London"`,
			`"city": "London", "name": "Ada"`)} {
			s.reports(body, "waitingTreasuryApproval", -9)
		}
		s.has("jane", "0")
		s.reports(final, "finalized", 1)
		for _, body := range []string{waiting, informed, final} { // the record as it is now
			s.reports(body, "finalized", 1)
		}
		s.has("jane", "0.25")
		_, answer := s.Call("GET deposits/"+id, "")
		for _, want := range []string{`"id":"` + id + `"`, `"externalId":"d1"`, `"userId":"jane"`, `"amount":0.25`,
			`"currencyCode":"BTC"`, `"network":"BTC"`, `"txId":"0xAb"`, `"createdAt":"`} {
			storetest.Contains(t, answer, want)
		}
		want := []string{`deposit.decided jane {"amount":"0.25","currencyCode":"BTC","depositId":"` + id +
			`","externalId":"d1","network":"BTC","status":"finalized"}`}
		storetest.Same(t, events(t, s.db), want)
		for action, detail := range map[string]string{
			"DEPOSIT_RECEIVE":  "waitingSenderInfo: 0.25 BTC",
			"DEPOSIT_SENDER":   "waitingSenderInfo to waitingTreasuryApproval: 0.25 BTC",
			"DEPOSIT_FINALIZE": "waitingTreasuryApproval to finalized: 0.25 BTC"} {
			if n := s.count("audit", "action = '"+action+"' AND user_id = 'jane' AND target = '"+id+"' AND detail = '"+
				detail+"'"); n != 1 {
				t.Errorf("%d audit rows of %s", n, action)
			}
		}
		if n := s.count("notification", "user_id = 'jane'"); n != 2 { // one for the missing sender, one for the credit
			t.Errorf("%d notifications", n)
		}
		storetest.Equal(t, s.count("deposit", "from_address = 'bc1from' AND sender_info LIKE '%Ada%'"), 1, "deposits")
	})
}

// The first report may already know the sender, or be the last one.
func TestDepositBeginsInEachState(t *testing.T) {
	bothMoney(t, func(s integrationMoney) {
		for n, c := range []struct {
			body, status string
			code         int
		}{
			{informed, "waitingTreasuryApproval", -9},
			{final, "finalized", 1},
			{edited(informed, "waiting", "finalized"), "finalized", 1},
		} {
			s.reports(edited(c.body, "d1", fmt.Sprint("d", n), "0xAb", fmt.Sprint("0x", n)), c.status, c.code)
		}
		s.has("jane", "0.5")
		storetest.Equal(t, len(events(t, s.db)), 2, "events")
		// Without toAddress the address is the user's own, and that address names the user.
		own := edited(waiting, "d1", "own", `"toAddress":"bc1jane",`, "", "0xAb", "0xc")
		id := s.reports(own, "waitingSenderInfo", -5)
		address := transaction.Address(ledgerAccount("jane", s.asset()))
		byAddress := edited(waiting, "d1", "own", `"userId":"jane",`, "", "bc1jane", address, "0xAb", "0xc")
		storetest.Equal(t, s.reports(byAddress, "waitingSenderInfo", -5), id)
		// An address that was given to the account names the user as well.
		s.service.Store = given{s.service.Store, ledgerAccount("jane", s.asset())}
		s.reports(edited(waiting, "d1", "given", `"userId":"jane",`, "", "bc1jane", "bc1given"), "waitingSenderInfo", -5)
		s.Wants(report, edited(waiting, "d1", "x", "jane", "kurt", "bc1jane", "bc1given"), 400, "INVALID_FIELD toAddress")
	})
}

// given gives the address bc1given to an account.
type given struct {
	transaction.Store
	to ledger.Account
}

func (g given) Holder(ctx context.Context, address string) (ledger.Account, error) {
	if address == "bc1given" {
		return g.to, nil
	}
	return g.Store.Holder(ctx, address)
}

func TestDepositRefuses(t *testing.T) {
	bothMoney(t, func(s integrationMoney) {
		s.reports(informed, "waitingTreasuryApproval", -9)
		rows := s.count("deposit") + s.count("integration_claim") + s.count("audit")
		kurts := transaction.Address(ledgerAccount("kurt", s.asset()))
		const conflict, invalid = "409 INVALID_STATE", "400 INVALID_FIELD"
		for body, want := range map[string]string{
			edited(waiting, "jane", "kurt"):                                                         conflict,
			edited(waiting, "0.25", "0.26"):                                                         conflict,
			edited(waiting, "0xAb", "0xAc"):                                                         conflict,
			edited(waiting, "bc1jane", "bc1other"):                                                  conflict,
			edited(waiting, "bc1from", "bc1other"):                                                  conflict,
			edited(waiting, `"BTC"`, `"ETH"`):                                                       conflict,
			edited(final, "0.25", "0.26"):                                                           conflict,
			edited(informed, "Ada", "Eve"):                                                          conflict + " senderInfo",
			edited(waiting, "d1", "d2"):                                                             "409 RECORD_ALREADY_EXIST",
			edited(final, "d1", "d2"):                                                               "409 RECORD_ALREADY_EXIST",
			edited(final, "d1", "d2", "0xAb", "0XAB", "bc1jane", "BC1JANE"):                         "409 RECORD_ALREADY_EXIST",
			edited(waiting, "d1", "d2", "jane", "nobody"):                                           "404 RECORD_NOT_FOUND",
			edited(waiting, "d1", "d2", `"userId":"jane",`, ""):                                     "404 RECORD_NOT_FOUND",
			edited(waiting, "d1", "d2", `"userId":"jane",`, "", "bc1jane", "castellan:1:nobody"):    "404 RECORD_NOT_FOUND",
			edited(waiting, "d1", "d2", `"userId":"jane",`, "", "bc1jane", "castellan:01:jane"):     "404 RECORD_NOT_FOUND",
			edited(waiting, "d1", "d2", `"userId":"jane",`, "", "bc1jane", kurts, `"BTC"`, `"ETH"`): "404 RECORD_NOT_FOUND",
			edited(waiting, "d1", "d2", "bc1jane", kurts):                                           invalid + " toAddress",
			edited(waiting, "d1", "d2", `"BTC"`, `"XYZ"`):                                           invalid + " currencyCode",
			edited(waiting, "d1", "d2", `"userId":"jane",`, "", `"toAddress":"bc1jane",`, ""):       invalid + " userId",
			edited(waiting, "d1", "d2", "0.25", "0"):                                                invalid + " amount",
			edited(waiting, "d1", "d2", "0.25", "0.123456789"):                                      invalid + " amount",
			edited(waiting, "d1", strings.Repeat("x", 129)):                                         invalid + " externalId",
			edited(waiting, "d1", strings.Repeat("ş", 65)):                                          invalid + " externalId",
			edited(informed, "d1", "d2", `{"name":"Ada","city":"London"}`, `{}`):                    invalid + " senderInfo",
			edited(informed, "d1", "d2", `{"name":"Ada","city":"London"}`, `["x"]`):                 invalid + " senderInfo",
			edited(informed, "Ada", strings.Repeat("x", 8<<10)):                                     invalid + " senderInfo",
		} {
			s.Gets(report, body, want)
		}
		s.Wants("GET deposits/nothing", "", 404, "RECORD_NOT_FOUND")
		s.As("clerk").Wants(report, edited(waiting, `"userId":"jane",`, "", "bc1jane",
			transaction.Address(ledgerAccount("admin", s.asset()))), 403, "FORBIDDEN") // D-AUTH-03: an address names its user
		storetest.Equal(t, s.count("deposit")+s.count("integration_claim")+s.count("audit"), rows, "rows")
		s.reports(edited(waiting, `"fromAddress":"bc1from",`, "", "d1", "d3", "0xAb", "0x3"), "waitingSenderInfo", -5)
	})
}

// Of equal reports at once one makes the deposit; of several external ids for one
// transaction one is accepted; the credit happens once.
func TestDepositReportsRace(t *testing.T) {
	bothMoney(t, func(s integrationMoney) {
		same := at(s.Site, report, slices.Repeat([]string{waiting}, 8)...)
		if slices.Sort(same[200]); len(slices.Compact(same[200])) != 1 || len(same) != 1 {
			t.Errorf("answers %v", same)
		}
		storetest.Equal(t, len(at(s.Site, report, slices.Repeat([]string{final}, 8)...)[200]), 8)
		s.has("jane", "0.25")
		mixed := at(s.Site, report, edited(waiting, "d1", "m", "0xAb", "0xm"), edited(final, "d1", "m", "0xAb", "0xm"),
			edited(final, "d1", "m", "0xAb", "0xm"), edited(waiting, "d1", "m", "0xAb", "0xm"))
		storetest.Equal(t, len(mixed[200]), 4, "answers", mixed)
		s.has("jane", "0.5")
		var others []string
		for n := range 8 {
			others = append(others, edited(final, "d1", fmt.Sprint("o", n), "0xAb", "0xo"))
		}
		if got := at(s.Site, report, others...); len(got[200]) != 1 || len(got[409]) != 7 {
			t.Errorf("answers %v", got)
		}
		s.has("jane", "0.75")
		if d, n, e := s.count("deposit"), s.count("transfer"), len(events(t, s.db)); d != 3 || n != 3 || e != 3 {
			t.Errorf("%d deposits, %d transfers, %d events", d, n, e)
		}
	})
}

// A deposit that the treasury's job has claimed, or has decided on, is not moved by reports.
func TestDepositAgainstTheTreasury(t *testing.T) {
	bothMoney(t, func(s integrationMoney) {
		id := s.reports(informed, "waitingTreasuryApproval", -9)
		by := audit.By{UserID: "chief"}
		u, err := s.service.UpdateStatus(t.Context(), by, transaction.Update{IDs: []string{id},
			To: transaction.FinalizedDeposit})
		storetest.Must(t, err)
		s.Wants(report, final, 409, "INVALID_STATE")
		s.reports(informed, "waitingTreasuryApproval", -9)
		s.jobs.Finish(t, u.JobID, nil)
		s.reports(informed, "finalizedDeposit", 2) // a repeat shows it as it is now
		s.Wants(report, final, 409, "INVALID_STATE")
		s.Wants(report, edited(informed, "Ada", "Eve"), 409, "INVALID_STATE")
		s.has("jane", "0.25")

		// The treasury requests the sender: a repeat leaves the request open, another sender answers it.
		other := []string{"d1", "d2", "0xAb", "0x2"}
		id = s.reports(edited(informed, other...), "waitingTreasuryApproval", -9)
		u, err = s.service.UpdateStatus(t.Context(), by, transaction.Update{IDs: []string{id}, To: transaction.WaitingSender})
		storetest.Must(t, err)
		s.jobs.Finish(t, u.JobID, nil)
		s.reports(edited(informed, other...), "waitingSenderInfo", -5)
		s.reports(edited(informed, append(other, "Ada", "Eve")...), "waitingTreasuryApproval", -9)
		s.reports(edited(final, other...), "finalized", 1)
		s.has("jane", "0.5")
		got := events(t, s.db)
		for i, want := range []string{"finalizedDeposit", "waitingSenderInfo", "finalized"} {
			if i >= len(got) || !strings.Contains(got[i], `"status":"`+want+`"`) {
				t.Fatalf("events %v", got)
			}
		}
	})
}

// D-INT-05: a deposit above the maximum of its pair is neither refused nor credited: it waits for its sender and then
// for the treasury, whatever the wallet repeats. A full account of the operator is 503 and delays other deposits only.
func TestDepositAboveTheMaximum(t *testing.T) {
	bothMoney(t, func(s integrationMoney) {
		const large = "999999999999999999"
		huge := edited(final, "0.25", large)
		s.reports(huge, "waitingSenderInfo", -5)
		s.reports(huge, "waitingSenderInfo", -5)
		id := s.reports(edited(informed, "waiting", "finalized", "0.25", large), "waitingTreasuryApproval", -9)
		s.reports(huge, "waitingTreasuryApproval", -9)
		s.reports(edited(final, "d1", "d2", "0xAb", "0x2", "0.25", "1000000000000000"), "finalized", 1)
		s.has("jane", "1000000000000000")
		decide := func(id string) job.Job {
			u, err := s.service.UpdateStatus(t.Context(), audit.By{UserID: "chief"}, transaction.Update{IDs: []string{id},
				To: transaction.FinalizedDeposit})
			storetest.Must(t, err)
			j, _ := s.jobs.Finish(t, u.JobID, nil)
			return j
		}
		if j := decide(id); j.Failed != 1 { // the account cannot hold both
			t.Errorf("%+v", j)
		}
		s.has("jane", "1000000000000000")
		kurts := []string{"jane", "kurt", "bc1jane", "bc1kurt"}
		id = s.reports(edited(informed, append(kurts, "d1", "d3", "0xAb", "0x3", "0.25", "998999999999999999")...),
			"waitingTreasuryApproval", -9)
		storetest.Equal(t, decide(id).Failed, 0)
		s.reports(edited(informed, append(kurts, "d1", "d3", "0xAb", "0x3", "0.25", "998999999999999999", "waiting",
			"finalized")...), "finalizedDeposit", 2)
		// The treasury is at its bound: a deposit is repeated later, and the treasury's own job fails for its record only.
		s.Wants(report, edited(final, "d1", "d4", "0xAb", "0x4"), 503, "UNAVAILABLE")
		id = s.reports(edited(informed, "d1", "d4", "0xAb", "0x4"), "waitingTreasuryApproval", -9)
		storetest.Equal(t, decide(id).Failed, 1)
		persistencetest.Exec(t, s.db,
			"INSERT INTO pair_max_deposit (pair_id, hi, lo) SELECT id, 0, 100 FROM currency_of_network")
		storetest.Must(t, s.service.Currencies.Reload(t.Context()))
		s.reports(edited(final, "d1", "d5", "0xAb", "0x5"), "waitingSenderInfo", -5)
	})
}

// The wallet and the treasury decide at once: one of them does, and the credit happens once.
func TestDepositRacesWithTheTreasury(t *testing.T) {
	bothMoney(t, func(s integrationMoney) {
		for n := range 8 {
			other := []string{"d1", fmt.Sprint("r", n), "0xAb", fmt.Sprint("0xr", n)}
			id := s.reports(edited(informed, other...), "waitingTreasuryApproval", -9)
			var wg sync.WaitGroup
			var status int
			var jobID string
			wg.Go(func() { status, _ = s.Call(report, edited(final, other...)) })
			wg.Go(func() {
				u, err := s.service.UpdateStatus(t.Context(), audit.By{UserID: "chief"}, transaction.Update{IDs: []string{id},
					To: transaction.FinalizedDeposit})
				if err == nil {
					jobID = u.JobID
				}
			})
			wg.Wait()
			if (status == 200) == (jobID != "") {
				t.Errorf("the wallet got %d, the treasury's job is %q", status, jobID)
			}
			if jobID != "" {
				s.jobs.Finish(t, jobID, nil)
			}
			s.has("jane", fmt.Sprint(0.25*float64(n+1)))
		}
		storetest.Equal(t, s.count("transfer"), 8, "transfers")
	})
}
