package stepup

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/factor/remembered"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

// clientsOf are remembered clients in memory, by account, key and action.
type clientsOf struct {
	remembered.Store
	rows map[string]remembered.Client
}

func (s clientsOf) Find(_ context.Context, userID, thumbprint, action string) (remembered.Client, error) {
	c, ok := s.rows[userID+" "+thumbprint+" "+action]
	if !ok {
		return c, fault.New(fault.RecordNotFound, "none")
	}
	return c, nil
}

// remembering is a starter whose LOGIN policy lists methods and remembers for some days.
func remembering(clock *time.Time, days, required int, methods ...string) *Starter {
	p := mfa.Policy{ID: 1, ActionCode: "LOGIN", Name: "p", EntityType: mfa.General, Type: mfa.Common, Required: required,
		RememberDays: days}
	for _, m := range methods {
		p.Methods = append(p.Methods, mfa.Choice{Code: m})
	}
	catalog := mfa.NewCatalog(mfa.SeedMethods(), mfa.SeedActions(), []mfa.Policy{p})
	return &Starter{Messenger: &Messenger{Catalog: func() *mfa.Catalog { return catalog },
		Now:      func() time.Time { return *clock },
		Dispatch: &post{channels: map[message.Channel]bool{message.SMS: true, message.MAIL: true}}},
		Actions: challenge.Actions{"LOGIN": {Code: "LOGIN", Flow: challenge.FlowLogin}}, Remembered: clientsOf{
			rows: map[string]remembered.Client{}}}
}

// begin takes the steps of a start that decide about its methods.
func begin(t *testing.T, s *Starter, a challenge.Account, k challenge.ClientKey) (challenge.Challenge, error) {
	t.Helper()
	r := challenge.StartRequest{Action: "LOGIN", Account: a, Proven: true, Key: k}
	plan := s.plan(s.Now(), &r)
	offer := storetest.Value(s.offer(r, plan, keys{}))(t)
	c := s.build(s.Now(), r, challenge.FlowLogin, offer, plan)
	writes, err := s.recall(t.Context(), s.Now(), &c, plan, k)
	if err == nil && (len(writes) == 1) != c.Remembered() {
		t.Errorf("%d writes, %+v", len(writes), c.Methods)
	}
	return c, err
}

// end completes the open methods that c requires, in order, and remembers.
func end(s *Starter, c challenge.Challenge) (sent int) {
	done := len(c.CompletedMethods())
	for i := range c.Methods {
		if c.Methods[i].Order == 0 && done < c.Required {
			done++
			sent++
			c.Methods[i].Order = done
		}
	}
	for _, w := range remembered.Writes(c, s.Now(), audit.By{}) {
		if add, ok := w.(remembered.Add); ok {
			s.Remembered.(clientsOf).rows[add.Row()] = add.Client
		}
	}
	return sent
}

// In a month of 10⁴ users the second factors fall by four fifths at least. No login has fewer methods than the policy
// requires, and each one that is spared was really completed by the same key, in the same credentials, within the days.
func TestMonthOfRememberedBrowsers(t *testing.T) {
	const users, days = 10_000, 30
	clock := time.UnixMilli(1_700_000_000_000)
	s := remembering(&clock, days, 1, "SMS", "MAIL")
	r := rand.New(rand.NewPCG(1, 2))
	real := map[string]time.Time{} // the last real completion by account, key and version
	var logins, sent int
	versions := make([]int64, users)
	for day := range 30 {
		for u := range users {
			a := challenge.Account{UserID: fmt.Sprint("u", u), Phone: "+905320000001", Mail: "a@example.com",
				CV: 1 + versions[u]}
			if r.IntN(1500) == 0 { // a change of the password: one in fifty in the month
				versions[u]++
				a.CV++
			}
			keys := []string{a.UserID + " desk"}
			if u%3 == 0 && day%2 == 0 {
				keys = append(keys, a.UserID+" phone")
			}
			if r.IntN(400) == 0 { // a browser that is not the owner's
				keys = append(keys, fmt.Sprint("strange", day))
			}
			for _, key := range keys {
				c := storetest.Value(begin(t, s, a, challenge.ClientKey{Thumbprint: key, Proven: true}))(t)
				logins++
				of := fmt.Sprint(a.UserID, key, a.CV)
				if c.Remembered() {
					if at, ok := real[of]; !ok || clock.Sub(at) >= days*24*time.Hour {
						t.Fatalf("day %d: %s was spared without a real completion", day, of)
					}
				}
				n := end(s, c)
				if sent += n; n > 0 {
					real[of] = clock
				}
				if len(c.CompletedMethods())+n < c.Required {
					t.Fatal("too few methods")
				}
			}
		}
		clock = clock.Add(24 * time.Hour)
	}
	if fall := 1 - float64(sent)/float64(logins); fall < 0.8 {
		t.Errorf("of %d second factors %d remain: they fall by %.2f", logins, sent, fall)
	} else {
		t.Logf("of %d second factors %d remain: they fall by %.2f", logins, sent, fall)
	}
}
