package office_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/office/contract"
	"castellan/persistence"
	"castellan/persistence/office"
	"castellan/persistence/persistencetest"
)

func TestContractStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) contract.Store { return office.NewContracts(db) },
		storetest.Cases[contract.Store]{
			"Contracts":     contractRoundTrip,
			"UniqueVersion": contractUniqueVersion,
			"OneActive":     contractOneActive,
			"Details":       contractDetails,
			"OneAtATime":    contractOneAtATime,
			"Accepted":      contractAccepted,
		}, "contract_detail", "contract",
		"contract_acceptance")
}

// Accepted contracts are listed in the order of the contracts, each once.
func contractAccepted(t *testing.T, s contract.Store, c commit.Committer) {
	at := time.UnixMilli(1_700_000_000_123).UTC()
	all := []contract.Accept{persistencetest.Whole(t, func(a *contract.Accept) { a.UserID = "u1" }),
		{UserID: "u1", ContractID: 7, At: at}}
	storetest.Must(t, c.Commit(t.Context(), all[1], contract.Accept{UserID: "u2", ContractID: 2, At: at}, all[0]))
	storetest.Same(t, storetest.Value(s.Accepted(t.Context(), "u1"))(t), all)
	storetest.Wants(t, c.Commit(t.Context(), all[0]), fault.RecordAlreadyExist)
	storetest.Equal(t, len(storetest.Value(s.Accepted(t.Context(), "u3"))(t)), 0)
}

func addContract(t *testing.T, s contract.Store, code string) int64 {
	t.Helper()
	return storetest.Value(s.Add(t.Context(), contract.Contract{Code: code, Name: "N " + code, Active: true}))(t)
}

func addDetail(t *testing.T, s contract.Store, d contract.Detail) int64 {
	t.Helper()
	return storetest.Value(s.AddDetail(t.Context(), d))(t)
}

func listDetails(t *testing.T, s contract.Store, contractID int64) []contract.Detail {
	t.Helper()
	return storetest.Value(s.Details(t.Context(), contractID))(t)
}

func contractRoundTrip(t *testing.T, s contract.Store, _ commit.Committer) {
	want := []contract.Contract{persistencetest.Whole(t, func(c *contract.Contract) {
		c.Code, c.CreatedAt, c.PublishedAt = "A", time.Time{}, time.Time{}
	}), {Code: "B", Name: "b"}}
	before := time.Now().Add(-time.Minute)
	for i := range want {
		want[i].ID = storetest.Value(s.Add(t.Context(), want[i]))(t)
	}
	got := storetest.Value(s.Contracts(t.Context(), contract.Query{}))(t)
	for i := range got {
		if got[i].CreatedAt.Before(before) {
			t.Errorf("made at %v", got[i].CreatedAt)
		}
		if published := got[i].PublishedAt; published.IsZero() == got[i].Active || got[i].Active &&
			!published.Equal(got[i].CreatedAt) {
			t.Errorf("published at %v", published)
		}
		got[i].CreatedAt, got[i].PublishedAt = time.Time{}, time.Time{}
	}
	storetest.Same(t, got, want)

	// A change keeps the code and the time.
	made := storetest.Value(s.Contracts(t.Context(), contract.Query{ID: &want[1].ID}))(t)
	next := persistencetest.Whole(t, func(c *contract.Contract) { c.ID, c.Code = want[1].ID, "OTHER" })
	storetest.Must(t, s.Save(t.Context(), next))
	next.Code, next.CreatedAt = "B", made[0].CreatedAt
	made = storetest.Value(s.Contracts(t.Context(), contract.Query{ID: &want[1].ID}))(t)
	storetest.Same(t, made, []contract.Contract{next})
}

func contractUniqueVersion(t *testing.T, s contract.Store, _ commit.Committer) {
	for _, version := range []string{"", "1"} {
		storetest.OneWins(t, 8, fault.RecordAlreadyExist, func(int) error {
			return storetest.Err(s.Add(t.Context(), contract.Contract{Code: "SAME", Name: "x", Version: version}))
		})
	}
}

// Concurrent callers never make two versions of a code active.
func contractOneActive(t *testing.T, s contract.Store, _ commit.Committer) {
	storetest.OneWins(t, 8, fault.RecordAlreadyExist, func(i int) error {
		c := contract.Contract{Code: "SAME", Name: "x", Version: fmt.Sprint(i), Active: true}
		return storetest.Err(s.Add(t.Context(), c))
	})
	draft := contract.Contract{Code: "SAME", Name: "x", Version: "draft"}
	draft.ID = storetest.Value(s.Add(t.Context(), draft))(t)
	draft.Active = true
	storetest.Wants(t, s.Save(t.Context(), draft), fault.RecordAlreadyExist)
}

func contractDetails(t *testing.T, s contract.Store, _ commit.Committer) {
	a, b := addContract(t, s, "A"), addContract(t, s, "B")
	d := persistencetest.Whole(t, func(d *contract.Detail) { d.ContractID = a })
	d.ID = addDetail(t, s, d)
	storetest.Same(t, listDetails(t, s, a), []contract.Detail{d})
	moved := persistencetest.Whole(t, func(next *contract.Detail) { next.ID, next.ContractID = d.ID, b })
	storetest.Must(t, s.SaveDetail(t.Context(), moved))
	storetest.Same(t, listDetails(t, s, b), []contract.Detail{moved})
}

// Between Lock and the end of the transaction no other transaction writes the data that was read.
func contractOneAtATime(t *testing.T, s contract.Store, tx commit.Committer) {
	const callers = 8
	id := addContract(t, s, "A")
	storetest.Race(t, callers, "", func(int) error {
		return tx.InTx(t.Context(), func(ctx context.Context) error {
			if err := s.Lock(ctx); err != nil {
				return err
			}
			there, err := s.Details(ctx, id)
			if err == nil {
				_, err = s.AddDetail(ctx, contract.Detail{ContractID: id, OrderNo: int64(len(there))})
			}
			return err
		})
	})
	for i, d := range listDetails(t, s, id) {
		storetest.Equal(t, d.OrderNo, int64(i), i)
	}
}
