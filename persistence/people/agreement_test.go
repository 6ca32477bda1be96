package people_test

import (
	"fmt"
	"testing"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/agreement"
	"castellan/persistence"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

func TestAgreementStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) agreement.Store { return people.NewAgreements(db) },
		storetest.Cases[agreement.Store]{
			"Accept":        acceptAgreement,
			"UniqueVersion": agreementUniqueVersion,
		}, "agreement_acceptance",
		"agreement")
}

func addAgreement(t *testing.T, s agreement.Store, name, version string) int64 {
	t.Helper()
	return storetest.Value(s.Add(t.Context(), sampleAgreement(t, name, version, "agreement/"+name+version)))(t)
}

func sampleAgreement(t *testing.T, name, version, path string) agreement.Agreement {
	return persistencetest.Whole(t, func(a *agreement.Agreement) {
		a.Name, a.Version, a.FilePath, a.AcceptedAt = name, version, path, time.Time{}
	})
}

func acceptAgreement(t *testing.T, s agreement.Store, _ commit.Committer) {
	ctx, id := t.Context(), addAgreement(t, s, "terms", "1")
	storetest.Wants(t, s.Accept(ctx, 999, "u1"), fault.RecordNotFound)
	storetest.Equal(t, storetest.Race(t, 4, "", func(int) error { return s.Accept(ctx, id, "u1") }), 4)
	accepted := func(user string) agreement.Agreement {
		all := storetest.Value(s.List(ctx, agreement.Query{UserID: user}))(t)
		return all[0]
	}
	first := accepted("u1").AcceptedAt
	storetest.Must(t, s.Accept(ctx, id, "u1"))
	if again := accepted("u1").AcceptedAt; first.IsZero() || !again.Equal(first) || !accepted("u2").AcceptedAt.IsZero() {
		t.Errorf("accepted %v, then %v, by another user %v", first, again, accepted("u2").AcceptedAt)
	}
}

func agreementUniqueVersion(t *testing.T, s agreement.Store, _ commit.Committer) {
	storetest.OneWins(t, 8, fault.RecordAlreadyExist, func(i int) error {
		return storetest.Err(s.Add(t.Context(), sampleAgreement(t, "terms", "1", fmt.Sprint("agreement/", i))))
	})
}
