package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/change"
	"castellan/domain/kit/storetest"
	"castellan/http/apitest"
	"castellan/http/edge"
	httpmfa "castellan/http/factor/mfa"
	"castellan/persistence"
	"castellan/persistence/factor"
	"castellan/persistence/persistencetest"
)

// mfaSite is the section over a real database.
type mfaSite struct {
	*apitest.Site
	t    *testing.T
	live *mfa.Cache
	db   *persistence.DB
}

// mfaBoth runs a test on a fresh installation on each database.
func mfaBoth(t *testing.T, test func(t *testing.T, s *mfaSite)) {
	t.Helper()
	t.Parallel()
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		store := factor.NewMFA(db)
		storetest.Must(t, db.InTx(t.Context(), func(ctx context.Context) error { return mfa.Seed(ctx, store) }))
		live := mfa.NewCache(store)
		storetest.Must(t, live.Reload(t.Context()))
		changes := admin.Changes{Commit: db, Now: time.Now, Topic: change.MFA, Follow: live.Follow}
		site := apitest.Serve(t, edge.Options{}, httpmfa.Group{Admin: &mfa.Admin{Store: store, Changes: changes},
			Service: func(code string) bool { return code == "A2" }})
		test(t, &mfaSite{site.Below("/admin/system/mfa/"), t, live, db})
	})
}

// add adds a policy and returns its id.
func (s *mfaSite) add(body string) (id int64) {
	s.t.Helper()
	status, answer := s.Call("POST policies/common", body)
	if _, err := fmt.Sscanf(answer, `{"id":%d}`, &id); err != nil || status != 200 || id < 1 {
		s.t.Fatalf("%s: %d %s", body, status, answer)
	}
	return id
}

// policy is the listed form of a policy: name, end, methods, numbers.
func (s *mfaSite) policy(id int64) string {
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

// acts are the actions of the audit, sorted.
func (s *mfaSite) acts() (names []string) {
	s.t.Helper()
	for _, act := range persistencetest.Acts(s.t, s.db) {
		name, _, _ := strings.Cut(act, "|")
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// REQ-MFA-19, 20, D-2FA-12: a change holds for the next challenge, and is audited.
func TestChangesTakeEffect(t *testing.T) {
	mfaBoth(t, func(t *testing.T, s *mfaSite) {
		plan := func() string {
			p := s.live.Catalog().Plan(time.Now(), "LOGIN", "u1", "192.0.2.1")
			offer := storetest.Value(p.Offer(func(n challenge.Name) bool { return n != challenge.PUSH }))(t)
			out := fmt.Sprint(p.Required, " of")
			for _, m := range offer {
				out += fmt.Sprintf(" %s/%s/%d/%d", m.Name, m.Template, m.LifetimeMs, m.RenewMs)
			}
			return out
		}
		wants := func(want string) {
			t.Helper()
			storetest.Equal(t, plan(), want, "plans")
		}
		const builtIn = "1 of TOTP//0/0 SMS//120000/60000 MAIL//120000/60000"
		wants(builtIn)
		id := s.add(`{"actionCode":"LOGIN","name":"n","expireAt":0,"required":2,"methods":[["MAIL","m"],["SMS"],` +
			`["PUSH"]]}`)
		wants("2 of MAIL/m/120000/60000 SMS//120000/60000")
		s.Wants("PATCH methods", `{"methodCode":"MAIL","expireMs":90000,"renewStartMs":0}`, 200, `{}`)
		wants("2 of MAIL/m/90000/0 SMS//120000/60000")
		s.Wants("PATCH policies/common", fmt.Sprintf(`{"id":%d,"required":1,"methods":[["TOTP"]]}`, id), 200, `{}`)
		wants("1 of TOTP//0/0")
		s.Wants("PATCH policies/common", fmt.Sprintf(`{"id":%d,"expireAt":1}`, id), 200, `{}`)
		wants(strings.Replace(builtIn, "MAIL//120000/60000", "MAIL//90000/0", 1))
		s.Wants("PATCH actions", `{"actionCode":"LOGIN","title":{"en":"Log in"}}`, 200, `{}`)
		storetest.Equal(t, s.live.Catalog().ActionTitle("LOGIN", "tr"), "Log in")
		storetest.Same(t, s.acts(), []string{"MFA_ACTION_UPDATE", "MFA_METHOD_UPDATE", "MFA_POLICY_ADD",
			"MFA_POLICY_UPDATE", "MFA_POLICY_UPDATE"})
	})
}

// Two administrators at once: one record, one winner.
func TestRacingWrites(t *testing.T) {
	mfaBoth(t, func(t *testing.T, s *mfaSite) {
		for line, body := range map[string]string{
			"POST methods":         `{"methodCode":"PUSH_OTP","expireMs":90000,"renewStartMs":0}`,
			"POST actions":         `{"actionCode":"A1","title":{"en":"x"},"infoTableHeaders":{}}`,
			"POST policies/common": `{"actionCode":"LOGIN","name":"n","expireAt":0,"required":1,"methods":[["SMS"]]}`,
		} {
			var wg sync.WaitGroup
			var mu sync.Mutex
			count := map[int]int{}
			for range 6 {
				wg.Go(func() {
					status, _ := s.Call(line, body)
					mu.Lock()
					count[status]++
					mu.Unlock()
				})
			}
			wg.Wait()
			if count[200] != 1 || count[409] != 5 {
				t.Errorf("%s: %v", line, count)
			}
		}
		storetest.Same(t, s.acts(), []string{"MFA_ACTION_ADD", "MFA_METHOD_ADD", "MFA_POLICY_ADD"}) // none of a refusal
	})
}
