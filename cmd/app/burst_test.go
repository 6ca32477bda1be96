package app

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/guard/firewall"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/change"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/guard"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

// countedRules counts the reads of the rules.
type countedRules struct {
	firewall.Store
	loads, rows atomic.Int64
}

func (c *countedRules) Rules(ctx context.Context, q firewall.Query) ([]firewall.Rule, error) {
	rules, err := c.Store.Rules(ctx, q)
	if c.rows.Add(int64(len(rules))); q.Labels == nil {
		c.loads.Add(1)
	}
	return rules, err
}

// rulesNode is a node that enforces rules and lets administrators write them.
type rulesNode struct {
	store *countedRules
	live  *firewall.Cache
	feed  *change.Reader
	admin *firewall.Admin
}

// newRulesNode loads the stored rules.
func newRulesNode(t testing.TB, db *persistence.DB) *rulesNode {
	t.Helper()
	n := &rulesNode{store: &countedRules{Store: guard.NewFirewall(db)}}
	n.live = firewall.NewCache(n.store, "API", time.Now)
	n.feed = change.NewReader(kit.NewChanges(db), time.Now)
	n.feed.On(change.Firewall, n.live.Follow)
	n.admin = &firewall.Admin{Store: n.store, App: "API", InForce: rulesInForce(n.feed, n.live),
		Changes: admin.Changes{Commit: db, Now: time.Now, Topic: change.Firewall, Follow: n.live.Follow}}
	storetest.Must(t, errors.Join(n.live.Reload(t.Context()), n.feed.Poll(t.Context())))
	return n
}

func blacklist(i int) firewall.Rule {
	ip := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
	return firewall.Rule{AppID: "API", Label: fmt.Sprintf("rule-%06d", i), Type: firewall.Blacklist,
		EntityType: firewall.IP, Entities: []string{ip.String()}, Resources: []string{}, AllResources: true,
		Status: firewall.Active}
}

// stored adds n rules.
func stored(t testing.TB, db *persistence.DB, n int) {
	t.Helper()
	store := guard.NewFirewall(db)
	storetest.Must(t, db.InTx(t.Context(), func(ctx context.Context) error {
		for i := range n {
			if err := store.Add(ctx, blacklist(i)); err != nil {
				return err
			}
		}
		return nil
	}))
}

// The cost of a burst of administration depends only on the changes. Eight administrators write among 4,000 rules, and
// the other rules are not read again, neither by the writing node nor by another. A rule is in force when its write is
// acknowledged.
func TestBurstOfRules(t *testing.T) {
	const rules, writers, writes = 4000, 8, 10
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		stored(t, db, rules)
		here, there := newRulesNode(t, db), newRulesNode(t, db)
		by := firewall.Author{Client: firewall.Client{UserID: "u1", IP: netip.MustParseAddr("192.0.2.1")}}
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				for i := range writes {
					r := blacklist(rules + w*writes + i)
					if err := here.admin.Add(t.Context(), by, r); err != nil {
						t.Error(err)
					}
					if !denies(here, r) {
						t.Errorf("%s does not hold after it was acknowledged", r.Label)
					}
				}
			})
		}
		all.Wait()
		storetest.Must(t, there.feed.Poll(t.Context()))
		for i := range writers * writes {
			if r := blacklist(rules + i); !denies(there, r) {
				t.Errorf("%s does not hold on another node", r.Label)
			}
		}
		// A writer reads its rule, and so does the feed of its node.
		for name, n := range map[string]*rulesNode{"the node that wrote": here, "another": there} {
			if loads := n.store.loads.Load(); loads != 1 {
				t.Errorf("%s read all rules %d times, want once, at its start", name, loads)
			}
			if rows := n.store.rows.Load() - rules; rows > 2*writers*writes {
				t.Errorf("%s read %d rules for %d changes", name, rows, writers*writes)
			}
		}
	})
}

func denies(n *rulesNode, r firewall.Rule) bool {
	c := firewall.Client{IP: netip.MustParseAddr(r.Entities[0])}
	v, _ := n.live.Current().Judge("GET /a", c, time.Now().UnixMilli(), nil)
	return v == firewall.Deny
}
