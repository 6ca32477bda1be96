package registration_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/job"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/registration"
	"castellan/persistence/account"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

// A job makes the accounts of all newcomers, each by its external id; a repeated newcomer gets the existing account.
func TestBulk(t *testing.T) {
	db := persistencetest.SQLite(t)
	changes := admin.Changes{Commit: db, Now: func() time.Time { return time.UnixMilli(1_700_000_000_000) }}
	jobs, users := kit.NewJobs(db), account.NewUsers(db)
	s := &registration.Service{Users: users, External: kit.NewIntegration(db), Changes: changes,
		Jobs: &job.Service{Store: jobs, Changes: changes, Seal: func(plain, _ []byte) []byte { return plain }}}
	newcomer := func(id, phone string) registration.Newcomer {
		return registration.Newcomer{ExternalID: id, CountryCode: "90", Phone: phone, Name: "Ayşe"}
	}
	by := audit.By{UserID: "service:shop"}
	id, err := s.AddAll(t.Context(), by, []registration.Newcomer{newcomer("c", "5320000003"), newcomer("a", "5320000001"),
		newcomer("b", "x"), newcomer("d", "5320000001")})
	storetest.Must(t, err)
	did := persistencetest.Did(t, db, registration.ActionBulk)
	if did[0].Target != id || did[0].Detail != "4 users" || did[0].ActorID != by.UserID {
		t.Errorf("%+v", did)
	}
	j, err := jobs.Get(t.Context(), id)
	storetest.Must(t, err)
	kind := s.Kind()
	if kind.Name != registration.BulkKind || j.Kind != kind.Name || kind.Items.Effect != job.Repeatable {
		t.Errorf("%+v, %+v", kind, j)
	}
	for after, want := range map[string][]string{"": {"a", "b"}, "a": {"b", "c"}, "c": {"d"}, "d": nil} {
		if got, err := kind.Items.Snapshot(t.Context(), j, after, 2); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v", after, got, err)
		}
	}
	// While the service is busy, an item waits.
	for _, code := range []fault.Code{fault.Unavailable, fault.Overloaded} {
		s.Changes.Commit = refusing{db, fault.New(code, "later")}
		if _, err := s.Kind().Items.Send(t.Context(), j, "c"); !job.IsLater(err) {
			t.Errorf("%s: %v", code, err)
		}
	}
	s.Changes.Commit = db
	for _, c := range []struct {
		ref  string
		want fault.Code
	}{{"a", ""}, {"a", ""}, {"c", ""}, {"b", fault.InvalidField}, {"d", fault.RecordAlreadyExist},
		{"e", fault.RecordNotFound}} {
		if _, err := kind.Items.Send(t.Context(), j, c.ref); err != nil && fault.CodeOf(err) != c.want ||
			(err == nil) != (c.want == "") {
			t.Errorf("%s: %v", c.ref, err)
		}
	}
	u, err := users.ByPhone(t.Context(), "+905320000001", "")
	if err != nil || u.Name != "Ayşe" || u.Status != user.Active {
		t.Errorf("%+v, %v", u, err)
	}
	broken := j
	broken.Params = []byte("{")
	if _, err := kind.Items.Send(t.Context(), broken, "a"); err == nil {
		t.Error("a job without parameters makes an account")
	}
	if _, err := kind.Items.Snapshot(t.Context(), broken, "", 2); err == nil {
		t.Error("a job without parameters has newcomers")
	}
	// While the database is away, an item waits.
	closed := persistencetest.SQLite(t)
	storetest.Must(t, closed.Close())
	s.Users, s.External, s.Changes.Commit = account.NewUsers(closed), kit.NewIntegration(closed), closed
	if _, err := s.Kind().Items.Send(t.Context(), j, "a"); err == nil || errors.Is(err, job.Skip) {
		t.Error(err)
	}
}

// refusing is a committer without transactions.
type refusing struct {
	commit.Committer
	err error
}

func (r refusing) InTx(context.Context, func(context.Context) error) error { return r.err }

// A list is refused as a whole if it is empty, too long, or has an external id that is invalid or repeated.
func TestRefusedBulk(t *testing.T) {
	s := &registration.Service{}
	list := func(n int, change func([]registration.Newcomer)) []registration.Newcomer {
		all := make([]registration.Newcomer, n)
		for i := range all {
			all[i].ExternalID = fmt.Sprint("x", i)
		}
		change(all)
		return all
	}
	none := func([]registration.Newcomer) {}
	for name, c := range map[string]struct {
		all    []registration.Newcomer
		fields string
	}{
		"empty":    {nil, "users"},
		"too long": {list(1001, none), "users"},
		"invalid": {list(3, func(all []registration.Newcomer) { all[1].ExternalID, all[2].ExternalID = "", "\n" }),
			"users[1].externalId users[2].externalId"},
		"repeated": {list(3, func(all []registration.Newcomer) { all[2].ExternalID = "x0" }), "users[2].externalId"},
	} {
		_, err := s.AddAll(t.Context(), audit.By{}, c.all)
		if f := new(fault.Error); !errors.As(err, &f) || f.Code != fault.InvalidField ||
			f.Field != c.fields && len(f.Fields) == 0 {
			t.Errorf("%s: %v", name, err)
		}
		if name == "invalid" || name == "repeated" {
			storetest.WantsFields(t, err, c.fields)
		}
	}
}
