package firewall

import "context"

// Store keeps the rules. Every method joins the transaction that its context
// carries (commit.Committer.InTx) and else runs in one of its own. It is safe for
// concurrent use and passes firewalltest.Run.
type Store interface {
	// Rules lists the selected rules in order of creation.
	Rules(ctx context.Context, q Query) ([]Rule, error)
	// Add inserts a rule; RECORD_ALREADY_EXIST when its label is taken by one of
	// any application, also under concurrent calls.
	Add(ctx context.Context, r Rule) error
	// Change loads the rule of a label, gives it to change and saves what that
	// returns, as one step: no other change of the rule comes between, and when
	// change returns an error nothing is saved and the error is returned. The
	// application, label, type and type of entity stay as they are.
	// RECORD_NOT_FOUND when there is no such rule.
	Change(ctx context.Context, label string, change func(Rule) (Rule, error)) error
}

// Query selects rules; nil: of any application, of any status.
type Query struct {
	AppID  *string
	Status *Status
	Labels []string // each of which is at most one rule
}
