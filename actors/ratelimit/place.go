package ratelimit

import (
	"slices"
	"strconv"
	"time"

	"castellan/actors/pb"
	"castellan/domain/firewall"
)

// placement says who keeps each partition. It is immutable.
type placement struct {
	owner, next [firewall.Partitions]string
	seats       []string // all owners
	alone       bool     // this node is all there is
}

// members is among how many a limit is shared when nobody answers.
func (pl *placement) members() int64 { return int64(max(1, len(pl.seats))) }

func (c *Counter) look() *placement {
	pl := &placement{}
	for p := range pl.owner {
		pl.owner[p], pl.next[p] = c.net.Place(Kind, strconv.Itoa(p))
		if id := pl.owner[p]; id != "" && !slices.Contains(pl.seats, id) {
			pl.seats = append(pl.seats, id)
		}
	}
	pl.alone = len(pl.seats) == 1 && pl.seats[0] == c.self
	return pl
}

// keepTime is how long a node keeps what it has neither as owner nor as
// stand-in: until whoever has it now has asked.
const keepTime = 10 * time.Second

// moved puts a new placement in force. Owners that this node is not any more
// stop here at once: whoever they are now asks for what they had.
func (c *Counter) moved(func(kind, id string) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, now := c.place.Load(), c.look()
	c.place.Store(now)
	joined := before.alone && !now.alone
	fresh := slices.DeleteFunc(slices.Clone(now.seats), func(id string) bool { return slices.Contains(before.seats, id) })
	drops := c.net.Drops() // this node may have missed what it was told
	dropped := drops != c.drops
	c.drops = drops
	for p := range c.roles {
		owner, next := now.owner[p] == c.self, now.next[p] == c.self
		c.table.Enter(p, func(part *firewall.Part) {
			r := &c.roles[p]
			r.away = 0
			if joined && part.Len() > 0 {
				r.fork, r.owed = true, nil // nobody else knows of it
			}
			switch {
			case dropped: // others may have decided since
				r.state, r.whole, r.from, r.helper = idle, false, "", ""
			case r.state == held && (!owner || joined || r.helper != "" && r.helper != now.next[p] || c.wasOf(p, fresh)):
				r.rest()
			case r.state == held:
				r.helper = now.next[p]
			case r.source != now.owner[p]:
				r.whole = false // its owner will tell; it may have done so already
			}
			if owner || next {
				r.keep = 0
			} else if r.keep == 0 {
				r.keep = c.table.Instant() + int64(keepTime)
			}
			r.told = r.told && before.next[p] == now.next[p] && !(now.next[p] != "" && c.way(now.next[p]).deaf.Load())
		})
	}
	c.kick()
}

// wasOf tells whether one of these members may still decide about a partition,
// because it did before this node heard of it.
func (c *Counter) wasOf(p int, ids []string) bool {
	return len(ids) > 0 && slices.ContainsFunc(c.net.Former(Kind, strconv.Itoa(p)), func(id string) bool { return slices.Contains(ids, id) })
}

// settlers is how many partitions are taken over at a time.
const settlers = 16

// settle takes over, after each change, what is this node's now, before anybody
// asks for it, and tells new stand-ins what they stand in for.
func (c *Counter) settle() {
	tick := time.NewTicker(wantTime)
	defer tick.Stop()
	for {
		select {
		case <-c.moves:
		case <-tick.C:
			c.want()
			continue
		case <-c.ctx.Done():
			return
		}
		parts := make(chan int)
		for range settlers {
			c.work.Go(func() {
				for p := range parts {
					c.activate(p)
					c.tell(p)
				}
			})
		}
		pl := c.place.Load()
		for p := range c.roles {
			if pl.owner[p] == c.self && c.ctx.Err() == nil && !pl.alone {
				parts <- p
			}
		}
		close(parts)
	}
}

// wantTime is how often a stand-in looks whether it lacks something.
const wantTime = 150 * time.Millisecond

// want asks owners for what this node stands in for and does not have whole: it
// may have seen a change after it was told, or have been away.
func (c *Counter) want() {
	pl := c.place.Load()
	if pl.alone || !c.net.Belongs() {
		return
	}
	lacks := map[string][]uint32{}
	for p := range c.roles {
		if pl.next[p] == c.self && pl.owner[p] != "" {
			c.table.Enter(p, func(*firewall.Part) {
				if r := &c.roles[p]; !r.whole && !r.stands && r.state == idle {
					r.lack()
					lacks[pl.owner[p]] = append(lacks[pl.owner[p]], uint32(p))
				}
			})
		}
	}
	for owner, parts := range lacks {
		c.work.Go(func() { c.net.Ask(c.ctx, silence, owner, pullName, &pb.RatePull{Tell: parts}) })
	}
}

// Sweep forgets what does not count any more.
func (c *Counter) Sweep() {
	c.table.Sweep()
	now, pl := c.table.Instant(), c.place.Load()
	c.ways.Range(func(id, _ any) bool {
		if !slices.Contains(pl.owner[:], id.(string)) && !slices.Contains(pl.next[:], id.(string)) {
			c.ways.Delete(id)
		}
		return true
	})
	for i := range c.front {
		for k, l := range c.front[i].sweep(now) {
			c.giveBack(firewall.Demand{Key: k, Limit: 1, Period: 1}, l)
		}
	}
	for p := range c.roles {
		c.table.Enter(p, func(part *firewall.Part) {
			if r := &c.roles[p]; r.keep != 0 && now > r.keep && r.state != held {
				part.Clear()
				*r = role{keep: r.keep, gen: r.gen, claim: r.claim}
			}
		})
	}
}
