package faults

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// The limit of the firewall that the test uses up around each restart. The period is so long that nothing is refilled.
const upgradeLimit, upgradePeriod, upgradeKeys = 20, time.Hour, 6

// rolling is a cluster whose nodes change their version under load.
type rolling struct {
	*blackbox.Cluster
	*caravan
	*platform
	limited int // addresses that have used up the limit

	payer     blackbox.Account
	requested map[string]string // the withdrawals that were acknowledged, by their external id
	doubts    int               // of requests for withdrawals that were repeated
	renewals  int
	wrong     error
}

// Three nodes of the earlier version are upgraded one by one under load, downgraded and upgraded again. The clients
// repeat at another node what a node refused as unavailable, and see no other error. Every acknowledged login, renewal
// and withdrawal is known afterwards, each once; a limit admits exactly its number; and each version serves its whole
// account story on the newer schema.
func TestRollingUpgradeAndRollback(t *testing.T) {
	t.Parallel()
	old := earlier(t)
	p := newPlatform(t, "postgres", old)
	p.site.Set(forVisitors...).Set("HTTP_PUBLIC_URL="+publicURL, "HTTP_TRUSTED_PROXIES=127.0.0.1")
	c := p.site.Cluster()
	r := &rolling{Cluster: c, platform: p, requested: map[string]string{}}
	k := r.prepare(t)
	r.story(t, c.Nodes[0])
	stop := make(chan struct{})
	r.start(t)
	r.ends.Go(func() { r.repeat(stop, 40*time.Millisecond, r.pay) })
	r.ends.Go(func() { r.repeat(stop, 30*time.Millisecond, func(i int) error { return r.renew(t, k, i) }) })
	began := time.Now()
	turns := []string{""}
	for range *upgradeRounds {
		turns = append(turns, old, "")
	}
	for _, program := range turns {
		for range 3 {
			r.exactly(t, func() { r.replace(program) })
			for _, n := range []*blackbox.Node{c.Nodes[0], c.Nodes[2]} { // the oldest and the newest
				r.story(t, n)
			}
		}
	}
	took := time.Since(began)
	close(stop)
	r.check(t, "after the upgrades")
	if r.wrong != nil {
		t.Fatal(r.wrong)
	}
	visits := 0
	for i, v := range r.all {
		if err := errors.Join(v.finish(r.pick(i)), v.check(r.pick(i+1), len(v.past))); err != nil {
			t.Fatalf("traveller %d: %v\n%s", i, err, strings.Join(v.trail, "\n"))
		}
		visits += len(v.past)
	}
	logins := visits + r.logins
	storetest.Equal(t, r.Count("session")-r.before, logins, "sessions")
	r.settled(t)
	moved, _ := r.turned()
	t.Logf("%d rounds in %v: %d steps, %d logins, %d renewals, %d withdrawals (%d requests repeated), %d stories, "+
		"%d turns to another node", *upgradeRounds, took.Round(time.Second), r.steps.Load(), logins, r.renewals,
		len(r.requested), r.doubts, r.stories, moved)
}

// prepare starts the nodes and gives the platform a rule, travellers, and an account with money and a session.
func (r *rolling) prepare(t *testing.T) *blackbox.Keyed {
	t.Helper()
	for range 3 {
		r.join()
	}
	blackbox.Whole(t, r.Cluster)
	n := r.Nodes[0]
	boss := blackbox.Admin(t, r.Site, n)
	k := &blackbox.Keyed{Key: blackbox.ECKey(t), At: publicURL}
	r.payer = r.customer(t, n, boss)
	k.Login(t, n, r.payer)
	r.open(t, n, boss)
	r.caravan = newCaravan(t, r.Site, 3, r.Nodes...)
	blackbox.Rule(t, n, boss, "exact", "rate_limit", map[string]any{"period": upgradePeriod.Milliseconds(),
		"limit": upgradeLimit, "targetResources": []string{"GET " + blackbox.KeysPath}})
	for _, n := range r.Nodes {
		n.Awaits(t, blackbox.Within(10), 200, "GET", "/integration/events", nil, r.wallet)
	}
	return k
}

// replace stops the oldest node and starts one of a program, the present one if it is "".
func (r *rolling) replace(program string) {
	old := r.Nodes[0]
	old.Stop() // while clients still use it
	r.Forget(old)
	r.route(r.Nodes...)
	r.Program = program
	r.join()
	r.route(r.Nodes...)
}

// join starts a node of the current program.
func (r *rolling) join() {
	if n := r.Join(); r.Program != "" {
		n.Client = n.Client.OtherVersion()
	}
}

