package transaction

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/money/ledger"
	"castellan/domain/money/policy"
)

// PassGate orders movements that count in one sum: each is decided on the version of the gate that it passes.
type PassGate struct {
	Key     string
	Version int64
	At      time.Time
}

func (PassGate) Table() string { return "money_gate" }

func (w PassGate) Fence() (key string, version int64) { return w.Key, w.Version }

// widths lists what sums add up, from all movements to few.
var widths = []policy.Per{policy.PerPlatform, policy.PerAsset, policy.PerInitiator, policy.PerDestination,
	policy.PerAccount}

// gatesOf returns the keys of the gates of a movement, by turn: one for each sum that the rules of its kind have.
func gatesOf(set *policy.Set, m movement) (keys []string) {
	for _, per := range set.Counts(m.facts.Kind) {
		keys = append(keys, string(m.facts.Kind)+"/"+string(per)+"/"+m.facts.Common(per))
	}
	slices.SortFunc(keys, byTurn)
	return keys
}

// byTurn orders the keys of gates as turns at them are taken, so that no two movements wait for each other: the widest
// first, also if they have different rules.
func byTurn(a, b string) int {
	width := func(key string) int { return slices.Index(widths, policy.Per(strings.Split(key, "/")[1])) }
	return cmp.Or(cmp.Compare(width(a), width(b)), cmp.Compare(a, b))
}

// gates reads gates and sums. Inside a transaction it locks the gates first. Otherwise it waits until no other movement
// of this process is between one of them and its unit: they would fail at one gate.
func (j *Judge) gates(ctx context.Context, keys []string, at time.Time, queries []CountedQuery) (_ []commit.Write,
	found sums, err error) {
	if len(keys)+len(queries) == 0 {
		return nil, nil, nil
	}
	if e := entryOf(ctx); e != nil && !commit.Inside(ctx) {
		if err := j.take(ctx, e, keys); err != nil {
			return nil, nil, err
		}
	}
	return j.passed(ctx, keys, at, queries)
}

// passed reads gates, which it locks inside a transaction, and then sums.
func (j *Judge) passed(ctx context.Context, keys []string, at time.Time, queries []CountedQuery) (_ []commit.Write,
	found sums, err error) {
	var versions map[string]int64
	if !commit.Inside(ctx) {
		versions, found, err = j.counted(ctx, keys, queries)
		return passing(keys, versions, at), found, err
	}
	if len(keys) > 0 {
		versions, err = j.Past.LockGates(ctx, slices.Sorted(slices.Values(keys)), at) // as units lock them
	}
	if err == nil {
		_, found, err = j.counted(ctx, nil, queries)
	}
	return passing(keys, versions, at), found, err
}

// passing returns the writes that pass gates at their versions.
func passing(keys []string, versions map[string]int64, at time.Time) (all []commit.Write) {
	for _, key := range slices.Sorted(slices.Values(keys)) {
		all = append(all, PassGate{Key: key, Version: versions[key], At: at})
	}
	return all
}

// take waits for the turns at gates that a movement has not, and ends those that it has at others.
func (j *Judge) take(ctx context.Context, e *entry, keys []string) error {
	n := 0
	for n < min(len(e.turns), len(keys)) && e.turns[n].key == keys[n] {
		n++
	}
	e.end(n)
	for _, key := range keys[n:] {
		leave, err := j.turns.Take(ctx, key)
		if err != nil {
			return err
		}
		e.turns = append(e.turns, taken{key, leave})
	}
	return nil
}

// entry is a movement from its first plan to its commit. alone says that it is judged by its sums, in its turns. Any
// other passes its gates together with those that wait for the widest one, too (pass).
type entry struct {
	turns []taken // by byTurn
	alone bool
	pass  *pass
}

// taken is the turn at a gate.
type taken struct {
	key   string
	leave func()
}

// end ends the turns of a movement but the first n.
func (e *entry) end(n int) {
	for _, t := range e.turns[n:] {
		t.leave()
	}
	e.turns = e.turns[:n]
}

type entryKey struct{}

// entryOf returns nil outside of decide.
func entryOf(ctx context.Context) *entry {
	e, _ := ctx.Value(entryKey{}).(*entry)
	return e
}

