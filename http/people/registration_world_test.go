package people_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/client"
	"castellan/domain/kit/richtext"
	"castellan/domain/kit/storetest"
	"castellan/domain/office/contract"
	"castellan/domain/people/registration"
	"castellan/domain/session/session"
	"castellan/http/apitest/flowtest"
	httpregistration "castellan/http/people/registration"
	"castellan/http/rest"
	"castellan/persistence/office"
	sessionstore "castellan/persistence/session"
)

const secret = "kedi7şeker"

type (
	answer = flowtest.Answer
	flow   = flowtest.Flow
)

// world is the section behind the engine of challenges.
type world struct {
	*flowtest.Engine
	contracts office.Contracts
	signups   *registration.SignUps
	enabled   bool
}

func registrationBoth(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	flowtest.Both(t, func(t *testing.T, e *flowtest.Engine) {
		w := &world{Engine: e, contracts: office.NewContracts(e.DB), enabled: true}
		storetest.Must(t, w.DB.InTx(t.Context(), func(ctx context.Context) error { return contract.Seed(ctx, w.contracts) }))
		e.Section = w.section
		e.Start()
		test(t, w)
	})
}

func (w *world) section() (rest.Group, flowtest.Public) {
	logins := &session.Service{Users: w.Users, Sessions: sessionstore.NewSessions(w.DB), Commit: w.DB, Tokens: w.Issuer,
		Notices: w.Starter, TokenTTL: 30 * time.Minute, Now: w.Now}
	w.signups = &registration.SignUps{Users: w.Users, Contracts: w.contracts, Engine: w.Starter, First: logins.First,
		Hasher: w.Hasher, Policy: password.DefaultPolicy(), Commit: w.Commit,
		Starts: &registration.Bounds{Networks: w.Bound(30), Phones: w.Bound(5), Mails: w.Bound(5)},
		Place:  func(client.Origin) string { return "" }, Now: w.Now}
	w.Actions.Register(w.signups.Action())
	group := httpregistration.Group{Service: w.signups, Enabled: w.enabled, Contracts: &contract.Service{
		Store: w.contracts, HTML: richtext.New(""), Changes: admin.Changes{Commit: w.DB, Now: w.Now, Lock: w.contracts.Lock}}}
	return group, group.Public()
}

// add makes an account, changed as asked.
func (w *world) add(n int, change func(*user.Add)) user.User {
	w.T.Helper()
	return w.Add(n, mail(n), change)
}

// mail is as long as the address that is sealed in the place of an owner's.
func mail(n int) string { return fmt.Sprintf("user%05d@example.invalid", n) }

// form is a sign-up with the phone number p and the mail address m.
func form(p, m int) map[string]any {
	return map[string]any{"countryCode": "90", "phoneNumber": fmt.Sprintf("532%07d", p), "email": mail(m),
		"name": "Ece", "surname": "Kaya", "password": secret, "passwordVerify": secret, "contracts": []int{1, 2}}
}

func (w *world) register(body any, headers ...string) answer {
	return w.Post("/auth/register", body, headers...)
}
