package ratesim

import (
	"slices"
	"strconv"
	"time"

	"castellan/actors/ratelimit/shard"
	"castellan/domain/guard/ratelimit"
)

// The times of the drivers; actors/ratelimit has the reasons.
const (
	patience       = int64(75 * time.Millisecond)
	probeInterval  = int64(25 * time.Millisecond)
	settleInterval = int64(500 * time.Millisecond)
	missing        = int64(150 * time.Millisecond)
	askTime        = int64(900 * time.Millisecond)
	actTime        = int64(100 * time.Millisecond)
	leastStall     = int64(60 * time.Millisecond)
)

// node drives the shards of one node.
type node struct {
	*world
	id          int
	name        string
	dead        bool
	closed      bool // clients do not call it: it joins or leaves
	frozenAt    int64
	frozenUntil int64
	resumed     int64 // when it last went on after a stall, by its clock
	lapsed      bool  // its membership is not confirmed
	born        int64
	drift, skew int64 // of its clock, in parts of a million and nanoseconds

	view           []int
	seen           map[int]bool
	past           []past
	owner, replica []int // by partition; -1: none
	table          *ratelimit.Table
	shards         []shard.Shard
	out            shard.Effects
	peers          []*peer
}

type past struct {
	view  []int
	until int64
}

// peer is another node, as seen by this one.
type peer struct {
	arrival                            int64 // of the last message to it: they arrive in order
	queue                              []*shard.Update
	busy                               bool
	silentSince                        int64
	probing, settling                  bool
	replacedAt, confirmedAt, settledAt int64
	silentReplica                      bool
	gone, goneThere                    int
	stoodAt                            int64
	witnessed                          shard.Witnessed
}

// waits counts the confirmations that a decision waits for.
type waits struct {
	left   int
	failed bool
	then   func()
}

func (x *waits) finish() {
	if x.left--; x.left == 0 {
		x.then()
	}
}

func (w *world) start() *node {
	n := &node{world: w, id: len(w.nodes), seen: map[int]bool{}, born: w.now,
		owner: make([]int, ratelimit.Partitions), replica: make([]int, ratelimit.Partitions),
		shards: make([]shard.Shard, ratelimit.Partitions), drift: w.rng.Int64N(200) - 100, skew: w.rng.Int64N(1e12)}
	n.name = "n" + strconv.Itoa(n.id)
	w.names = append(w.names, n.name)
	w.byName[n.name] = n.id
	w.nodes = append(w.nodes, n)
	n.table = ratelimit.NewTable(nil)
	for _, p := range w.parts {
		n.shards[p].Init(p, n.table.At(p))
	}
	n.see([]int{n.id})
	w.timer(n.id, settleInterval, n.settle)
	w.timer(n.id, missing, n.requestMissing)
	return n
}

// clock is the node's own time.
func (n *node) clock() int64 { return n.now + n.now/1_000_000*n.drift + n.skew }

func (n *node) peer(id int) *peer {
	for len(n.peers) <= id {
		n.peers = append(n.peers, &peer{settledAt: n.clock(), confirmedAt: n.clock()})
	}
	return n.peers[id]
}

func (n *node) member(id int) string {
	if id < 0 {
		return ""
	}
	return n.names[id]
}

// lost reports whether the connection to a node is closed, or it is gone for long.
func (n *node) lost(id int) bool {
	m := n.nodes[id]
	return m.dead || !slices.Contains(n.view, id) && m.frozenUntil > n.now && n.now-m.frozenAt > int64(time.Second)
}

// since reports whether this node stalled after an instant.
func (n *node) since(instant int64) bool { return n.Off&CatchUp == 0 && n.resumed > instant }

func (n *node) place(p int) shard.Place {
	o, r := n.owner[p], n.replica[p]
	at := shard.Place{Self: n.name, Owner: n.member(o), Replica: n.member(r), Confirmed: !n.lapsed}
	if r >= 0 && r != n.id {
		at.ReplicaSilent = n.peer(r).silentReplica
	}
	if at.ReplicaSilent || r == n.id {
		at.Witness = n.member(n.witness(p))
	}
	at.CaughtUp = o >= 0 && o != n.id && !n.since(n.peer(o).settledAt)
	return at
}

