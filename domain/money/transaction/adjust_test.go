package transaction_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/ledger"
	"castellan/domain/money/policy"
	"castellan/domain/money/transaction"
	"castellan/persistence"
	"castellan/persistence/kit"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

var errDown = errors.New("the database is down")

// accounts is a store of accounts that may fail.
type accounts struct {
	user.Store
	err error
}

func (a accounts) Get(ctx context.Context, id string) (user.User, error) {
	if a.err != nil {
		return user.User{}, a.err
	}
	return a.Store.Get(ctx, id)
}

// newCounter returns the service of adjustments over a desk with the user u, and the address of the treasury for
// bitcoin.
func newCounter(t *testing.T) (*desk, *transaction.Service) {
	t.Helper()
	return newCounterIn(t, persistencetest.SQLite(t))
}

func newCounterIn(t *testing.T, db *persistence.DB) (*desk, *transaction.Service) {
	t.Helper()
	d := newDesk(t, db, "u")
	parameters := kit.NewParameters(d.m.DB)
	storetest.Must(t, d.m.DB.InTx(t.Context(), func(ctx context.Context) error {
		return parameter.Treasury.Change(ctx, parameters, func(parameter.Addresses) (parameter.Addresses, error) {
			return parameter.Addresses{"BTC": {"BTC": addresses["BTC"]}}, nil
		})
	}))
	storetest.Must(t, d.Parameters.Reload(t.Context()))
	return d, &transaction.Service{Ledger: d.m.Ledger, Users: d.Users, Currencies: d.m.Currencies,
		Parameters: d.Parameters, Now: d.now, Store: money.NewTransactions(d.m.DB)}
}

func adjustment(direction transaction.Direction, sum, uniqueID string) transaction.Adjustment {
	return transaction.Adjustment{UserID: "u", CurrencyCode: "BTC", NetworkCode: "BTC", Amount: amount.Must(sum),
		Direction: direction, UniqueID: uniqueID}
}

// A preview refuses a debit of more than the balance, and a credit out of range.
func TestPreview(t *testing.T) {
	d, s := newCounter(t)
	storetest.Must(t, d.m.Pay("u", "BTC/BTC", "5"))
	_, _, err := s.Preview(t.Context(), adjustment(transaction.Debit, "5.00000001", ""))
	if !errors.Is(err, ledger.ErrInsufficient) {
		t.Errorf("a debit of more than the balance: %v", err)
	}
	if _, _, err := s.Preview(t.Context(), adjustment(transaction.Debit, "5", "")); err != nil {
		t.Errorf("a debit of the whole balance: %v", err)
	}
	_, _, err = s.Preview(t.Context(), adjustment(transaction.Credit, "999999999999999999", ""))
	if !errors.Is(err, ledger.ErrTooLarge) {
		t.Errorf("a credit out of range: %v", err)
	}
}

// An id has at most 128 characters.
func TestLongestIDOfAnAdjustment(t *testing.T) {
	_, s := newCounter(t)
	for n, fields := range map[int]string{128: "", 129: "uniqueId"} {
		a := adjustment(transaction.Credit, "2", strings.Repeat("ü", n))
		_, _, previewed := s.Preview(t.Context(), a)
		_, adjusted := s.Adjust(t.Context(), audit.By{UserID: "op"}, a)
		storetest.WantsFields(t, previewed, fields)
		storetest.WantsFields(t, adjusted, fields)
	}
}

