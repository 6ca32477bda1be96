package transaction_test

import (
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/transaction"
	"castellan/persistence"
	"castellan/persistence/persistencetest"
)

// Random orders, alone and concurrent, against the simple model: never over a limit, never a negative available
// balance, and the held amount equals the sum of the open withdrawals.
func TestWithdrawalModel(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		names := []string{"a", "b", "c"}
		m := newModel(t, db, names)
		for m.n < *orders {
			name := names[m.r.IntN(len(names))]
			m.round(name, 1+3*m.r.IntN(2)) // alone, or four at once
			m.check(name)
			if t.Failed() {
				t.Fatalf("after %d orders, -orders.seed %d", m.n, *seed)
			}
		}
		t.Logf("%d orders: %d withdrawals, refusals %v", m.n, m.made, m.refusals)
		if *orders >= 10_000 {
			for _, code := range known {
				if m.refusals[code] == 0 {
					t.Errorf("no request was refused with %s", code)
				}
			}
		}
	})
}

// round runs some orders at once, all of one user.
func (m *model) round(name string, size int) {
	o, alone := m.owners[name], size == 1
	var wait sync.WaitGroup
	var asked []*sent
	flagged := false
	for range size {
		m.n++
		switch k := m.r.IntN(24); {
		case k < 9:
			s := m.requested(name)
			want := m.refusal(s)
			if !alone {
				want = "?"
			}
			asked = append(asked, s)
			approved := alone && m.r.IntN(4) == 0
			wait.Go(func() { m.order(s, want, approved) })
		case k < 11:
			if len(o.waits) > 0 {
				s := o.waits[0]
				o.waits = o.waits[1:]
				asked = append(asked, s)
				wait.Go(func() { m.approve(s, alone) })
			}
		case k == 11 && alone:
			m.again(o)
		case k < 14 && alone:
			code, sum := codes[m.r.IntN(2)], 1+m.r.Int64N(150)
			storetest.Must(m.t, m.m.Pay(name, code+"/"+code, hundredths(sum)))
			o.posted[code] += sum
		case k == 14 && alone:
			m.advance(time.Duration(m.r.IntN(30*60)) * time.Minute)
		case k == 15 && alone:
			if code := codes[m.r.IntN(2)]; o.book[code].id == 0 || m.r.IntN(3) == 0 {
				m.book(name, code)
			}
		case k == 16 && !flagged:
			flagged = true
			write := m.flag(name)
			wait.Go(func() { storetest.Must(m.t, write()) })
		case k == 17 && alone:
			if code := codes[m.r.IntN(2)]; m.disabled[code] || m.r.IntN(8) == 0 {
				m.toggle(code)
			}
		case len(o.open) > 0:
			s, by := o.open[m.r.IntN(len(o.open))], m.r.IntN(6)
			to := targets[m.r.IntN(len(targets))]
			wait.Go(func() { m.step(s, to, by, alone) })
		}
	}
	wait.Wait()
	for _, s := range asked {
		if s.id != "" {
			m.made++
			o.all, o.open = append(o.all, s), append(o.open, s)
		}
	}
}

// order requests a withdrawal, or starts the approval of its owner.
func (m *model) order(s *sent, want fault.Code, approved bool) {
	by := audit.By{UserID: "service:wallet"}
	if !approved {
		o, err := m.Request(m.t.Context(), by, s.ask)
		s.id = o.Queued.ID
		m.judged(s, err, want)
		return
	}
	a, err := m.service.Start(m.t.Context(), by, s.ask, challenge.Starter{})
	m.judged(s, err, want)
	if err == nil {
		s.challengeID = a.Challenge.Challenge.ID
		m.owners[s.user].waits = append(m.owners[s.user].waits, s)
	}
}

// approve executes a request that its owner approves, unless the challenge has expired.
func (m *model) approve(s *sent, alone bool) {
	m.mu.Lock()
	expired := m.started[s.challengeID].Ended(m.now())
	m.mu.Unlock()
	if expired {
		return
	}
	want := fault.Code("?")
	if alone {
		want = m.refusal(s)
	}
	o, err := m.execute(s)
	m.judged(s, err, want)
	s.id = o.Queued.ID
	if err != nil {
		s.id = ""
	}
}