// step runs a message in a shard, and sends what it asks for.
func (n *node) step(p int, m shard.Message) {
	s := &n.shards[p]
	phase, number := s.Phase(), s.Number()
	if s.Step(m, n.clock(), &n.out); n.watched == p && (phase != s.Phase() || number != s.Number() || describe(m) != "") {
		n.watch("%s is %s %x, now %s %x: %T %s", n.name, phase, number, s.Phase(), s.Number(), m, describe(m))
	}
	sends, failed := n.out.Sends, n.out.Failed
	if n.out.Merged > 0 {
		n.Merged += n.out.Merged
		n.merged[p] = true
	}
	n.out = shard.Effects{}
	for _, x := range failed {
		x.Waits.(*waits).failed = true
	}
	for _, x := range sends {
		to := n.byName[x.To]
		if d, is := x.Waits.(*waits); is {
			if n.Off&Confirm != 0 {
				x.Update.Waits = nil
			} else {
				d.left++
			}
		}
		pr := n.peer(to)
		pr.queue = append(pr.queue, x.Update)
		n.sendUpdates(to)
	}
}

// ask has another node run handle, whose answer arrives here; nil: none came in time.
func (n *node) ask(to int, within int64, handle func(m *node, reply func(any)), got func(any)) {
	done := false
	end := func(x any) {
		if !done {
			done = true
			got(x)
		}
	}
	n.timer(n.id, within, func() { end(nil) })
	n.send(to, func(m *node) {
		m.peer(n.id).silentSince = 0
		handle(m, func(x any) { m.send(n.id, func(*node) { end(x) }) })
	})
}

func (n *node) send(to int, do func(m *node)) {
	pr := n.peer(to)
	pr.arrival = max(pr.arrival+1, n.now+100_000+int64(n.rng.ExpFloat64()*300_000))
	if n.rng.Float64() < n.Loss {
		return
	}
	m := n.nodes[to]
	n.note('m', int64(n.id), int64(to))
	n.after(to, pr.arrival-n.now, func() { do(m) })
}

// request is a request of a client, under one name, until it is decided.
type request struct {
	node   *node
	key    int
	name   uint64
	issued int64
	began  int64
	again  bool
	may    []int // nodes that may have counted it
	pause  int64
}

func (r *request) begin() {
	if r.began, r.pause = r.node.now, int64(time.Millisecond); r.began-r.issued > clientTime {
		r.node.answer(r, shard.Retry) // the connection is closed
		return
	}
	r.try()
}

func (r *request) counted(id int) {
	if id >= 0 && !slices.Contains(r.may, id) {
		r.may = append(r.may, id)
	}
}

// target returns the node that decides; -1: none.
func (n *node) target(p int) (id int, replica bool) {
	o, r := n.owner[p], n.replica[p]
	if o >= 0 && r >= 0 && (o == n.id && n.lapsed || o != n.id && n.peer(o).silentSince != 0) {
		if r != n.id && n.peer(r).silentSince != 0 {
			return -1, false
		}
		return r, true
	}
	return o, false
}

func (r *request) try() {
	n, k := r.node, &r.node.keys[r.key]
	to, asReplica := n.target(k.part)
	if o := n.owner[k.part]; asReplica && o != n.id {
		n.peer(o).replacedAt = n.clock()
	}
	again := r.again
	r.again = true
	switch {
	case to < 0:
		r.decided(verdict{})
	case to == n.id:
		r.counted(to)
		n.decide(r, n.name, asReplica, again, r.decided)
	default:
		n.query(r, to, asReplica, again)
	}
}

// verdict is the answer to a query.
type verdict struct {
	of        shard.Verdict
	number    uint64
	witnessed []uint64
	short     int64 // admissions of clients that the decision did not know
}

