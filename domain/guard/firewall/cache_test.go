package firewall

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

// ruleStore is a store whose rules can be unreadable.
type ruleStore struct {
	Store
	asked []Query
	err   error
}

func (s *ruleStore) Rules(_ context.Context, q Query) ([]Rule, error) {
	s.asked = append(s.asked, q)
	return nil, s.err
}

// A failed read of the rules is an error, and the known rules stay. A note reads only the rules that it names.
func TestCacheKeepsRulesOnFailure(t *testing.T) {
	s := &ruleStore{}
	c := NewCache(s, DefaultApp, time.Now)
	if err := c.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Follow(t.Context(), "a", "b"); err != nil || len(s.asked) != 2 || s.asked[0].Labels != nil ||
		!slices.Equal(s.asked[1].Labels, []string{"a", "b"}) {
		t.Errorf("%+v, %v", s.asked, err)
	}
	known := c.Current()
	s.err = errors.New("the database is down")
	if err := c.Reload(t.Context()); !errors.Is(err, s.err) || c.Current() != known {
		t.Errorf("reload: %v", err)
	}
	if err := c.Follow(t.Context(), "a"); !errors.Is(err, s.err) || c.Current() != known {
		t.Errorf("follow: %v", err)
	}
}
