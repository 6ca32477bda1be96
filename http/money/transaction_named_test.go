package money_test

import (
	"fmt"
	"testing"

	"castellan/domain/kit/job"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/transaction"
)

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
		all, err := s.jobs.Store.List(s.Context(), job.Query{}, page.Query[job.Place]{Limit: 10})
		storetest.Must(t, err)
		for _, j := range all.Records {
			if j.Done != 1 || j.Failed != 1 || len(j.Failures) != 1 || j.Failures[0].Reason != "FORBIDDEN" {
				t.Errorf("the job %+v", j)
			}
		}
		if len(all.Records) != 3 {
			t.Errorf("%d jobs", len(all.Records))
		}
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