// Credits of deposits and adjustments have their own sums.
func TestSumsOfCreditsAndAdjustments(t *testing.T) {
	l := newTill(t)
	d, s := l.desk, l.Service
	d.m.User("chief", func(u *user.User) { u.Roles = []string{"treasury"} })
	s.Judge = d.judges(sumRule("ADJUSTMENT", "INITIATOR", "24h", "VALUE", "100"),
		sumRule("DEPOSIT", "PLATFORM", "1h", "COUNT", "2"))
	adjust := func(by, sum, uniqueID string, direction transaction.Direction) error {
		_, err := s.Adjust(t.Context(), audit.By{UserID: by}, adjustment(direction, sum, uniqueID))
		return err
	}
	storetest.Must(t, adjust("a", "1", "1", transaction.Credit))
	storetest.Must(t, adjust("a", "1", "1", transaction.Credit)) // a repetition
	storetest.Must(t, adjust("a", "1", "2", transaction.Debit))
	storetest.Must(t, adjust("b", "0.5", "3", transaction.Credit))
	storetest.Wants(t, adjust("a", "0.01", "4", transaction.Credit), fault.PolicyDenied)
	won := storetest.Race(t, 4, fault.PolicyDenied, func(i int) error {
		return adjust("b", "0.2", fmt.Sprint("race", i), transaction.Credit)
	})
	storetest.Equal(t, won, 2, "adjustments passed")
	d.advance(24 * time.Hour)
	storetest.Must(t, adjust("a", "0.01", "4", transaction.Credit))

	credit := func(n int, final bool) (transaction.Status, error) {
		r, err := s.Report(t.Context(), wallet, transaction.Report{ExternalID: fmt.Sprint("d", n), UserID: "u",
			CurrencyCode: "BTC", Network: "BTC", Amount: amount.Must("1"), TxID: fmt.Sprint("tx", n), Final: final})
		return r.Status, err
	}
	want := func(n int, final bool, want transaction.Status) {
		t.Helper()
		if got, err := credit(n, final); err != nil || got != want {
			t.Errorf("deposit %d is %s, %v, want %s", n, got, err, want)
		}
	}
	want(1, true, transaction.Finalized)
	want(2, false, transaction.WaitingSender)
	want(2, true, transaction.Finalized)
	want(3, true, transaction.WaitingSender)
	want(3, true, transaction.WaitingSender)
	want(1, true, transaction.Finalized)
	d.advance(time.Hour - time.Millisecond)
	want(3, true, transaction.WaitingSender)
	d.advance(time.Millisecond)
	want(3, true, transaction.Finalized)
	storetest.Must(t, s.Judge.KeepTotals(t.Context(), d.now()))
	storetest.Must(t, money.NewTransactions(d.m.DB).VerifyTotals(t.Context()))

	// The facts of adjustments are stored, too: rehearsals and explanations have them.
	var r policy.Rule
	storetest.Must(t, json.Unmarshal([]byte(sumRule("ADJUSTMENT", "INITIATOR", "24h", "VALUE", "90")), &r))
	found, _, err := s.Judge.Rehearse(t.Context(), d.now().Add(-48*time.Hour), r)
	storetest.Must(t, err)
	if h := found[0]; h.Considered != 6 || h.Denied != 2 || h.Unknown != 0 || len(h.Examples) != 2 {
		t.Fatalf("%+v", h)
	}
	f, totals, err := s.Judge.Stored(t.Context(), s.Judge.Rules(), found[0].Examples[1])
	storetest.Must(t, err)
	if v, all := s.Judge.Rules().Explain(f, totals); v.Deny || f.Kind != policy.Adjustment ||
		f.Initiator.String() != "OPERATOR:a" || all[0].Used.String() != "100" {
		t.Errorf("%+v, %+v, %+v", f, v, all)
	}
}

// An adjustment that rules permit with an approval alone passes as a request that a member of the group has approved.
func TestAdjustmentNeedsSecondPerson(t *testing.T) {
	d, s := newCounter(t)
	d.operators("chief", "asks")
	d.m.User("clerk", func(*user.User) {})
	over := func(lira, effect string) string {
		return `{"kinds":["ADJUSTMENT"],"match":{"amount":{"over":"` + lira + `","unit":"TRY"}},` + effect + `}`
	}
	s.Judge = d.judges(over("50", `"effect":{"type":"APPROVAL","group":"treasury","required":1}`), over("500", deny))
	n := 0
	adjust := func(approver, sum string) (err error) {
		n++
		inside := func(ctx context.Context) error { // as under an Idempotency-Key
			_, err = s.Adjust(ctx, audit.By{UserID: "asks"}, transaction.Adjustment{UserID: "u", CurrencyCode: "BTC",
				NetworkCode: "BTC", Amount: amount.Must(sum), Direction: transaction.Credit, UniqueID: fmt.Sprint(n)})
			return nil
		}
		storetest.Must(t, d.m.DB.InTx(audit.WithApprover(t.Context(), approver), inside))
		return err
	}
	storetest.Must(t, adjust("", "0.5"))
	storetest.Wants(t, adjust("", "0.51"), fault.PolicyDenied)
	storetest.Wants(t, adjust("clerk", "0.51"), fault.Forbidden)
	storetest.Wants(t, adjust("asks", "0.51"), fault.Forbidden)
	storetest.Must(t, adjust("chief", "0.51"))
	storetest.Wants(t, adjust("chief", "5.01"), fault.PolicyDenied)
	if got := d.details("MONEY_DENY"); got != "POLICY_DENIED: rule 0 (1), rule 1 (1)\nPOLICY_DENIED: rule 0 (1)\n" {
		t.Error(got)
	}
}