// decide is ledger.Ledger.Decide for a plan that judges. The turns of its movement end with it.
func (j *Judge) decide(ctx context.Context, l *ledger.Ledger, by audit.By, accounts []ledger.Account,
	plan ledger.Plan) (ledger.Result, error) {
	e := &entry{}
	defer e.end(0)
	return l.Decide(context.WithValue(ctx, entryKey{}, e), by, accounts, func(ctx context.Context,
		has []ledger.Balance) (ledger.Movement, error) {
		e.pass = nil
		m, err := plan(ctx, has)
		if p := e.pass; p != nil && err == nil {
			m.Commit = func(ctx context.Context, writes ...commit.Write) error {
				p.writes, p.commit = writes, l.Commit
				return j.together(ctx, p)
			}
		}
		return m, err
	})
}

// pass is a movement that passes with the least sums, those without earlier movements, and its writes. Movements with
// the same widest gate pass theirs in one unit, each judged with the most that its sums can be: those before it in the
// unit count. A pass is committed only if both verdicts are the same, because it then depends on no other movement.
type pass struct {
	movement
	*entry
	set     *policy.Set
	verdict policy.Verdict
	keys    []string

	writes []commit.Write
	commit commit.Committer
	done   chan error
	served context.CancelFunc // ends its wait for the turn
}

// answer tells a pass how its unit ended, once.
func (p *pass) answer(err error) {
	select {
	case p.done <- err:
	default:
	}
}

// least judges a movement with the least sums. It returns false if its sums are needed now.
func (j *Judge) least(ctx context.Context, set *policy.Set, m movement, keys []string) (v policy.Verdict, is bool) {
	e := entryOf(ctx)
	if e == nil || e.alone || e.pass != nil || !m.commits || len(keys) == 0 || commit.Inside(ctx) {
		return v, false
	}
	totals, err := j.totals(ctx, set, m, false, past{})
	if err != nil {
		return v, false
	}
	v = set.Judge(m.facts, totals)
	if v.Passes() {
		e.pass = &pass{movement: m, entry: e, set: set, verdict: v, keys: keys}
	}
	return v, v.Passes()
}

// maxTogether limits the movements of a unit.
const maxTogether = 64

// together commits a pass. The pass that has the turn at its widest gate commits all that wait for it.
func (j *Judge) together(ctx context.Context, p *pass) error {
	line := p.keys[0]
	waits, served := context.WithCancel(ctx)
	defer served()
	p.served, p.done = served, make(chan error, 1)
	j.mu.Lock()
	if j.passes == nil {
		j.passes = map[string][]*pass{}
	}
	j.passes[line] = append(j.passes[line], p)
	j.mu.Unlock()
	defer p.end(0)
	err := j.take(waits, p.entry, p.keys[:1])
	for {
		all, waiting := j.next(line, p, err == nil)
		switch {
		case !waiting: // it is served by another one, or was served here
			return <-p.done
		case err != nil:
			return err
		}
		_ = j.take(context.WithoutCancel(ctx), p.entry, keysOf(all)) // it waits until it has them
		j.serve(context.WithoutCancel(ctx), all)
	}
}

// next takes the passes to be served now from a line, or p alone if it does not serve; false if p is not in the line.
func (j *Judge) next(line string, p *pass, serves bool) (all []*pass, waiting bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	all = j.passes[line]
	i := slices.Index(all, p)
	if i < 0 {
		return nil, false
	}
	from, to := 0, min(len(all), maxTogether)
	if !serves {
		from, to = i, i+1
	}
	j.passes[line] = slices.Concat(all[:from], all[to:])
	if len(j.passes[line]) == 0 {
		delete(j.passes, line)
	}
	for _, next := range all[from:to] {
		next.served()
	}
	return all[from:to], true
}

// maxLost limits how often a unit is decided again because another node was first at a gate.
const maxLost = 10

