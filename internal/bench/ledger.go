package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/money/ledger"
	"castellan/persistence"
)

// tellers is how many clients adjust balances at the same time.
const tellers = 64

// movements measures the promises of the ledger. The committer commits decided movements with their audit rows: all on
// one treasury, and in the same rounds on a thousand. Over HTTP balances are adjusted, all through the one treasury of
// the asset; on PostgreSQL also by two nodes at once.
func movements(b *bench) {
	b.report.begin("Movements of money, %d callers of the committer, %d clients of HTTP", committers, tellers)
	places := b.places(cheap()...)
	for _, p := range places {
		defer p.bare.close()
		must(within(p.name, attempt(func() {
			b.committed(p)
			b.adjusted(p)
		})))
	}
}

// The callers of the committer, and the users whose balances they move.
const committers, movedUsers = 256, 2000

// mover is a user's balance; the holder of mu moves it.
type mover struct {
	mu sync.Mutex
	b  ledger.Balance
}

// committed measures the committer in this process, on a separate database.
func (b *bench) committed(p *place) {
	of := series{}
	for round := range b.rounds {
		for _, treasuries := range []int{1, 1000} {
			b.await()
			w := b.commits(p, round, treasuries)
			of.add(fmt.Sprint(treasuries), w.rate())
		}
		of.add("part", of["1"][round]/of["1000"][round])
	}
	least := 8000.0
	if p.process != 0 {
		least = 5000
	}
	r := &b.report
	r.line(p.name+": committed, one treasury", "/s", of["1"], atLeast(least))
	r.line(p.name+": committed, a thousand treasuries", "/s", of["1000"], bar{})
	r.line(p.name+": one treasury, in a thousand", "×", of["part"], atLeast(0.9))
}

// commits is one period of load on the committer.
func (b *bench) commits(p *place, round, treasuries int) window {
	dsn := "sqlite:" + filepath.Join(b.dir, fmt.Sprintf("ledger-%d-%d.db", round, treasuries))
	if p.process != 0 {
		other := b.postgresql(nil)
		defer other.bare.close()
		dsn = other.dsn
	}
	ctx := context.Background()
	db := need(persistence.Open(ctx, dsn, persistence.Options{Timeout: time.Minute}))
	defer db.Close()
	need(persistence.Migrate(ctx, db))
	persistence.Start(db, []byte("audit key of the bench"), "bench")
	house := func(i int64) ledger.Account {
		return ledger.Account{Kind: ledger.Treasury, Owner: fmt.Sprint(i % int64(treasuries)), Asset: 1}
	}
	users := make([]mover, movedUsers)
	opened := []commit.Write{}
	for i := range users {
		users[i].b = ledger.Balance{Version: 1,
			Account: ledger.Account{Kind: ledger.User, Owner: fmt.Sprintf("%026d", i), Asset: 1}}
		opened = append(opened, ledger.Open{Account: users[i].b.Account})
	}
	for i := range treasuries {
		opened = append(opened, ledger.Open{Account: house(int64(i))})
	}
	must(db.Commit(ctx, ledger.AddAsset{ID: 1, Unit: 1e16}))
	must(db.Commit(ctx, opened...))
	var next atomic.Int64
	return need(load(committers, b.long(time.Second), b.long(4*time.Second), meter{base: p.process},
		func() (func(context.Context, int) error, func(), error) {
			return func(ctx context.Context, _ int) error {
				i := next.Add(1)
				return users[i%movedUsers].move(ctx, db, house(i), fmt.Sprint(i))
			}, func() {}, nil
		}))
}