func (n *node) query(r *request, to int, asReplica, again bool) {
	began, k := n.clock(), &n.keys[r.key]
	r.counted(to)
	n.ask(to, patience, func(m *node, reply func(any)) {
		if len(m.view) == 1 {
			reply(verdict{})
			return
		}
		m.decide(r, n.name, asReplica, again, func(v verdict) {
			if m.rng.IntN(8) > 0 {
				reply(v)
				return
			}
			m.after(m.id, m.between(0, 20*time.Millisecond), func() { reply(v) }) // others of its batch wait
		})
	}, func(x any) {
		if got, ok := x.(verdict); ok {
			if got.of == shard.Admitted && got.number != 0 {
				c := &shard.Copy{AsRequester: true, Since: began, Update: &shard.Update{Part: k.part, Number: got.number,
					ID: r.id(), Again: again, Demand: n.demand(k), Count: 1}}
				if n.step(k.part, c); c.Reply == shard.Superseding {
					got.of = shard.Retry
				}
			}
			if got.of == shard.Admitted && got.witnessed != nil && !n.keepOwn(to, r, got.witnessed[0], began) {
				got.of = shard.Retry
			}
			r.decided(got)
			return
		}
		n.ping(to, func(alive bool) {
			if !alive && !n.since(began) {
				n.recordSilence(to, began)
			}
			r.decided(verdict{})
		})
	})
}

func (r *request) id() uint64 {
	if r.node.Off&Names != 0 {
		return 0
	}
	return max(1, r.name)
}

func (n *node) decide(r *request, requester string, asReplica, again bool, then func(verdict)) {
	k := &n.keys[r.key]
	x := &waits{left: 1}
	one := &struct { // of one demand
		shard.Decide
		at       [1]shard.At
		demand   [1]ratelimit.Demand
		standing [1]ratelimit.Standing
		words    [3]uint64
	}{at: [1]shard.At{{Place: n.place(k.part)}}, demand: [1]ratelimit.Demand{n.demand(k)},
		words: [3]uint64{k.hash, r.id()}}
	one.Decide = shard.Decide{At: one.at[:], Hashes: one.words[:1], Demands: one.demand[:], IDs: one.words[1:2],
		Requester: requester, AsReplica: asReplica, Again: again, Waits: x, Standings: one.standing[:],
		Numbers: one.words[2:]}
	d := &one.Decide
	var short int64
	x.then = func() {
		if x.failed {
			d.Verdict = shard.Retry
		}
		then(verdict{d.Verdict, d.Numbers[0], d.Witnessed, short})
	}
	n.step(k.part, d)
	if d.Verdict == shard.Admitted {
		short = max(0, k.admitted+1-d.Standings[0].Used)
	}
	for _, p := range d.NotOwned {
		n.takeOver(p, func() {})
	}
	x.finish()
}

// decided ends a request, or repeats it after a pause.
func (r *request) decided(got verdict) {
	n, v := r.node, got.of
	gone := n.now-r.issued > clientTime
	switch {
	case v == shard.Admitted && !gone:
		if k := &n.keys[r.key]; got.short > k.short {
			k.short = got.short
			n.say("short", n.name, k.name, got.short)
		}
		n.answer(r, v)
	case v == shard.Refused:
		r.takeBack()
		n.answer(r, v)
	case gone || n.now-r.began >= askTime:
		r.takeBack()
		n.answer(r, shard.Retry)
	default:
		pause := r.pause
		r.pause = min(2*pause, int64(20*time.Millisecond))
		n.timer(n.id, pause, r.try)
	}
}

// takeBack takes the request back from every node that may have counted it.
func (r *request) takeBack() {
	n, k := r.node, &r.node.keys[r.key]
	if len(r.may) == 0 || r.id() == 0 {
		return
	}
	r.counted(n.owner[k.part])
	r.counted(n.replica[k.part])
	for _, id := range r.may {
		forget := func(m *node) {
			m.step(k.part, &shard.Forget{Place: m.place(k.part), Demand: n.demand(k), ID: r.id(), Count: 1})
		}
		if id == n.id {
			forget(n)
		} else {
			n.peer(id).witnessed.Forget([]uint64{r.id()}, 1)
			n.send(id, forget)
		}
	}
}