// serve commits passes in one unit, in the turns at their gates. If it is refused at another row, each is committed by
// itself, so that only the faulty one fails.
func (j *Judge) serve(ctx context.Context, all []*pass) {
	at, to, was := all[0].facts.At, all[0].commit, []commit.Write(nil)
	own, ended, err := false, false, error(nil)
	defer func() {
		if !ended { // a panic: the unit may have been committed
			err = commit.ErrUnknown
		}
		for _, p := range all {
			p.answer(err)
		}
	}()
	try := func(ctx context.Context) (err error) {
		keys, ms := keysOf(all), shared(all)
		var queries []CountedQuery
		for i, p := range all {
			queries = append(queries, ms[i].queries(p.set, false)...)
		}
		gates, found, err := j.passed(ctx, keys, at, queries)
		if err != nil {
			return err
		}
		if own = reflect.DeepEqual(gates, was); own {
			return commit.ErrFenced
		}
		if all, err = j.stand(ctx, all, ms, found); err != nil || len(all) == 0 {
			return err
		}
		writes := slices.Clone(gates)
		for _, p := range all {
			writes = append(writes, p.writes...)
		}
		was = gates
		return to.Commit(ctx, writes...)
	}
	err = try(ctx)
	for n := 1; n < maxLost && errors.Is(err, commit.ErrFenced) && !own; n++ {
		err = to.InTx(ctx, try) // it locks the gates, so that no other node is first again
	}
	if len(all) > 1 && err != nil && (own || !errors.Is(err, commit.ErrFenced)) && !general(err) {
		for _, p := range all {
			j.serve(ctx, []*pass{p})
		}
	}
	ended = true
}

// keysOf returns the keys of all gates of passes, the widest first.
func keysOf(all []*pass) (keys []string) {
	for _, p := range all {
		keys = append(keys, p.keys...)
	}
	slices.SortFunc(keys, byTurn)
	return slices.Compact(keys)
}

// general reports whether an error is that of any unit.
func general(err error) bool {
	code := fault.CodeOf(err)
	return errors.Is(err, commit.ErrUnknown) || code == fault.Unavailable || code == fault.Overloaded ||
		code == fault.Draining
}

// shared returns the movements of a unit with sums that they share, if there are several: since the first, of all.
func shared(all []*pass) (ms []movement) {
	first := slices.MinFunc(all, func(a, b *pass) int { return a.facts.At.Compare(b.facts.At) }).facts.At
	for _, p := range all {
		m := p.movement
		if len(all) > 1 {
			m.id, m.since = "", first
		}
		ms = append(ms, m)
	}
	return ms
}

// stand returns the passes that the most sums do not change, without two that change one row. The others are judged
// again, in their turn.
func (j *Judge) stand(ctx context.Context, all []*pass, ms []movement, found sums) (kept []*pass, err error) {
	priced, rows := map[string]prices{}, map[string]bool{}
	price := func(ctx context.Context, now time.Time, codes ...string) (_ prices, err error) {
		key := fmt.Sprint(now.UnixMilli(), codes)
		if priced[key] == nil {
			priced[key], err = j.prices(ctx, now, codes...)
		}
		return priced[key], err
	}
	var before []*pass // in the unit
	for i, p := range all {
		most := sums{}
		for _, q := range ms[i].queries(p.set, false) {
			most[q] = with(found[q], before, q)
		}
		totals, err := j.totals(ctx, p.set, ms[i], false, past{most, price})
		if err != nil {
			return append(kept, all[i:]...), err
		}
		p.alone = !reflect.DeepEqual(p.set.Judge(p.facts, totals), p.verdict)
		own := rowsOf(p.writes)
		if p.alone || slices.ContainsFunc(own, func(row string) bool { return rows[row] }) {
			p.answer(commit.ErrFenced)
			continue
		}
		for _, row := range own {
			rows[row] = true
		}
		before, kept = append(before, p), append(kept, p)
	}
	return kept, nil
}

// with adds the passes that a query selects to its rows as the database does: one row for each asset, and for a
// destination also each account. So a value is rounded once.
func with(rows []Counted, more []*pass, q CountedQuery) []Counted {
	rows = slices.Clone(rows)
	for _, p := range more {
		c := Counted{"", p.asset, 1, p.facts.Amount.Sum()}
		if q.Destination != "" {
			c.UserID = p.facts.Account.ID
		}
		if !q.selects(p.movement) {
			continue
		}
		i := slices.IndexFunc(rows, func(r Counted) bool { return r.UserID == c.UserID && r.Asset == c.Asset })
		if i < 0 {
			rows = append(rows, c)
			continue
		}
		rows[i].Number, rows[i].Sum = rows[i].Number+c.Number, rows[i].Sum.Add(c.Sum)
	}
	return rows
}

// rowsOf returns the rows that writes change.
func rowsOf(writes []commit.Write) (all []string) {
	for _, w := range writes {
		switch w := w.(type) {
		case commit.Fence:
			key, _ := w.Fence()
			all = append(all, w.Table()+" "+key)
		case interface{ Row() string }:
			all = append(all, w.(commit.Write).Table()+" "+w.Row())
		}
	}
	return all
}
