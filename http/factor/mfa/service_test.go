package mfa_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"castellan/domain/factor/mfa"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/change"
	"castellan/domain/kit/storetest"
	"castellan/http/apitest"
	"castellan/http/edge"
	httpmfa "castellan/http/factor/mfa"
	"castellan/persistence"
	"castellan/persistence/factor"
)

// service is the section over a real database.
type service struct {
	*apitest.Site
	t    *testing.T
	live *mfa.Cache
	db   *persistence.DB
}

// both runs a test on a fresh installation on each database.
func both(t *testing.T, test func(t *testing.T, s *service)) {
	t.Helper()
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		store := factor.NewMFA(db)
		storetest.Must(t, db.InTx(t.Context(), func(ctx context.Context) error { return mfa.Seed(ctx, store) }))
		live := mfa.NewCache(store)
		storetest.Must(t, live.Reload(t.Context()))
		changes := admin.Changes{Commit: db, Now: time.Now, Topic: change.MFA, Follow: live.Follow}
		site := apitest.Serve(t, edge.Options{}, httpmfa.Group{Admin: &mfa.Admin{Store: store, Changes: changes},
			Service: func(code string) bool { return code == "A2" }})
		test(t, &service{site.Below("/admin/system/mfa/"), t, live, db})
	})
}

// add adds a policy and returns its id.
func (s *service) add(body string) (id int64) {
	s.t.Helper()
	status, answer := s.Call("POST policies/common", body)
	if _, err := fmt.Sscanf(answer, `{"id":%d}`, &id); err != nil || status != 200 || id < 1 {
		s.t.Fatalf("%s: %d %s", body, status, answer)
	}
	return id
}

// policy is the listed form of a policy: name, end, methods, numbers.
func (s *service) policy(id int64) string {
	s.t.Helper()
	var list []struct {
		ID       int64
		Name     string
		ExpireAt int64
		Detail   struct {
			Methods             json.RawMessage
			Required, Preffered int
		}
	}
	_, answer := s.Call("GET policies", "")
	storetest.Must(s.t, json.Unmarshal([]byte(answer), &list))
	for _, p := range list {
		if p.ID == id {
			return fmt.Sprintf("%s %d %s %d %d", p.Name, p.ExpireAt, p.Detail.Methods, p.Detail.Required,
				p.Detail.Preffered)
		}
	}
	return "not listed"
}