// again repeats a request: it returns its record, or its challenge.
func (m *model) again(o *owner) {
	by := audit.By{UserID: "service:wallet"}
	if len(o.waits) > 0 {
		s := o.waits[0]
		if a, err := m.service.Start(m.t.Context(), by, s.ask, challenge.Starter{}); err == nil {
			if open := !m.started[s.challengeID].Ended(m.now()); a.Repeated != open || a.Made != nil ||
				open && a.Challenge.Challenge.ID != s.challengeID {
				m.t.Errorf("%s again: %+v", s.external, a)
			}
			s.challengeID = a.Challenge.Challenge.ID
		} else if !slices.Contains(known, fault.CodeOf(err)) || !m.started[s.challengeID].Ended(m.now()) {
			m.t.Errorf("%s again: %v", s.external, err)
		}
	}
	if len(o.open) == 0 {
		return
	}
	s := o.open[len(o.open)-1]
	var made transaction.Outgoing
	var err error
	if s.challengeID == "" {
		made, err = m.Request(m.t.Context(), by, s.ask)
	} else if a, failed := m.service.Start(m.t.Context(), by, s.ask, challenge.Starter{}); a.Made != nil {
		made, err = *a.Made, failed
	}
	if err != nil || made.Queued.ID != s.id {
		m.t.Errorf("%s again: %s, %v, want %s", s.external, made.Queued.ID, err, s.id)
	}
}

var targets = []transaction.QueueStatus{transaction.QueueProcessing, transaction.QueueSent, transaction.QueueSuccess,
	transaction.QueueFailed, transaction.TimeOut, transaction.HotWalletIsEmpty}

// step moves a withdrawal; alone: by the table.
func (m *model) step(s *sent, to transaction.QueueStatus, by int, alone bool) {
	mover, err := transaction.Wallet, error(nil)
	switch by {
	case 0:
		mover, to = transaction.Resume, transaction.QueueReady
		_, err = m.Resume(m.t.Context(), audit.By{UserID: "op"}, s.id, "")
	case 1:
		mover, to = transaction.Cancel, transaction.QueueCancelled
		_, err = m.Cancel(m.t.Context(), audit.By{UserID: "op"}, s.id, "")
	default:
		err = m.move(s.id, to)
	}
	allowed := transaction.Allowed(mover, s.status, to) || mover == transaction.Wallet && s.status == to
	code, want := fault.CodeOf(err), fault.InvalidState
	if alone && allowed {
		switch barred := m.owners[s.user].barred(); {
		case barred == "":
		case mover == transaction.Resume:
			allowed, want = false, barred
		case to == transaction.QueueProcessing: // the claim holds it
			allowed = false
		}
	}
	if alone && (allowed != (code == "") || !allowed && code != want) ||
		code != "" && code != want && !slices.Contains(known, code) {
		m.t.Errorf("%s from %s to %s: %v", mover, s.status, to, err)
	}
}

// check reads the withdrawals of a user into the model, and compares the invariants.
func (m *model) check(name string) {
	o, now := m.owners[name], m.now()
	for _, s := range o.open {
		made := storetest.Value(m.Get(m.t.Context(), s.id))(m.t)
		if s.status = made.Queued.Status; s.status == transaction.QueueSuccess {
			s.at = now
			o.posted[s.code] -= s.n + s.fee
		}
	}
	o.open = slices.DeleteFunc(o.open, func(s *sent) bool { return s.status.Final() })
	o.all = slices.DeleteFunc(o.all, func(s *sent) bool { // no further calls use it
		return s.status.Final() && (s.status != transaction.QueueSuccess || now.Sub(s.at) > 32*24*time.Hour)
	})
	for _, code := range codes {
		b := storetest.Value(m.m.Balance(m.t.Context(), name, m.m.Pair(code+"/"+code).ID))(m.t)
		posted, locked := o.posted[code], o.locked(code)
		if b.Posted.Cmp(amount.Must(hundredths(posted))) != 0 || b.Locked.Cmp(amount.Must(hundredths(locked))) != 0 ||
			posted < locked {
			m.t.Errorf("%s has %s %s of which %s is held, want %d and %d", name, b.Posted, code, b.Locked, posted, locked)
		}
	}
	if day, month := o.used(now); day > 10_000 || month > 25_000 {
		m.t.Errorf("%s sent %d of a day, %d of a month", name, day, month)
	}
}

