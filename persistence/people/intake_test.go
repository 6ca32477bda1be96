package people_test

import (
	"slices"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/integration"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/intake"
	"castellan/persistence"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

func TestIntakeStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) intake.Store { return people.NewIntake(db) },
		storetest.Cases[intake.Store]{
			"Progress": intakeProgress,
			"Race":     intakeRace,
			"Taken":    intakeTaken,
		}, "user_import", "user_import_refusal", "user_import_note", "users",
		"integration_claim")
}

var intakeStart = time.UnixMilli(1_700_000_000_123).UTC()

// The progress is saved as written, one version after the other; an import that has not begun has version 0.
func intakeProgress(t *testing.T, s intake.Store, c commit.Committer) {
	storetest.Same(t, storetest.Value(s.State(t.Context(), "a"))(t), intake.State{ID: "a"})
	want := persistencetest.Whole(t, func(s *intake.State) { s.ID, s.Version, s.Cursor, s.Done = "a", 0, 10, false })
	storetest.Must(t, c.Commit(t.Context(), intake.Save{State: want, At: intakeStart}))
	for i := range int64(3) {
		want.Version = i + 1
		storetest.Same(t, storetest.Value(s.State(t.Context(), "a"))(t), want)
		want.Cursor, want.Imported, want.Refused, want.Done = want.Cursor+5, want.Imported+5, want.Refused+1, i == 2
		storetest.Must(t, c.Commit(t.Context(), intake.Save{State: want, At: intakeStart}))
	}
	if got, _ := s.State(t.Context(), "a"); !got.Done || got.Cursor != 25 {
		t.Errorf("%+v", got)
	}
	storetest.Equal(t, storetest.Value(s.State(t.Context(), "b"))(t).Version, 0, "another import")
}

// Of processes that save one step of an import, the first as well as a later one, exactly one succeeds, and nothing of
// the others is written.
func intakeRace(t *testing.T, s intake.Store, c commit.Committer) {
	for version := range int64(2) {
		won := storetest.RaceOfFences(t, 8, func(i int) error {
			state := intake.State{ID: "a", Version: version, StartedAt: intakeStart}
			return c.Commit(t.Context(), intake.Save{State: state, At: intakeStart},
				intake.Refuse{ImportID: "a", Refusal: intake.Refusal{Line: 100*version + int64(i) + 1, Reason: "x"}})
		})
		storetest.Equal(t, won, 1, "of 8 saved version", version)
		list := storetest.Value(s.Refusals(t.Context(), "a", 100*version, 100))(t)
		storetest.Equal(t, len(list), 1, "refusals of version", version)
	}
}

// Only the names that accounts have are taken, each of its kind; an external id of another kind of record is free.
func intakeTaken(t *testing.T, s intake.Store, c commit.Committer) {
	for i, u := range []user.User{{ID: "u1", Phone: "+905321234567", CountryCode: "90", Email: "a@example.test"},
		{ID: "u2", Email: "b@example.test"}} {
		made := user.New(u.ID, intakeStart)
		made.Phone, made.CountryCode, made.Email = u.Phone, u.CountryCode, u.Email
		kind := []integration.Kind{integration.Users, integration.Deposits}[i]
		storetest.Must(t, c.Commit(t.Context(), user.Add{User: made}, integration.Add{Claim: integration.Claim{Kind: kind,
			ExternalID: "x-" + u.ID, Digest: []byte{1}, RecordID: u.ID, At: intakeStart}}))
	}
	got, err := s.Taken(t.Context(), intake.Names{Phones: []string{"+905321234567", "+905321234568", "a@example.test"},
		Mails: []string{"a@example.test", "b@example.test", "c@example.test"}, ExternalIDs: []string{"x-u1", "x-u2", "X-U1"}})
	storetest.Must(t, err)
	slices.Sort(got.Mails)
	storetest.Same(t, got, intake.Names{Phones: []string{"+905321234567"}, Mails: []string{"a@example.test",
		"b@example.test"}, ExternalIDs: []string{"x-u1"}})
	storetest.Same(t, storetest.Value(s.Taken(t.Context(), intake.Names{}))(t), intake.Names{})
	of := storetest.Value(s.ExternalIDs(t.Context(), []string{"u1", "u2", "u3"}))(t)
	storetest.Same(t, of, map[string]string{"u1": "x-u1"})
	if err := c.Commit(t.Context(), user.Add{User: user.User{ID: "u9", Email: "a@example.test"}}); fault.CodeOf(err) !=
		fault.RecordAlreadyExist {
		t.Errorf("an address has two accounts: %v", err)
	}
}