// move commits a decided movement of one coin from a treasury, as the ledger does.
func (m *mover) move(ctx context.Context, db *persistence.DB, from ledger.Account, ref string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	one := amount.Must("0.01")
	t := ledger.New(time.Now(), "bench", ref, from, m.b.Account, one)
	t.Unit, t.EffectiveAt, t.CreditSeq = 1e16, t.At, m.b.Seq+1
	after := m.b
	after.Seq++
	sum, err := after.Posted.Add(one)
	out, err2 := one.Neg()
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	after.Posted = sum
	digest := t.Digest()
	if err := db.Commit(ctx, ledger.Post{Transfer: t},
		audit.Record{At: t.At, Action: ledger.ActionTransfer, ActorID: "op", UserID: t.Credit.Owner, Target: t.ID,
			Detail: hex.EncodeToString(digest[:])},
		ledger.Save{Balance: after}, ledger.Add{Account: from, Amount: out, Count: 1}); err != nil {
		return err
	}
	after.Version++
	m.b = after
	return nil
}

// adjusted measures adjust-balance over HTTP.
func (b *bench) adjusted(p *place) {
	p.seed(1)
	nodes := 1
	if p.process != 0 {
		nodes = 2
	}
	var servers []*server
	for range nodes { // processes on one database, without a cluster
		s := need(start(roleService, p.environ))
		defer s.stop()
		servers = append(servers, s)
	}
	v, boss := administrator(servers[0])
	defer v.Close()
	of := series{}
	for round := range b.rounds {
		commits := insertTimes(p, 100, 1)
		b.adjusting(p, servers[:1], 1, boss, of, "alone ")
		of.add("over", of["alone p50"][round]-median(commits)/1e3)
		for n := 1; n <= nodes; n++ {
			b.adjusting(p, servers[:n], tellers, boss, of, fmt.Sprint(n, " "))
		}
		if nodes == 2 {
			of.add("part", of["2 rate"][round]/of["1 rate"][round])
		}
	}
	least := 2500.0
	if nodes == 2 {
		least = 1800
	}
	r := &b.report
	r.line(p.name+": adjust-balance alone, median above a bare commit", "ms", of["over"], atMost(1))
	r.line(p.name+": adjust-balance", "/s", of["1 rate"], atLeast(least))
	r.line(p.name+": adjust-balance, of a hundred the slowest", "ms", of["1 p99"], atMost(50))
	r.line(p.name+": CPU of the service for each", "ms", of["1 cpu"], bar{})
	r.line(p.name+": CPU of the driver for each", "ms", of["1 driver"], bar{})
	r.line(p.name+": processors used by others meanwhile", "", of["1 others"], bar{})
	if nodes == 2 {
		r.line(p.name+": adjust-balance, two nodes", "/s", of["2 rate"], bar{})
		r.line(p.name+": two nodes, in one", "×", of["part"], atLeast(0.9))
	}
}

var adjustments atomic.Int64

// adjusting is one period of load over HTTP.
func (b *bench) adjusting(p *place, servers []*server, clients int, boss string, of series, name string) {
	var mu sync.Mutex
	var took []float64
	adjust := func(c *client, i int) error {
		began := time.Now()
		status, err := c.do("POST", "/admin/transaction/adjust-balance", boss, fmt.Sprintf(`{"userId":"%s",`+
			`"currencyCode":"BTC","networkCode":"BTC","amount":0.01,"type":"C","uniqueId":"bench-%d"}`, p.users[i],
			adjustments.Add(1)))
		if err == nil && (status != 200 || member(c.body, "transactionId") == "") {
			err = c.refusal(status)
		}
		mu.Lock()
		defer mu.Unlock()
		took = append(took, time.Since(began).Seconds()*1e3)
		return err
	}
	w := need(b.profiled(servers[0], "ledger-"+p.name+"-"+name[:1], func() (window, error) {
		return load(clients, b.long(time.Second), b.long(4*time.Second), meter{servers: servers, base: p.process},
			dialled(servers, adjust))
	}))
	of.add(name+"rate", w.rate())
	of.add(name+"p50", median(took))
	of.add(name+"p99", quantile(took, 0.99))
	of.add(name+"cpu", w.each(w.server))
	of.add(name+"driver", w.each(w.driver))
	of.add(name+"others", w.others.Seconds()/w.took.Seconds())
}