// Of 200 approvals at once of a withdrawal that needs two, two count, and it is released once. Of its claim and its
// cancellation by the owner, one happens.
func TestApprovalsInParallel(t *testing.T) {
	onNodes(t, 2, func(t *testing.T, dbs []*persistence.DB) {
		d := newDesk(t, dbs[0], "u")
		storetest.Must(t, d.m.Pay("u", "BTC/BTC", "1"))
		d.judges(`{` + treasury + `}`)
		const persons = 200
		for i := range persons {
			d.operators(fmt.Sprint("op", i))
		}
		nodes := d.nodes(dbs)
		id := d.queue("u", 5, "x")
		won := storetest.Race(t, persons, fault.InvalidState, func(i int) error {
			return patient(func() error { return nodes[i%len(nodes)].resume(fmt.Sprint("op", i), id) })
		})
		rows := storetest.Value(d.Judge.Past.Approved(t.Context(), id))(t)
		released := persistencetest.Did(t, d.m.DB, "MONEY_RELEASE")
		if d.read(id, transaction.QueueReady, ""); won != 2 || len(rows) != 2 || len(released) != 1 {
			t.Errorf("%d approvals, %d stored, %d releases", won, len(rows), len(released))
		}
		won = storetest.Race(t, 2, fault.InvalidState, func(i int) error {
			if i == 0 {
				return nodes[len(nodes)-1].move(id, transaction.QueueProcessing)
			}
			_, err := d.CancelOwn(t.Context(), audit.By{UserID: "u"}, id)
			return err
		})
		storetest.Equal(t, won, 1, "of claim and cancellation")
	})
}

var (
	gateRequests = flag.Int("gate.requests", 64, "requests of TestHotGate, on each database")
	gateClients  = flag.Int("gate.clients", 64, "clients of TestHotGate")
	gateSums     = flag.Int("gate.sums", 2, "sums of the rules of TestHotGate: that of all clients, and that of each")
	bulk         = flag.Int("bulk", 8, "held withdrawals of TestBulkApprovals, on each database")
)

// Requests of 64 clients on two nodes pass one gate and one of each client, and count in both sums. The log has their
// rate.
func TestHotGate(t *testing.T) {
	onNodes(t, 2, func(t *testing.T, dbs []*persistence.DB) {
		clients := *gateClients
		d := newDesk(t, dbs[0])
		d.clients(clients, "100000")
		d.unlimited()
		each := *gateRequests / clients
		last, rules := fault.Code(""), []string{sumRule("WITHDRAWAL", "INITIATOR", "24h", "COUNT", fmt.Sprint(each*clients)),
			sumRule("WITHDRAWAL", "ACCOUNT", "24h", "COUNT", fmt.Sprint(each+1))}[:*gateSums]
		if d.judges(rules...); len(rules) > 0 {
			last = fault.PolicyDenied
		}
		storetest.Must(t, d.Judge.KeepTotals(t.Context(), d.now()))
		nodes := d.nodes(dbs)
		took := make([][]time.Duration, clients)
		began := time.Now()
		storetest.Race(t, clients, "", func(i int) error {
			for n := range each {
				asked := time.Now()
				err := patient(func() error {
					_, err := nodes[i%len(nodes)].ask(fmt.Sprint("u", i), "BTC", 1, fmt.Sprint(i, " ", n))
					return err
				})
				if err != nil {
					return err
				}
				took[i] = append(took[i], time.Since(asked))
			}
			return nil
		})
		seconds, all := time.Since(began).Seconds(), slices.Concat(took...)
		slices.Sort(all)
		t.Logf("%d requests, %.0f a second, half within %v, 99 %% within %v", len(all), float64(len(all))/seconds,
			all[len(all)/2], all[len(all)*99/100])
		_, err := d.ask("u0", "BTC", 1, "one more")
		storetest.Wants(t, err, last)
	})
}

// Two persons approve all held withdrawals, as a bulk decision of the console does. The log has the time.
func TestBulkApprovals(t *testing.T) {
	onNodes(t, 2, func(t *testing.T, dbs []*persistence.DB) {
		d := newDesk(t, dbs[0], "u")
		storetest.Must(t, d.m.Pay("u", "BTC/BTC", "1000"))
		d.unlimited()
		d.operators("a", "b")
		d.judges(`{` + treasury + `}`)
		nodes := d.nodes(dbs)
		var ids []string
		for i := range *bulk {
			ids = append(ids, d.queue("u", 1, fmt.Sprint(i)))
		}
		began := time.Now()
		for i, by := range []string{"a", "b"} {
			for _, id := range ids {
				storetest.Must(t, nodes[i%len(nodes)].resume(by, id))
			}
		}
		t.Logf("%d approved in %v", len(ids), time.Since(began).Round(time.Millisecond))
		for _, id := range ids {
			d.read(id, transaction.QueueReady, "")
		}
	})
}
