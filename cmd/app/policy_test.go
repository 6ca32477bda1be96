package app

import (
	"log/slog"
	"testing"

	"castellan/domain/money/policy"
	"castellan/internal/pgtest"
	"castellan/persistence/money"
)

// Nodes that start together for the first time seed the default rules once.
func TestNodesSeedTheRulesOnce(t *testing.T) {
	cfg := settings(t, at(pgtest.DSN(t)))
	const nodes = 3
	var all [nodes]*Deployment
	failed := make(chan error, nodes)
	for i := range all {
		go func() {
			d, err := Open(t.Context(), cfg)
			if all[i] = d; err == nil {
				err = d.seedPolicy(t.Context(), cfg.Dev, slog.New(slog.DiscardHandler))
			}
			failed <- err
		}()
	}
	for range nodes {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	for _, d := range all {
		if d != nil {
			defer d.Close()
		}
	}
	if t.Failed() {
		return
	}
	var versions, labels int
	err := all[0].DB.Conn(t.Context()).NewRaw("SELECT count(*), count(DISTINCT label) FROM money_rule").
		Scan(t.Context(), &versions, &labels)
	want := len(policy.Defaults(policy.Trial))
	rules, listed := money.NewRules(all[1].DB).Rules(t.Context())
	if err != nil || listed != nil || want != 12 || versions != want || labels != want || len(rules) != want {
		t.Errorf("%d versions of %d rules and %d in force, want %d; %v, %v", versions, labels, len(rules), want, err, listed)
	}
}