// ask sends a request as the documents ask: to the next node after 503 or a lost connection, until one serves it. again
// is set if an earlier one may have had its effect.
func (r *rolling) ask(at int, method, path string, body any, headers func() blackbox.Headers) (
	a blackbox.Answer, again bool, err error) {
	for first := time.Now(); ; at++ {
		a, err = r.pick(at).Try(method, path, body, headers())
		if err == nil {
			return a, again, nil
		}
		if again = true; time.Since(first) > givesUp+r.starved.Since(first) {
			return a, again, fmt.Errorf("%s %s: no node served it: %w", method, path, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// repeat calls do with a growing number, after each pause, until the end or the first broken promise.
func (r *rolling) repeat(stop chan struct{}, pause time.Duration, do func(i int) error) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		case <-time.After(pause):
		}
		if err := do(i); err != nil {
			r.mu.Lock()
			r.wrong = errors.Join(r.wrong, fmt.Errorf("number %d: %w", i, err))
			r.mu.Unlock()
			return
		}
	}
}

// pay requests a withdrawal with the service key of the wallet and claims it.
func (r *rolling) pay(i int) error {
	external, service := fmt.Sprint("payment-", i), func() blackbox.Headers { return r.wallet }
	a, again, err := r.ask(i, "POST", withdrawalsPath, withdrawal(external, r.payer), service)
	var made struct{ Data struct{ ID, Status string } }
	if err == nil && (a.Status != 200 || json.Unmarshal(a.Body, &made) != nil || made.Data.ID == "") {
		err = fmt.Errorf("a withdrawal, repeated %v: %s", again, a)
	}
	if err != nil {
		return err
	}
	r.requested[external] = made.Data.ID
	if again {
		r.doubts++
	}
	one := withdrawalsPath + "/" + made.Data.ID
	a, again, err = r.ask(i+1, "PATCH", one, `{"status":"processing"}`, service)
	if err == nil && again && a.Status == http.StatusConflict { // as after a lost answer: read it
		a, _, err = r.ask(i+2, "GET", one, nil, service)
	}
	if err == nil && (a.Status != 200 || json.Unmarshal(a.Body, &made) != nil || made.Data.Status != "processing") {
		err = fmt.Errorf("a claim, repeated %v: %s", again, a)
	}
	return err
}

// renew renews a session that is bound to a key.
func (r *rolling) renew(t *testing.T, k *blackbox.Keyed, i int) error {
	a, again, err := r.ask(i, "POST", blackbox.RenewSessionPath, nil, func() blackbox.Headers {
		return k.Proof(t, &blackbox.Node{}, "POST", blackbox.RenewSessionPath)
	})
	if err == nil && (a.Status != 200 || a.Header.Get("x-auth") == "") {
		err = fmt.Errorf("a renewal, repeated %v: %s", again, a)
	}
	if err == nil {
		k.Token = a.Header.Get("x-auth")
		r.renewals++
	}
	return err
}

// exactly uses up a limit for new addresses, the half before do and the rest after it. It admits exactly its number.
// A request without an answer may have been admitted.
func (r *rolling) exactly(t *testing.T, do func()) {
	t.Helper()
	var admitted, unsure, refused [upgradeKeys]int
	r.limited++
	send := func(times int) {
		for i := range times * upgradeKeys {
			k := i % upgradeKeys
			from := blackbox.Headers{"X-Forwarded-For": fmt.Sprintf("198.51.%d.%d", r.limited, k+1)}
			for at, first := i, time.Now(); ; at++ {
				a, err := r.pick(at).Try("GET", blackbox.KeysPath, nil, from)
				switch {
				case err != nil && time.Since(first) < givesUp+r.starved.Since(first):
					unsure[k]++
					time.Sleep(5 * time.Millisecond)
					continue
				case err == nil && a.Status == 200:
					admitted[k]++
				case err == nil && a.Status == http.StatusTooManyRequests:
					refused[k]++
				default:
					t.Fatalf("a request with a limit: %s, %v", a, err)
				}
				break
			}
		}
	}
	send(upgradeLimit / 2)
	do()
	send(upgradeLimit)
	for k := range upgradeKeys {
		if admitted[k] > upgradeLimit || admitted[k]+unsure[k] < upgradeLimit {
			t.Errorf("restart %d: a limit of %d admitted %d, without an answer to %d", r.limited, upgradeLimit, admitted[k],
				unsure[k])
		}
	}
}

// settled compares the withdrawals with the acknowledged ones, and verifies the ledger and the audit.
func (r *rolling) settled(t *testing.T) {
	t.Helper()
	r.Has(len(r.requested)+r.stories, "withdrawal_queue")
	ids := map[string]bool{}
	for external, id := range r.requested {
		is := r.Nodes[0].Ok(t, "POST", withdrawalsPath, withdrawal(external, r.payer), r.wallet)
		if is.At(t, "data", "id") != id || is.At(t, "data", "status") != "processing" || ids[id] {
			t.Errorf("the withdrawal %s is %s, want %s", external, is, id)
		}
		ids[id] = true
	}
	r.verify(t)
}
